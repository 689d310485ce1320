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

// clients is how many connections find the maximum.
const clients = 32

// openClients is how many there are at most where requests keep to a schedule.
const openClients = 64

// shop is a project that one replica serves.
type shop struct {
	*system.Project

	replica *system.Replica
	numbers atomic.Int64
}

// open serves a project.
func open(ctx context.Context, p *system.Project) (*shop, error) {
	replica, err := p.StartReplica()
	if err != nil {
		return nil, err
	}
	return &shop{Project: p, replica: replica}, replica.AwaitReady(ctx)
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
	o.Program, o.WebhookURL, o.Graph = b.program, receiver.url, "http://"+b.bare.address
	if x.system, err = system.Start(ctx, o); err != nil {
		return nil, errors.Join(err, receiver.close())
	}
	if x.shop, err = open(ctx, x.system.Project); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *site) close() error { return errors.Join(x.system.Stop(), x.sink.close()) }

// with runs a figure on a site of its own.
func (b *bench) with(ctx context.Context, o system.Options, measure func(*site) error) error {
	x, err := b.startSite(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(measure(x), x.close())
}

// withoutEvents is for projects whose events would only take the processor from what is measured.
func withoutEvents(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil }

// patient lets attempts outlast a round.
func patient(p *verifyv1.VerificationProject) { p.Spec.Webhook.Timeout = "30s" }

// init renders the request that starts a verification of the next number.
func (s *shop) init(load.Turn) ([]byte, error) {
	return load.Request(http.MethodPost, "/api/verify/init",
		http.Header{"Authorization": {"Bearer " + s.Key}, "Content-Type": {"application/json"}},
		fmt.Appendf(nil, `{"phoneNumber":%q,"method":"WHATSAPP"}`, number(s.numbers.Add(1)))), nil
}

// number is a mobile number, another for each n.
func number(n int64) string { return fmt.Sprintf("+49152%08d", n%100_000_000) }

// status renders requests for the status of each in turn.
func (s *shop) status(of []begun) func(load.Turn) ([]byte, error) {
	requests := make([][]byte, len(of))
	for i, begun := range of {
		requests[i] = load.Request(http.MethodGet, "/api/verify/status?id="+begun.ID, http.Header{"Authorization": {"Bearer " + s.Key}}, nil)
	}
	return func(turn load.Turn) ([]byte, error) { return requests[turn.N%int64(len(requests))], nil }
}

// messages renders what WhatsApp posts when the users send the texts, each once.
func (s *shop) messages(of []begun) func(load.Turn) ([]byte, error) {
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

// begun is a verification that was started.
type begun struct {
	ID           string `json:"requestId"`
	ExpectedText string `json:"expectedText"`
	number       string
}

// begin starts so many verifications.
func (s *shop) begin(ctx context.Context, n int) ([]begun, error) {
	var (
		mu  sync.Mutex
		all []begun
	)
	client := func(ctx context.Context) (load.Call, func() error, error) {
		conn, err := load.Dial(ctx, s.replica.API)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, turn load.Turn) error {
			if turn.N >= int64(n) {
				return load.ErrDone
			}
			one, err := s.beginOne(conn)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, one)
			return nil
		}, conn.Close, nil
	}
	if _, err := load.Closed(ctx, min(n, clients), awaitTimeout, load.Patient(client)); err != nil {
		return nil, fmt.Errorf("start %d verifications: %w", n, err)
	}
	return all, nil
}

func (s *shop) beginOne(conn *load.Conn) (begun, error) {
	one := begun{number: number(s.numbers.Add(1))}
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

// verified starts so many verifications and proves them.
func (s *shop) verified(ctx context.Context, n int) ([]begun, error) {
	all, err := s.begin(ctx, n)
	if err != nil {
		return nil, err
	}
	_, err = load.Closed(ctx, min(n, clients), awaitTimeout, load.Patient(load.Expect(s.replica.API, s.messages(all))))
	return all, err
}

// most is how many requests are answered in a second, with all clients at it.
func (b *bench) most(ctx context.Context, address string, request func(load.Turn) ([]byte, error)) (float64, error) {
	b.loading()
	r, err := load.Closed(ctx, clients, b.length, load.Expect(address, request))
	return r.PerSecond(), err
}
