package whatsapp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// What testdata goes by.
const (
	project        = "books/shop"
	appSecret      = "a1b2c3canarysecret"
	accessToken    = "EAABcanarytoken"
	numberID       = "106540352242922"
	businessNumber = "15550783881"
	user           = "16505551234"
	hiddenUser     = "US.13491208655302741918"
	firstCode      = "VCGC-SRF7-H9YN-HPM8"
)

// started is when the tests' requests are made.
var started = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// fixture is a hook over a memory store, with a Graph API that records what it is asked.
type fixture struct {
	*WithT

	t        testing.TB
	clock    *clocktesting.FakePassiveClock
	backend  *memory.Backend
	store    *memory.Store
	service  *verification.Service
	settings *settings.Settings
	graph    *graph
	hook     *Hook
	registry *prometheus.Registry
	logs     *gbytes.Buffer
	// codeMetrics has the metrics of codes that hook counts.
	codeMetrics *prometheus.Registry
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, newGraph(t))
}

// newOfflineFixture returns a fixture that opens no connection: what it sends is taken and forgotten.
func newOfflineFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, nil)
}

func newFixtureWith(t testing.TB, g *graph) *fixture {
	t.Helper()
	f := &fixture{
		WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(started), graph: g,
		registry: prometheus.NewRegistry(), logs: gbytes.NewBuffer(),
	}
	f.backend = memory.NewBackend(memory.Options{Clock: f.clock})
	f.store = f.backend.Open(project)
	f.service = verification.NewService(verification.NewCodeSpace(project), f.store)
	f.settings = &settings.Settings{Project: project, DisplayName: "Ada's Books", TTL: 10 * time.Minute, WhatsApp: &settings.WhatsApp{
		PhoneNumber: "+" + businessNumber, PhoneNumberID: numberID,
		AccessToken: settings.NewSecret([]byte(accessToken)), AppSecret: settings.NewSecret([]byte(appSecret)),
		AcceptAnyText: true, // most tests are about something else; see strict
	}}
	f.hook = f.newHook(f.service)
	return f
}

// faulty is a store of which updates may be made to fail.
type faulty struct {
	verification.Store

	updates atomic.Int64
	fail    func(n int64, id string) error // n counts from 1
}

func (s *faulty) Update(
	ctx context.Context, id string, mutate func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	if err := s.fail(s.updates.Add(1), id); err != nil {
		return verification.Request{}, err
	}
	return s.Store.Update(ctx, id, mutate)
}

// failing returns a hook over the same store with updates that fail as told.
func (f *fixture) failing(fail func(n int64, id string) error) *Hook {
	f.registry = prometheus.NewRegistry()
	return f.newHook(verification.NewService(verification.NewCodeSpace(project), &faulty{Store: f.store, fail: fail}))
}

func (f *fixture) newHook(service *verification.Service) *Hook {
	var o ClientOptions
	if f.graph != nil {
		o.GraphURL = f.graph.URL
	} else {
		o.Transport = discarding{}
	}
	client, err := NewClient(o)
	f.Expect(err).NotTo(HaveOccurred())
	f.codeMetrics = prometheus.NewRegistry()
	codes, err := messenger.NewCodeMetrics(func() *settings.Settings { return f.settings }, f.codeMetrics)
	f.Expect(err).NotTo(HaveOccurred())
	hook, err := NewHook(Options{
		Settings: func() *settings.Settings { return f.settings }, Service: service, Client: client,
		PageURL: pageOf, Codes: codes, Clock: f.clock, Log: f.logger(), Registerer: f.registry,
	})
	f.Expect(err).NotTo(HaveOccurred())
	return hook
}

// pageOf returns the page of a request as internal/page does, but for the ticket.
func pageOf(s *settings.Settings, _ *verification.Request) string {
	if s.Page == nil {
		return ""
	}
	return s.BaseURL + "/v/canaryticket"
}

// acceptContacts has the project take shared contacts.
func (f *fixture) acceptContacts() {
	f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = settings.HiddenShared })
}

// strict has the project take the prepared text alone, as projects do that say nothing of it.
func (f *fixture) strict() {
	f.change(func(s *settings.Settings) { s.WhatsApp.AcceptAnyText = false })
}

func (f *fixture) change(edit func(*settings.Settings)) {
	account := *f.settings.WhatsApp
	changed := *f.settings
	changed.WhatsApp = &account
	edit(&changed)
	f.settings = &changed
}

// logger logs everything into f.logs.
func (f *fixture) logger() logr.Logger {
	return funcr.NewJSON(func(line string) { _, _ = fmt.Fprintln(f.logs, line) }, funcr.Options{Verbosity: 9})
}

