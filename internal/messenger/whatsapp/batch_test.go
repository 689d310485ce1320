package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// thousand makes a thousand requests, of a number each, and a webhook with the message of each.
func thousand(f *fixture) ([]string, []byte) {
	f.t.Helper()
	ids, messages := make([]string, 1000), make([]any, 1000)
	for i := range ids {
		number := fmt.Sprintf("4915112%06d", i)
		made := f.request(number, number, verification.WhatsApp)
		ids[i], messages[i] = made.Request.ID, textOf(made.Code.Grouped(), object{"from": number})
	}
	f.clock.SetTime(started.Add(time.Minute))
	return ids, webhookOf(messages...)
}

func (f *fixture) verified(ids []string) int {
	f.t.Helper()
	n := 0
	for _, id := range ids {
		if f.state(id).Phase == verification.Verified {
			n++
		}
	}
	return n
}

func TestHook_thousandMessages(t *testing.T) {
	f := newFixture(t)
	ids, body := thousand(f)
	begin := time.Now()
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	t.Logf("%d bytes in %s", len(body), time.Since(begin))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeVerified: 1000}))
	f.Expect(f.verified(ids)).To(Equal(1000))
}

// TestHook_storeFailsMidway has the store fail in the middle of a batch: the answer is 503, and a redelivery ends it.
func TestHook_storeFailsMidway(t *testing.T) {
	for name, fail := range map[string]func(n int64, id string) error{
		"for ever after 500": func(n int64, _ string) error {
			if n > 500 {
				return verification.Unavailable(errors.New("canaryback"))
			}
			return nil
		},
		"every tenth": func(n int64, _ string) error {
			if n%10 == 0 {
				return errors.New("canaryback: conflict")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			ids, body := thousand(f)
			hook := f.failing(fail)
			w := f.postTo(hook, body, sign(body, appSecret))
			f.Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
			f.Expect(w.Header().Get("Retry-After")).NotTo(BeEmpty())
			f.Expect(w.Body.String()).NotTo(ContainSubstring("canaryback"))
			f.Expect(f.verified(ids)).To(And(BeNumerically(">", 100), BeNumerically("<", 1000)))

			f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
			f.Expect(f.verified(ids)).To(Equal(1000))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeVerified: 1000}))
		})
	}
}

// TestHook_slowStore has a store that takes its time: senders are worked on together, and what does not fit into Meta's
// patience comes again.
func TestHook_slowStore(t *testing.T) {
	for each, deliveries := range map[time.Duration]int{0: 1, 100 * time.Millisecond: 1, 400 * time.Millisecond: 3} {
		t.Run(each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOfflineFixture(t)
				ids, body := thousand(f)
				hook := f.failing(func(int64, string) error {
					takeTime(each)
					return nil
				})
				for delivery := range deliveries {
					begin := time.Now()
					w := f.postTo(hook, body, sign(body, appSecret))
					f.Expect(time.Since(begin)).To(BeNumerically("<=", batchTimeout+messageTimeout))
					if delivery < deliveries-1 {
						f.Expect(w.Code).To(Equal(http.StatusServiceUnavailable))
						// The store answers at once for what is done.
						hook = f.failing(func(n int64, id string) error {
							if f.state(id).Phase == verification.Pending {
								takeTime(each)
							}
							return nil
						})
						continue
					}
					f.Expect(w.Code).To(Equal(http.StatusOK))
				}
				f.Expect(f.verified(ids)).To(Equal(1000))
			})
		})
	}
}

// takeTime returns when that much time has passed in the bubble. A timer of no time at all would be run by each of the workers
// that receive from it, and two that do so at once are more than the race detector survives (https://go.dev/issue/78156).
func takeTime(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// TestHook_hangingStore has a store that does not answer: Meta gets 503 in time.
func TestHook_hangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOfflineFixture(t)
		_, body := thousand(f)
		hook := f.failing(func(int64, string) error {
			<-time.After(messageTimeout)
			return context.DeadlineExceeded
		})
		begin := time.Now()
		f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusServiceUnavailable))
		f.Expect(time.Since(begin)).To(BeNumerically("<=", 3*messageTimeout))
	})
}

// TestHook_lostQuestionsHoldUpNoMessage has more statuses of lost questions than a store that fails, or is slow, gets done.
func TestHook_lostQuestionsHoldUpNoMessage(t *testing.T) {
	for name, record := range map[string]func() error{
		"fails":   func() error { return errors.New("down") },
		"is slow": func() error { takeTime(time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newOfflineFixture(t)
				first, second := f.request("first", user, verification.WhatsApp), f.request("second", user, verification.WhatsApp)
				f.clock.SetTime(started.Add(time.Minute))
				var statuses []any
				for i := range 2 * maxFailures {
					statuses = append(statuses, statusOf(strconv.Itoa(i), "failed", object{"biz_opaque_callback_data": questionPrefix + second.Request.ID + ":b:1"}))
				}
				written := 0
				hook := f.failing(func(_ int64, id string) error {
					if id == first.Request.ID {
						return nil
					}
					written++
					return record()
				})
				body := encode(envelopeOf(changeOf(object{
					"metadata": object{"phone_number_id": numberID}, "messages": []any{textOf(firstCode, nil)}, "statuses": statuses,
				})))
				begin := time.Now()
				f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusServiceUnavailable))
				f.Expect(time.Since(begin)).To(BeNumerically("<=", batchTimeout+messageTimeout))
				f.Expect(written).To(BeNumerically("<=", maxFailures))
				f.expectVerified(f.state(first.Request.ID), true)
			})
		})
	}
}

