package whatsapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// dialing is a Graph API that is reached, and answers as its function does.
type dialing func(*http.Request) (int, string, error)

func (d dialing) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	status, answer, err := d(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewBufferString(answer)), Request: r}, nil
}

// silent never answers.
func silent(r *http.Request) (int, string, error) {
	<-r.Context().Done()
	return 0, "", r.Context().Err()
}

func accepting(*http.Request) (int, string, error) {
	return http.StatusOK, `{"contacts":[{"wa_id":"` + user + `"}],"messages":[{"id":"wamid.1"}]}`, nil
}

// codeFixture is a fixture whose project sends codes.
type codeFixture struct {
	*fixture

	sender  *messenger.CodeSender
	store   *faulty
	metrics *messenger.CodeMetrics
}

func newCodeFixture(t testing.TB, graph dialing) *codeFixture {
	t.Helper()
	f := &codeFixture{fixture: newOfflineFixture(t)}
	f.allowCodes("US", "BR")
	client, err := NewClient(ClientOptions{Transport: graph})
	f.Expect(err).NotTo(HaveOccurred())
	f.metrics, err = messenger.NewCodeMetrics(func() *settings.Settings { return f.settings }, f.registry)
	f.Expect(err).NotTo(HaveOccurred())
	f.store = &faulty{Store: f.fixture.store, fail: func(int64, string) error { return nil }}
	f.sender = messenger.NewCodeSender(messenger.CodeSenderOptions{
		Settings: func() *settings.Settings { return f.settings }, Clock: f.clock, Metrics: f.metrics, Log: f.logger(),
		Platforms: map[verification.Method]messenger.CodePlatform{verification.WhatsApp: client},
		Service:   verification.NewService(verification.NewCodeSpace(project), f.store),
	})
	return f
}

// inFlight returns how many of the sender's places are taken.
func (f *codeFixture) inFlight() int {
	taken := messenger.MaxCodesInFlight
	for i := range messenger.MaxCodesInFlight {
		if slot, ok := f.sender.ReserveSlot(fmt.Sprint("probe-", i), redact.Value[string]{}); ok {
			defer slot.Release()
			taken--
		}
	}
	return taken
}

// seriesOf returns the counts of a metric of the sender that are not zero, by the value of a label.
func (f *codeFixture) seriesOf(metric, label string) map[string]int {
	return f.countsOf(f.registry, metric, label)
}

// countsOf returns the counts of a metric that are not zero, by the value of a label.
func (f *fixture) countsOf(registry *prometheus.Registry, metric, label string) map[string]int {
	counts := map[string]int{}
	families, err := registry.Gather()
	f.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if n := int(m.GetCounter().GetValue()); family.GetName() == metric && l.GetName() == label && n > 0 {
					counts[l.GetValue()] += n
				}
			}
		}
	}
	return counts
}

// allowCodes has the project send codes to these countries.
func (f *fixture) allowCodes(countries ...verifyv1.Country) {
	f.t.Helper()
	p := &verifyv1.VerificationProject{}
	p.Spec.WhatsApp = &verifyv1.WhatsApp{Codes: &verifyv1.Codes{
		TemplateName: "verify_code", Languages: []verifyv1.TemplateLanguage{"en", "pt_BR"}, AllowedCountries: countries, MaxPerDay: 100,
	}}
	codes := settings.FromProject(p, settings.Secrets{}).WhatsApp.Codes
	f.change(func(s *settings.Settings) { s.WhatsApp.Codes = codes })
}

// createCode stores a request with a code for a number.
func (f *fixture) createCode(key, number, locale string) verification.Request {
	f.t.Helper()
	codes := verification.NewCodeSpace(project)
	created, err := f.store.Create(f.t.Context(), verification.New{
		ID: codes.RequestID(codes.CodeFor([32]byte{}, key)), Phone: numberOf(f.t, number), Method: verification.WhatsApp, TTL: 10 * time.Minute,
		ClientData: verification.ClientData{Locale: locale},
		Terms:      verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode},
	}, verification.Limits{})
	f.Expect(err).NotTo(HaveOccurred())
	return created.Request
}

// start has the code of a request sent, in a bubble of package synctest.
func (f *codeFixture) start(r verification.Request) {
	f.t.Helper()
	slot, ok := f.sender.ReserveSlot("shop", redact.Value[string]{})
	f.Expect(ok).To(BeTrue())
	slot.StartSending(r)
}

