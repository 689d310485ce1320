package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// leakedKey is the file of the API key that leaked.
	leakedKey = "leaked-key"
	// codesPerDay leaves each of two keys 5,000 codes in an hour.
	codesPerDay = 60_000
	// codesPerSecond is the rate of the other key.
	codesPerSecond = 20
	// leaks is the number of connections that use the leaked key.
	leaks = 16
)

// measureLeak measures how long an API key waits for init with a code, by itself and while another one asks for codes at full speed.
func measureLeak(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "phoneproof-leak-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	leaked, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return err
	}
	o := system.Options{Store: system.PostgreSQL, Dir: dir, Project: func(p *verifyv1.VerificationProject) {
		withoutEvents(p)
		sendCodes(p)
		secrets := filepath.Join(dir, p.Namespace, "secrets", p.Name)
		err = errors.Join(os.MkdirAll(secrets, 0o700), os.WriteFile(filepath.Join(secrets, leakedKey), []byte(leaked), 0o600))
	}}
	return b.withSite(ctx, o, func(x *site) error {
		if err != nil {
			return err
		}
		const name = "InitCode/store=postgresql/by="
		return b.measureByTurns(ctx,
			side{name + "itself", func(ctx context.Context, round int) (sample, error) { return b.measureCodes(ctx, x, round) }},
			side{name + "leak", func(ctx context.Context, round int) (sample, error) {
				return b.measureBesideLeak(ctx, x, leaked, round)
			}})
	})
}

// sendCodes lets the first key of a project, and a leaked one, ask for codes.
func sendCodes(p *verifyv1.VerificationProject) {
	system.SendCodes(p, codesPerDay)
	backend := &p.Spec.APIKeys[0]
	backend.Scopes = []verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeDeliver}
	p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{
		Name: "leaked", SecretRef: verifyv1.SecretKeyRef{Name: backend.SecretRef.Name, Key: leakedKey}, Scopes: backend.Scopes,
	})
}

// renderCode returns a renderer of requests for a code to the next number.
func (s *shop) renderCode(key string) renderer {
	return func(load.Turn) ([]byte, error) {
		n := s.numbers.Add(1)
		return load.Request(http.MethodPost, "/api/verify/init",
			http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}},
			fmt.Appendf(nil, `{"phoneNumber":"+49171%07d","method":"WHATSAPP","deliver":"CODE","subject":"user-%d"}`, n%10_000_000, n)), nil
	}
}

// measureCodes measures requests for a code on a schedule. None may be refused.
func (b *bench) measureCodes(ctx context.Context, x *site, round int) (sample, error) {
	r, err := load.Open(ctx, openClients, codesPerSecond, b.length, uint64(round), load.Expect(x.address, x.renderCode(x.Key)))
	if err != nil {
		return nil, err
	}
	return sample{"p50-ns": float64(r.Latency.Quantile(0.5).Nanoseconds()), "p99-ns": float64(r.Latency.Quantile(0.99).Nanoseconds())}, nil
}

// measureBesideLeak is measureCodes beside connections that use another key as fast as they are answered, whatever the answers.
func (b *bench) measureBesideLeak(ctx context.Context, x *site, leaked string, round int) (sample, error) {
	leaking, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var cost atomic.Int64
	render := x.renderCode(leaked)
	go func() { // ends after stop
		_, err := load.Closed(leaking, leaks, waitTimeout, func(ctx context.Context) (load.Call, func() error, error) {
			conn, err := load.Dial(ctx, x.address)
			if err != nil {
				return nil, nil, err
			}
			return func(_ context.Context, turn load.Turn) error {
				request, err := render(turn)
				if err != nil {
					return err
				}
				status, _, err := conn.Do(request)
				if status == http.StatusOK {
					cost.Add(1)
				}
				return err
			}, conn.Close, nil
		})
		if leaking.Err() != nil {
			err = nil
		}
		ended <- err
	}()
	found, err := b.measureCodes(ctx, x, round)
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return nil, err
	}
	found["leaked-codes"] = float64(cost.Load())
	return found, nil
}
