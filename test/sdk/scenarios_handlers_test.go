package sdk

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// handlers are those of each language.
var handlers = map[string][]string{"go": {"nethttp"}, "typescript": {"fetch", "express"}, "python": {"wsgi", "asgi"}}

// inHandlers plays with each handler of the driver's language.
func inHandlers(run func(p *play, h *handler)) func(p *play) { return inHandlersOf(false, run) }

// inHandlersOf is inHandlers, whose handlers may take x-webhook-signature alone.
func inHandlersOf(bodySignature bool, run func(p *play, h *handler)) func(p *play) {
	return func(p *play) {
		for _, name := range handlers[p.language] {
			served := p.do("serve", object{
				"handler": name, "secrets": []string{p.secret}, "testSecrets": []string{p.testSecret}, "bodySignature": bodySignature,
			})
			port, _ := served["port"].(float64)
			run(p, &handler{p, name, "http://127.0.0.1:" + strconv.Itoa(int(port))})
		}
	}
}

// handler is a server of the driver that has a handler of the library alone.
type handler struct {
	p         *play
	name, url string
}

// post posts a delivery and returns the status of the answer. In chunks it does not say how long the body is.
func (h *handler) post(d delivery, inChunks bool) int {
	var body io.Reader = bytes.NewReader(d.body)
	if inChunks {
		body = io.MultiReader(body)
	}
	request, err := http.NewRequestWithContext(h.p.tb.Context(), http.MethodPost, h.url, body)
	h.p.Expect(err).NotTo(HaveOccurred())
	for name, value := range d.headers {
		s, _ := value.(string)
		if !strings.EqualFold(name, "content-length") {
			request.Header.Set(name, s)
		}
	}
	return h.send(request)
}

func (h *handler) send(request *http.Request) int {
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	h.p.Expect(err).NotTo(HaveOccurred(), h.name)
	_, _ = io.Copy(io.Discard, response.Body) // the status decides
	response.Body.Close()
	return response.StatusCode
}

// seen returns the ids of the requests whose events the callbacks of the driver got, of users and of test keys.
func (h *handler) seen() (events, tests []any) {
	var seen struct{ Events, Tests []object }
	h.p.doInto(&seen, "events", object{})
	for _, e := range seen.Events {
		events = append(events, e["requestId"])
	}
	for _, e := range seen.Tests {
		tests = append(tests, e["requestId"])
	}
	return events, tests
}

// made returns an event of a request with an id, signed now.
func (h *handler) made(secret, kind, requestID, more string) delivery {
	now := time.Now()
	body := strings.Replace(bodyOf(kind, now, more), "vr4soqontb52m5bmeyx7bop4b4", requestID, 1)
	return deliver(secret, "evt_"+requestID, now, body)
}