// TestCodeSender_sendsGivenCode: what the client gave, and not what follows from the request.
func TestCodeSender_sendsGivenCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var body []byte
		f := newCodeFixture(t, func(r *http.Request) (int, string, error) {
			body, _ = io.ReadAll(r.Body)
			return accepting(r)
		})
		r := f.createCode("first", user, "pt-BR")
		r.Terms.Deliver = verification.DeliverGiven
		slot, ok := f.sender.ReserveSlot("shop", redact.New("QX7K2M"))
		f.Expect(ok).To(BeTrue())
		slot.StartSending(r)
		synctest.Wait()
		f.Expect(string(body)).To(And(ContainSubstring(`"text":"QX7K2M"`), ContainSubstring(`"code":"pt_BR"`)))
		f.Expect(f.codeCounts()).To(Equal([...]map[string]int{{"given": 1}, {"US": 1}}), "an alert compares sent and redeemed")
	})
}

// codeCounts returns the outcomes of all codes, and the countries of their numbers.
func (f *codeFixture) codeCounts() [2]map[string]int {
	return [...]map[string]int{f.seriesOf("phoneproof_codes_total", "outcome"), f.seriesOf("phoneproof_codes_total", "country")}
}

func (f *codeFixture) codeOf(r verification.Request) verification.CodeResult {
	return f.state(r.ID).Code
}

func TestCodeSender_sends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var body []byte
		f := newCodeFixture(t, func(r *http.Request) (int, string, error) {
			body, _ = io.ReadAll(r.Body)
			return accepting(r)
		})
		r := f.createCode("first", user, "pt-BR")
		f.start(r)
		synctest.Wait()
		f.Expect(f.codeOf(r)).To(Equal(verification.CodeResult{State: verification.CodeSent}))
		f.Expect(f.store.updates.Load()).To(BeEquivalentTo(1))
		var m outgoing
		f.Expect(json.Unmarshal(body, &m)).To(Succeed())
		code, _ := f.settings.DeliveredCode(&r, started)
		f.Expect(code.Reveal()).To(MatchRegexp(`^[0-9]{8}$`))
		f.Expect([]string{m.To, m.Type, m.Template.Name, m.Template.Language.Code, m.Template.Components[0].Parameters[0].Text, m.Reference}).To(
			Equal([]string{user, "template", "verify_code", "pt_BR", code.Reveal(), "code:" + r.ID + ":1795168800000000"}))
		f.Expect(f.codeCounts()).To(Equal([...]map[string]int{{"sent": 1}, {"US": 1}}))
		f.Expect(f.inFlight()).To(BeZero())
	})
}

// TestCodeSender_endsAfterTenSeconds by the store's time, whatever the machine's clock shows.
func TestCodeSender_endsAfterTenSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		storeClock, sending time.Duration
	}{
		"at once":             {0, 10 * time.Second},
		"late":                {9 * time.Second, time.Second},
		"a store clock ahead": {-time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newCodeFixture(t, silent)
				r := f.createCode("first", user, "")
				f.clock.SetTime(r.CreatedAt.Add(c.storeClock))
				f.start(r)
				<-time.After(c.sending - 1)
				synctest.Wait()
				f.Expect(f.inFlight()).To(Equal(1))
				<-time.After(1)
				synctest.Wait()
				f.Expect(f.inFlight()).To(BeZero())
				f.Expect(f.codeOf(r)).To(BeZero(), "it may have been sent")
				f.Expect(f.store.updates.Load()).To(BeZero())
				f.Expect(f.codeCounts()).To(Equal([...]map[string]int{{"unknown": 1}, {"US": 1}}))
			})
		})
	}
}

