package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	chaosledger "github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// eventsOf are what events report, in the words of status.
var eventsOf = map[string]string{
	"verification.success": "VERIFIED", "verification.expired": "EXPIRED", "verification.declined": "EXPIRED",
}

// receiveEvent is the receiver of the client backend.
func (t *trial) receiveEvent(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender ended half-way
	}
	mac := hmac.New(sha256.New, []byte(t.system.WebhookSecret))
	mac.Write(body)
	if !hmac.Equal([]byte(r.Header.Get("X-Webhook-Signature")), []byte(hex.EncodeToString(mac.Sum(nil)))) {
		t.keepError(errors.New("an event has a wrong signature"))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct {
		Event     string `json:"event"`
		RequestID string `json:"requestId"`
		Assurance string `json:"assurance"`
		Hint      string `json:"hint"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		t.keepError(fmt.Errorf("decode event: %w", err))
		return
	}
	t.record(ledger.Record{
		Kind: ledger.Event, Request: event.RequestID, ID: r.Header.Get("Webhook-Id"), Result: eventsOf[event.Event], Hint: event.Hint,
		Assurance: event.Assurance,
	})
	w.WriteHeader(http.StatusNoContent)
}

// noteEvent notes which events are due, and which came.
func (t *trial) noteEvent(r *ledger.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due == nil {
		t.due, t.came = map[string]bool{}, map[string]bool{}
	}
	switch {
	case r.Kind == ledger.Event:
		t.came[r.Request] = true
	case r.Kind == ledger.Redeemed && r.Result == "VERIFIED", r.Kind == ledger.Member && r.Verified, r.Kind == ledger.Declined && r.Result == "EXPIRED":
		t.due[r.Request] = true
	}
}

// eventWait is how long events may take that are due; the judge reports those that did not come.
const eventWait = time.Minute

// awaitEvents waits for the events that are due.
func (t *trial) awaitEvents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, eventWait)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for t.missesEvent() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *trial) missesEvent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for request := range t.due {
		if !t.came[request] {
			return true
		}
	}
	return false
}

// collect records how everything ended, by all who know.
func (t *trial) collect(ctx context.Context) error {
	t.awaitEvents(ctx)
	return errors.Join(t.askAll(ctx), t.readCounters(ctx), t.readStore(ctx))
}

// askAll asks for the status of every request.
func (t *trial) askAll(ctx context.Context) error {
	records, err := t.readLedger()
	if err != nil {
		return err
	}
	begun := make(chan ledger.Record, len(records))
	for _, r := range records {
		if r.Kind == ledger.Begun {
			begun <- r
		}
	}
	close(begun)
	errs := make([]error, t.workers)
	var asking sync.WaitGroup
	for n := range errs {
		asking.Go(func() {
			for r := range begun {
				s := &scene{stage: &t.stage, n: r.Scene, victim: r.Victim, method: r.Method}
				if _, err := s.askStatus(ctx, r.Request); err != nil {
					errs[n] = err
					return
				}
			}
		})
	}
	asking.Wait()
	return errors.Join(errs...)
}

// readLedger reads the ledger so far.
func (t *trial) readLedger() ([]ledger.Record, error) {
	if err := t.ledger.Append(ledger.Record{At: time.Now(), Kind: ledger.Collected}); err != nil { // when it is on disk, so is all before it
		return nil, err
	}
	return ledger.Read(filepath.Join(t.dir, ledger.File))
}

// The counters of the replicas: of the steps of requests at level Session, by step, and of messages, by outcome.
const (
	sessionCounter = "phoneproof_session_proofs_total"
	messageCounter = "phoneproof_messages_total"
)

// readCounters records the sums of the replicas' counters.
func (t *trial) readCounters(ctx context.Context) error {
	sums, failed := map[string]int{}, 0
	for _, r := range t.replicas {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Health+"/metrics", nil)
		if err != nil {
			return fmt.Errorf("create request: %w", err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("read metrics: %w", err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return fmt.Errorf("read metrics: %w", err)
		}
		for _, m := range families[sessionCounter].GetMetric() {
			sums[m.GetLabel()[0].GetValue()] += int(m.GetCounter().GetValue())
		}
		for _, m := range families[messageCounter].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "outcome" && l.GetValue() == string(messenger.OutcomeFailed) {
					failed += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	for step, count := range sums {
		t.record(ledger.Record{Kind: ledger.Counted, Result: step, Count: count})
	}
	t.record(ledger.Record{Kind: ledger.Failed, Count: failed})
	return nil
}

// readStore records every state that the store committed, but PENDING.
func (t *trial) readStore(ctx context.Context) error {
	if t.witness == nil {
		return nil
	}
	if err := t.witness.Conclude(ctx, t.dir); err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	for _, file := range []string{chaosledger.StoreFile, chaosledger.FinalFile} {
		changes, err := chaosledger.Read[chaosledger.Change](filepath.Join(t.dir, file))
		if err != nil {
			return err
		}
		for _, c := range changes {
			if c.Phase != "PENDING" {
				t.record(ledger.Record{Kind: ledger.Stored, Request: c.ID, Result: c.Phase})
			}
		}
	}
	return nil
}