// handlerScenarios are about the handlers.
var handlerScenarios = []scenario{
	{
		name:   "a handler takes an event of the server once",
		mutant: mutant{"python", "self._seen is None or not _call(self._seen.has, key)", "True"},
		play: inHandlers(func(p *play, h *handler) {
			id := p.startVerified(nil)["requestId"]
			d := p.awaitEvents(id, 1)[0].delivery()
			for range 2 {
				p.Expect(h.post(d, false)).To(Equal(204), h.name)
			}
			events, tests := h.seen()
			p.Expect(events).To(ContainElement(id))
			p.Expect(countOf(events, id)).To(Equal(1), "%s: a replayed delivery", h.name)
			p.Expect(tests).NotTo(ContainElement(id))
		}),
	},
	{
		name:   "a handler answers 2xx only after its callback succeeded",
		mutant: mutant{"typescript", "await (isTestEvent(event) ? onTest : onEvent)?.(event, { id, body });", "Promise.resolve().then(() => onEvent(event, { id, body })).catch(() => {});"},
		play: inHandlers(func(p *play, h *handler) {
			id := p.name + h.name
			d := h.made(p.secret, success, id, `,"reference":"fail"`)
			p.Expect(h.post(d, false)).To(Equal(500), h.name)
			p.Expect(h.post(d, false)).To(Equal(204), h.name)
			events, _ := h.seen()
			p.Expect(countOf(events, id)).To(BeNumerically(">=", 1), "%s: the event is not lost", h.name)
		}),
	},
	{
		name:   "a handler gives events of test keys to a callback of their own",
		mutant: mutant{"go", "handle = h.options.OnTest", "handle = h.options.OnEvent"},
		play: inHandlers(func(p *play, h *handler) {
			id := p.name + h.name
			p.Expect(h.post(h.made(p.testSecret, testSuccess, id, `,"test":true`), true)).To(Equal(204), h.name)
			events, tests := h.seen()
			p.Expect(events).NotTo(ContainElement(id))
			p.Expect(tests).To(ContainElement(id))
		}),
	},
	{
		name:   "a handler takes an event whose id an event of a test key had",
		mutant: mutant{"go", `id = "test:" + id`, ""},
		play: inHandlers(func(p *play, h *handler) {
			id := p.name + h.name
			p.Expect(h.post(h.made(p.testSecret, testSuccess, id, `,"test":true`), false)).To(Equal(204), h.name)
			p.Expect(h.post(h.made(p.secret, success, id, ""), false)).To(Equal(204), h.name)
			events, _ := h.seen()
			p.Expect(events).To(ContainElement(id), "%s: who has a test secret chooses ids", h.name)
		}),
	},
	{
		name:   "a handler takes x-webhook-signature alone with an option, again after a failed callback, and a body once",
		mutant: mutant{"typescript", "bodySignature ? await hash(body) : id", "id"},
		play: inHandlersOf(true, func(p *play, h *handler) {
			id := p.name + h.name
			d := h.made(p.secret, success, id, `,"reference":"fail"`)
			alone := delivery{object{"x-webhook-signature": hexSign(p.secret, d.body)}, d.body}
			p.Expect(h.post(alone, false)).To(Equal(500), h.name)
			for _, again := range []delivery{d, alone, d} {
				p.Expect(h.post(again, false)).To(Equal(204), h.name)
			}
			events, _ := h.seen()
			p.Expect(countOf(events, id)).To(Equal(1), "%s: without its other headers an event is the same", h.name)
		}),
	},
	{
		name:   "a handler refuses what is not signed, with 401",
		mutant: mutant{"python", "statuses.get(error.code, 401)", "statuses.get(error.code, 400)"},
		play: inHandlers(func(p *play, h *handler) {
			id := p.name + h.name
			p.Expect(h.post(h.made(oldSecret, success, id, ""), false)).To(Equal(401), h.name)
			p.Expect(h.post(h.made(p.testSecret, success, id, ""), false)).To(Equal(401), h.name)
			p.Expect(h.post(h.made(p.secret, success, id, "").with("webhook-signature", nil), false)).To(Equal(401), h.name)
			events, tests := h.seen()
			p.Expect(append(events, tests...)).NotTo(ContainElement(id))
		}),
	},
	{
		name:   "a handler refuses other methods, and bodies above 64 KiB",
		mutant: mutant{"go", "http.MaxBytesReader(w, r.Body, maxEvent)", "http.MaxBytesReader(w, r.Body, 10*maxEvent)"},
		play: inHandlers(func(p *play, h *handler) {
			id := p.name + h.name
			request, err := http.NewRequestWithContext(p.tb.Context(), http.MethodGet, h.url, nil)
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(h.send(request)).To(Equal(405), h.name)
			large := h.made(p.secret, success, id, `,"later":"`+strings.Repeat("a", 64<<10)+`"`)
			p.Expect(h.post(large, false)).To(Equal(413), h.name)
			p.Expect(h.post(large, true)).To(Equal(413), h.name)
			p.Expect(h.post(h.made(p.secret, success, id, `,"later":"`+strings.Repeat("a", 60<<10)+`"`), true)).To(Equal(204), h.name)
		}),
	},
}

func countOf(all []any, one any) (count int) {
	for _, a := range all {
		if a == one {
			count++
		}
	}
	return count
}