// TestCodeSender_sendsNothing where it cannot, or may no longer, and records that.
func TestCodeSender_sendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*codeFixture)
		reason  string
	}{
		"too late":      {func(f *codeFixture) { f.clock.SetTime(started.Add(verification.CodeSendTime)) }, messenger.CodeTooLate},
		"much too late": {func(f *codeFixture) { f.clock.SetTime(started.Add(time.Minute)) }, messenger.CodeTooLate},
		"no codes": {func(f *codeFixture) {
			f.change(func(s *settings.Settings) { s.WhatsApp.Codes = nil })
		}, messenger.CodeNotConfigured},
		"no account": {func(f *codeFixture) {
			f.change(func(s *settings.Settings) { s.WhatsApp = nil })
		}, messenger.CodeNotConfigured},
		"no app secret": {func(f *codeFixture) {
			f.change(func(s *settings.Settings) { s.WhatsApp.AppSecret = settings.Secret{} })
		}, messenger.CodeNotConfigured},
		"no token": {func(f *codeFixture) {
			f.change(func(s *settings.Settings) { s.WhatsApp.AccessToken = settings.Secret{} })
		}, reasonToken},
		"no simulator": {func(f *codeFixture) {
			f.change(func(s *settings.Settings) { s.WhatsApp.Simulated = true })
		}, messenger.CodeNotConfigured},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newCodeFixture(t, func(*http.Request) (int, string, error) {
					t.Error("called")
					return 0, "", io.EOF
				})
				r := f.createCode("first", user, "")
				c.prepare(f)
				f.start(r)
				synctest.Wait()
				f.Expect(f.codeOf(r)).To(Equal(verification.CodeResult{State: verification.CodeNotSent, Reason: c.reason}))
				f.Expect(f.seriesOf("phoneproof_code_failures_total", "reason")).To(Equal(map[string]int{c.reason: 1}))
				f.Expect(f.state(r.ID).Hints).To(HaveLen(1))
			})
		})
	}
}

func TestCodeSender_64InFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCodeFixture(t, silent)
		r := f.createCode("first", user, "")
		for range 31 {
			f.start(r)
		}
		last, ok := f.sender.ReserveSlot("shop", redact.Value[string]{})
		f.Expect(ok).To(BeTrue())
		_, ok = f.sender.ReserveSlot("shop", redact.Value[string]{})
		f.Expect(ok).To(BeFalse(), "a key has half of them at most")
		for range 32 {
			other, ok := f.sender.ReserveSlot("kiosk", redact.Value[string]{})
			f.Expect(ok).To(BeTrue())
			defer other.Release()
		}
		_, ok = f.sender.ReserveSlot("counter", redact.Value[string]{})
		f.Expect(ok).To(BeFalse())
		last.Release()
		f.start(r)
		<-time.After(verification.CodeSendTime)
		synctest.Wait()
		f.Expect(f.inFlight()).To(Equal(32))
	})
}

// TestCodeSender_drains waits for the results of what is on its way, and lets nothing begin after it.
func TestCodeSender_drains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCodeFixture(t, func(r *http.Request) (int, string, error) {
			<-time.After(3 * time.Second)
			return accepting(r)
		})
		one, two := f.createCode("first", user, ""), f.createCode("second", "5511987654321", "")
		f.start(one)
		f.start(two)
		begin := time.Now()
		f.sender.Drain()
		f.Expect(time.Since(begin)).To(Equal(3 * time.Second))
		f.Expect(f.codeOf(one).State).To(Equal(verification.CodeSent))
		f.Expect(f.codeOf(two)).To(Equal(verification.CodeResult{State: verification.CodeSent, Reason: "other_number"}))
		f.Expect(f.seriesOf("phoneproof_code_failures_total", "reason")).To(Equal(map[string]int{"other_number": 1}))
		f.Expect(f.codeCounts()).To(Equal([...]map[string]int{{"sent": 2}, {"BR": 1, "US": 1}}))
		_, ok := f.sender.ReserveSlot("shop", redact.Value[string]{})
		f.Expect(ok).To(BeFalse())

		stuck := newCodeFixture(t, accepting)
		stuck.store.fail = func(int64, string) error { return verification.Unavailable(io.EOF) }
		r := stuck.createCode("first", user, "")
		stuck.clock.SetTime(started.Add(-time.Hour))
		stuck.start(r)
		begin = time.Now()
		stuck.sender.Drain()
		stuck.Expect(time.Since(begin)).To(Equal(verification.CodeSendTime))
		<-time.After(time.Minute)
		stuck.Expect(stuck.inFlight()).To(Equal(messenger.MaxCodesInFlight-1), "its place is free")
	})
}

// TestCodeSender_writesOnce has a store that is away: one result is written, or none.
func TestCodeSender_writesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(n int64) error
		tries int64
		state verification.CodeState
	}{
		"away for a moment": {func(n int64) error {
			if n < 4 {
				return verification.Unavailable(io.EOF)
			}
			return nil
		}, 4, verification.CodeSent},
		"refuses the content": {func(int64) error { return verification.ErrContent }, 1, ""},
		"another failure":     {func(int64) error { return errors.New("odd") }, 1, ""},
		"away for good":       {func(int64) error { return verification.Unavailable(io.EOF) }, 14 * 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newCodeFixture(t, accepting)
				f.store.fail = func(n int64, _ string) error { return c.fail(n) }
				r := f.createCode("first", user, "")
				f.clock.SetTime(started.Add(time.Millisecond)) // the end is between two tries
				f.start(r)
				<-time.After(verification.CodeUnknownAfter - time.Second + 1)
				synctest.Wait()
				f.Expect(f.store.updates.Load()).To(Equal(c.tries))
				f.Expect(f.codeOf(r).State).To(Equal(c.state))
				f.Expect(f.inFlight()).To(BeZero())
			})
		})
	}
}