// TestHook_refusedLookUpsHoldUpNoMessage has more refused look-ups of unknown codes and of lost questions than a batch survives failures.
func TestHook_refusedLookUpsHoldUpNoMessage(t *testing.T) {
	f := newOfflineFixture(t)
	honest, asked := f.request("first", user, verification.WhatsApp), f.request("second", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	question := object{"biz_opaque_callback_data": questionPrefix + asked.Request.ID + ":b:1"}
	var messages, statuses []any
	for i := range 2 * maxFailures {
		code := verification.NewCodeSpace(project).CodeFor([32]byte{1}, strconv.Itoa(i))
		messages = append(messages, textOf(code.Grouped(), object{"from": fmt.Sprintf("4915112%06d", i)}))
		statuses = append(statuses, statusOf(strconv.Itoa(i), "failed", question))
	}
	refused := 0
	var mu sync.Mutex
	hook := f.failing(func(_ int64, id string) error {
		if id == honest.Request.ID {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		refused++
		return verification.TooManyUnknown(errors.New("all callers together"))
	})
	body := encode(envelopeOf(changeOf(object{
		"metadata": object{"phone_number_id": numberID}, "messages": append(messages, textOf(firstCode, nil)), "statuses": statuses,
	})))
	f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusServiceUnavailable), "it comes again")
	f.expectVerified(f.state(honest.Request.ID), true)
	f.Expect(refused).To(Equal(len(messages)+len(statuses)), "none is left out")
}

// TestHook_events makes the event due in the write that verifies, where the project has a webhook.
func TestHook_events(t *testing.T) {
	for wanted, webhook := range map[bool]*settings.Webhook{false: nil, true: {URL: "https://shop.example", Events: verification.NewEventKinds(verification.EventSuccess)}} {
		f := newOfflineFixture(t)
		f.settings.Webhook = webhook
		made := f.request("first", user, verification.WhatsApp)
		f.clock.SetTime(started.Add(time.Minute))
		f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
		f.Expect(f.state(made.Request.ID).Delivery.Wanted()).To(Equal(wanted))
	}
}

func TestHook_storeDown(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.backend.Fail(errors.New("down"))
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.post(golden(t, "in/status")).Code).To(Equal(http.StatusOK), "nothing of it needs the store")
	f.Expect(f.post(webhookOf(textOf("hello", nil))).Code).To(Equal(http.StatusOK), "nor a message without a code")
	f.backend.Fail(nil)
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
}

// TestHook_oneBadMessage: one message that breaks the store's or our own code, 49 good ones.
func TestHook_oneBadMessage(t *testing.T) {
	for name, fail := range map[string]func() error{
		"panic":           func() error { panic("canaryvalue") },
		"runtime panic":   func() error { return errors.New(strings.Repeat("x", 3)[:cap(make([]int, 9))]) },
		"content refused": func() error { return fmt.Errorf("write: %w", verification.ErrContent) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			ids, messages := make([]string, 50), make([]any, 50)
			for i := range ids {
				number := fmt.Sprintf("4915112%06d", i)
				made := f.request(number, number, verification.WhatsApp)
				ids[i], messages[i] = made.Request.ID, textOf(made.Code.Grouped(), object{"from": number})
			}
			f.clock.SetTime(started.Add(time.Minute))
			body := webhookOf(messages...)
			hook := f.failing(func(_ int64, id string) error {
				if id == ids[7] {
					return fail()
				}
				return nil
			})
			f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
			f.Expect(f.verified(ids)).To(Equal(49))
			f.Expect(string(f.logs.Contents())).NotTo(ContainSubstring("canaryvalue"))
		})
	}
}

// TestHook_replays: copies of a webhook, at once, an hour and a week later.
func TestHook_replays(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	body := golden(t, "in/text")
	var together sync.WaitGroup
	for range 5 {
		together.Go(func() { f.Expect(f.post(body).Code).To(Equal(http.StatusOK)) })
	}
	together.Wait()
	first := f.state(made.Request.ID)
	f.Expect(first.Phase).To(Equal(verification.Verified))
	for _, later := range []time.Duration{time.Hour, 7 * 24 * time.Hour} {
		f.clock.SetTime(started.Add(later))
		f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.state(made.Request.ID)).To(Equal(first), "one transition")

	// The code of a request that is gone proves nothing: a new request has another.
	f.Expect(f.store.Delete(t.Context(), made.Request.ID, first.Version)).To(Succeed())
	next := f.request("second", user, verification.WhatsApp)
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(next.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestHook_race: two senders, one code, at the same moment.
func TestHook_race(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", "525512345678", verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	// Both forms are the claimed number; the third sender's is not.
	senders := []string{"525512345678", "5215512345678", "5215512345679"}
	var together sync.WaitGroup
	for range 4 {
		for _, from := range senders {
			body := webhookOf(textOf(firstCode, object{"from": from}))
			together.Go(func() { f.Expect(f.post(body).Code).To(Equal(http.StatusOK)) })
		}
	}
	together.Wait()
	state := f.state(made.Request.ID)
	f.Expect(state.Phase).To(Equal(verification.Verified))
	f.Expect(state.Actual.Digits()).To(BeElementOf(senders[:2]))
	counts := f.outcomes()
	f.Expect(counts[messenger.OutcomeVerified]).To(Equal(8), "the same number in both forms, and copies")
	f.Expect(counts[messenger.OutcomeWrongNumber]).To(Equal(4))
}

// TestHook_wrongSenderFirst has another user who saw the code try it before its owner.
func TestHook_wrongSenderFirst(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	for i := range 100 {
		f.Expect(f.post(webhookOf(textOf(firstCode, object{"from": fmt.Sprintf("4915112%06d", i)}))).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
}