// request makes a request for a number. Its code follows from key: the one in testdata from "first".
func (f *fixture) request(key, number string, method verification.Method) verification.Initiated {
	f.t.Helper()
	n, err := phone.ParseWhatsApp(number)
	f.Expect(err).NotTo(HaveOccurred())
	made, err := f.service.Initiate(f.t.Context(), verification.Initiation{
		Phone: n, Method: method, IdempotencyKey: key, HasIdempotencyKey: true, TTL: 10 * time.Minute,
		DisplayName: f.settings.DisplayName,
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(made.Existing).To(BeFalse())
	return made
}

// state returns the request as it is stored.
func (f *fixture) state(id string) verification.Request {
	f.t.Helper()
	r, err := f.store.Read(f.t.Context(), id)
	f.Expect(err).NotTo(HaveOccurred())
	return r
}

// expectVerified expects a request to be verified, or not to be.
func (f *fixture) expectVerified(r verification.Request, want bool) {
	f.t.Helper()
	phase := verification.Pending
	if want {
		phase = verification.Verified
	}
	f.Expect(r.Phase).To(Equal(phase))
}

// post posts a body with the right signature, after half a minute.
func (f *fixture) post(body []byte) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.postTo(f.hook, body, sign(body, appSecret))
}

func (f *fixture) postTo(hook http.Handler, body []byte, signatures ...string) *httptest.ResponseRecorder {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
	for _, s := range signatures {
		r.Header.Add(signatureHeader, s)
	}
	return f.serve(hook, r)
}

func (f *fixture) serve(hook http.Handler, r *http.Request) *httptest.ResponseRecorder {
	f.t.Helper()
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r.WithContext(logr.NewContext(r.Context(), f.logger())))
	return w
}

// outcomes returns the counts of messages that are not zero.
func (f *fixture) outcomes() map[messenger.Outcome]int {
	counts := map[messenger.Outcome]int{}
	registry := prometheus.NewRegistry()
	f.Expect(registry.Register(f.hook.metrics.Messages)).To(Succeed())
	families, err := registry.Gather()
	f.Expect(err).NotTo(HaveOccurred())
	for _, m := range families[0].GetMetric() {
		if n := int(m.GetCounter().GetValue()); n > 0 {
			counts[messenger.Outcome(m.GetLabel()[1].GetValue())] = n
		}
	}
	return counts
}

// sendReplies has the waiting replies sent, and returns all that the Graph API was asked so far.
func (f *fixture) sendReplies() []seenCall {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	cancel()
	f.Expect(f.hook.Start(ctx)).To(Succeed())
	return f.graph.all()
}

// The texts that name who asks, as the fixture's project sends them.
var (
	saidVerified     = texts.Fill(textVerified, "Ada's Books")
	saidShareContact = texts.Fill(textShareContact, "Ada's Books")
	saidConfirm      = texts.Fill(textConfirm, "Ada's Books")
	saidTextRefused  = texts.Fill(english.TextRefused, "Ada's Books")
)

// The built-in texts.
var (
	english          = texts.BuiltIn().In("")
	textVerified     = english.Verified
	textConfirm      = english.Confirm
	textTextChanged  = english.TextChanged
	textTapRefused   = english.TapRefused
	textWrongNumber  = english.WrongNumber
	textExpired      = english.Expired
	textUnknown      = english.Unknown
	textShareContact = english.ShareContact
	textNumberHidden = english.NumberHidden
	textDeclined     = english.Declined
)

// expectedText returns the prepared text of a project of that name.
func expectedText(name string, code verification.Code) string {
	return ExpectedText(&settings.Settings{DisplayName: name}, &verification.Request{}, code)
}

func sign(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// object is a JSON object made in a test.
type object = map[string]any

// messageOf returns a message that the user sent half a minute after started.
func messageOf(kind string, content any, more object) object {
	m := object{
		"from": user, "id": "wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQ", "timestamp": "1795168830", "type": kind, kind: content,
	}
	for k, v := range more {
		m[k] = v
		if v == nil {
			delete(m, k)
		}
	}
	return m
}

func textOf(text string, more object) object { return messageOf("text", object{"body": text}, more) }

// webhookOf returns a webhook for the business number.
func webhookOf(messages ...any) []byte {
	return encode(envelopeOf(changeOf(object{
		"messaging_product": "whatsapp",
		"metadata":          object{"display_phone_number": businessNumber, "phone_number_id": numberID},
		"contacts":          []any{object{"profile": object{"name": "Canary Name"}, "wa_id": "16500000000"}},
		"messages":          messages,
	})))
}

func changeOf(value any) object { return object{"field": "messages", "value": value} }

func envelopeOf(changes ...any) object {
	return object{"object": "whatsapp_business_account", "entry": []any{object{"id": "102290129340398", "changes": changes}}}
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