// TestCodeSender_panics frees the place.
func TestCodeSender_panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCodeFixture(t, func(*http.Request) (int, string, error) { panic("canary " + user) })
		f.start(f.createCode("first", user, ""))
		synctest.Wait()
		f.Expect(f.inFlight()).To(BeZero())
		f.Expect(string(f.logs.Contents())).To(ContainSubstring("sending of code ended"))
		f.Expect(string(f.logs.Contents())).NotTo(ContainSubstring("canary"))
	})
}

// TestCodeSender_leaksNothing of numbers, codes, tokens and what Meta says, to logs and metrics.
func TestCodeSender_leaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all bytes.Buffer
		for _, answer := range []dialing{
			accepting, silent, func(*http.Request) (int, string, error) { return 0, "", errors.New("canary " + user) },
			func(*http.Request) (int, string, error) {
				return http.StatusBadRequest, `{"error":{"code":131026,"message":"canary ` + user + `"}}`, nil
			},
		} {
			f := newCodeFixture(t, answer)
			r := f.createCode("first", user, "")
			code, _ := f.settings.DeliveredCode(&r, started)
			f.store.fail = func(int64, string) error { return errors.New("down") }
			f.start(r)
			<-time.After(time.Minute)
			families, err := f.registry.Gather()
			f.Expect(err).NotTo(HaveOccurred())
			for _, family := range families {
				all.WriteString(family.String())
			}
			f.Expect(string(f.logs.Contents())).NotTo(ContainSubstring("undeliverable"), "who has WhatsApp is in no log")
			all.Write(f.logs.Contents())
			f.Expect(all.String()).NotTo(MatchRegexp(`(?i)canary|` + user + `|` + code.Reveal() + `|EAAB|a1b2c3|graph\.facebook`))
		}
		NewWithT(t).Expect(all.String()).To(And(ContainSubstring("result of code not recorded"), ContainSubstring("code not sent")))
	})
}

// TestCodeMetrics_series exist for the project's countries from the start, and for no others.
func TestCodeMetrics_series(t *testing.T) {
	f := newCodeFixture(t, accepting)
	registry := prometheus.NewRegistry()
	var current *settings.Settings
	metrics, err := messenger.NewCodeMetrics(func() *settings.Settings { return current }, registry)
	f.Expect(err).NotTo(HaveOccurred())
	f.registry = registry
	count := func() []int {
		var counts []int
		for _, name := range []string{"phoneproof_codes_total", "phoneproof_codes_redeemed_total"} {
			n, err := testutil.GatherAndCount(registry, name)
			f.Expect(err).NotTo(HaveOccurred())
			counts = append(counts, n)
		}
		return counts
	}
	f.Expect(count()).To(Equal([]int{0, 0}), "no settings yet")
	current = &settings.Settings{WhatsApp: &settings.WhatsApp{}}
	f.Expect(count()).To(Equal([]int{0, 0}), "a project without codes")
	f.change(func(s *settings.Settings) {
		s.Telegram = &settings.Telegram{Codes: &settings.GatewayCodes{Countries: map[phone.Region]bool{"US": true}}}
	})
	current = f.settings
	f.Expect(count()).To(Equal([]int{9, 3}), "two countries of one messenger, and one of the other")
	for _, method := range []verification.Method{verification.WhatsApp, verification.Telegram} {
		for _, number := range []string{user, "5511987654321", "4915112345678", "99912345678"} {
			metrics.CountRedeemed(&verification.Request{Phone: numberOf(t, number), Method: method})
		}
	}
	f.Expect(f.seriesOf("phoneproof_codes_redeemed_total", "country")).To(Equal(map[string]int{"US": 2, "BR": 1, "other": 5}))
	f.Expect(f.seriesOf("phoneproof_codes_redeemed_total", "method")).To(Equal(map[string]int{"WHATSAPP": 4, "TELEGRAM": 4}))
	_, err = messenger.NewCodeMetrics(func() *settings.Settings { return nil }, registry)
	f.Expect(err).To(HaveOccurred())
}
