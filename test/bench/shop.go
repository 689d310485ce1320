package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// clients is the number of connections that find the maximum.
const clients = 32

// openClients is the most connections for requests on a schedule.
const openClients = 64

// shop is a project that one replica serves.
type shop struct {
	*system.Project

	replica *system.Replica
	address string // host:port of the API
	numbers atomic.Int64
}

// openShop serves a project.
func openShop(ctx context.Context, p *system.Project) (*shop, error) {
	replica, err := p.StartReplica()
	if err != nil {
		return nil, err
	}
	return &shop{Project: p, replica: replica, address: replica.API}, replica.AwaitReady(ctx)
}

// site is a system with a shop, and the receiver of its events.
type site struct {
	*shop

	system *system.System
	sink   *sink
}

// startSite starts a system whose first project is served.
func (b *bench) startSite(ctx context.Context, o system.Options) (*site, error) {
	receiver, err := startSink(ctx)
	if err != nil {
		return nil, err
	}
	x := &site{sink: receiver}
	o.WebhookURL, o.Graph = receiver.url, receiver.graph
	if o.Program == "" {
		o.Program = b.program
	}
	if x.system, err = system.Start(ctx, o); err != nil {
		return nil, errors.Join(err, receiver.close())
	}
	if x.shop, err = openShop(ctx, x.system.Project); err != nil {
		return nil, errors.Join(err, x.close())
	}
	b.logf("  its profiles: http://%s/debug/pprof", x.replica.Profiles)
	return x, nil
}

func (x *site) close() error { return errors.Join(x.system.Stop(), x.sink.close()) }

// withSite runs a figure on its own site.
func (b *bench) withSite(ctx context.Context, o system.Options, measure func(*site) error) error {
	x, err := b.startSite(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(measure(x), x.close())
}

// withoutEvents is for projects whose events would only take CPU time from what is measured.
func withoutEvents(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil }

// renderer renders the next request.
type renderer = func(load.Turn) ([]byte, error)

// renderInit renders the request that starts a verification of the next number.
func (s *shop) renderInit(load.Turn) ([]byte, error) {
	return load.Request(http.MethodPost, "/api/verify/init",
		http.Header{"Authorization": {"Bearer " + s.Key}, "Content-Type": {"application/json"}},
		fmt.Appendf(nil, `{"phoneNumber":%q,"method":"WHATSAPP"}`, phoneNumber(s.numbers.Add(1)))), nil
}

// phoneNumber returns a mobile number, a different one for each n.
func phoneNumber(n int64) string { return fmt.Sprintf("+49152%08d", n%100_000_000) }

// renderStatus returns a renderer of status requests, one for each verification in turn.
func (s *shop) renderStatus(of []started) renderer {
	requests := make([][]byte, len(of))
	for i, begun := range of {
		requests[i] = load.Request(http.MethodGet, "/api/verify/status?id="+begun.ID, http.Header{"Authorization": {"Bearer " + s.Key}}, nil)
	}
	return func(turn load.Turn) ([]byte, error) { return requests[turn.N%int64(len(requests))], nil }
}

// renderMessages returns a renderer of WhatsApp's webhooks for the users' messages, each once.
func (s *shop) renderMessages(of []started) renderer {
	requests := make([][]byte, len(of))
	for i, begun := range of {
		m := s.WhatsAppMessage(begun.number, begun.ExpectedText, begun.ID, time.Now())
		requests[i] = load.Request(http.MethodPost, m.Path, m.Header, m.Body)
	}
	return func(turn load.Turn) ([]byte, error) {
		if turn.N >= int64(len(requests)) {
			return nil, load.ErrDone
		}
		return requests[turn.N], nil
	}
}

// started is a verification that was started.
type started struct {
	ID           string `json:"requestId"`
	ExpectedText string `json:"expectedText"`
	number       string
}

// startVerifications starts n verifications.
func (s *shop) startVerifications(ctx context.Context, n int) ([]started, error) {
	var (
		mu  sync.Mutex
		all []started
	)
	client := func(ctx context.Context) (load.Call, func() error, error) {
		conn, err := load.Dial(ctx, s.address)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, turn load.Turn) error {
			if turn.N >= int64(n) {
				return load.ErrDone
			}
			one, err := s.startVerification(conn)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, one)
			return nil
		}, conn.Close, nil
	}
	if _, err := load.Closed(ctx, min(n, clients), waitTimeout, load.Patient(client)); err != nil {
		return nil, fmt.Errorf("start %d verifications: %w", n, err)
	}
	return all, nil
}

func (s *shop) startVerification(conn *load.Conn) (started, error) {
	one := started{number: phoneNumber(s.numbers.Add(1))}
	status, body, err := conn.Do(load.Request(http.MethodPost, "/api/verify/init",
		http.Header{"Authorization": {"Bearer " + s.Key}, "Content-Type": {"application/json"}},
		fmt.Appendf(nil, `{"phoneNumber":%q,"method":"WHATSAPP"}`, one.number)))
	switch {
	case err != nil:
		return one, err
	case status != http.StatusOK:
		return one, &load.StatusError{Status: status, Body: string(body)}
	default:
		return one, json.Unmarshal(body, &one)
	}
}

// verifyNumbers starts n verifications and completes them.
func (s *shop) verifyNumbers(ctx context.Context, n int) ([]started, error) {
	all, err := s.startVerifications(ctx, n)
	if err != nil {
		return nil, err
	}
	_, err = load.Closed(ctx, min(n, clients), waitTimeout, load.Patient(load.Expect(s.address, s.renderMessages(all))))
	return all, err
}
