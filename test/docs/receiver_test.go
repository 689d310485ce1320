package docs

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/ports"
)

// receiverFolder has the programs of docs/webhooks.md.
const receiverFolder = root + "/docs/examples/webhook/"

// TestWebhookReceivers sends each program what phoneproof sends, and what others may.
func TestWebhookReceivers(t *testing.T) {
	for _, program := range []string{"go/main.go", "node/receiver.mjs", "python/receiver.py"} {
		t.Run(filepath.Dir(program), func(t *testing.T) {
			command := exampleCommand(t, receiverFolder+program)
			t.Run("refuses what is not signed", func(t *testing.T) { startReceiver(t, command, standardSecret).refusesForgeries() })
			t.Run("survives bodies of other lengths", func(t *testing.T) { startReceiver(t, command, standardSecret).survivesLengths() })
			t.Run("stores an event once", func(t *testing.T) { startReceiver(t, command, standardSecret).storesOnce() })
			t.Run("acknowledges what it stored alone", func(t *testing.T) { startReceiver(t, command, standardSecret).storesFirst() })
			t.Run("takes both secrets of a rotation", func(t *testing.T) {
				for secret, other := range map[string]string{rawSecret: standardSecret, standardSecret: rawSecret} {
					r := startReceiver(t, command, secret)
					r.expectStored(sendEvent(t, secret, other, time.Now()))
					r.stop()
					r.events = t.TempDir()
					r.start()
					r.expectStored(sendEvent(t, other, secret, time.Now()))
				}
			})
		})
	}
}

// receiverExample is a running program.
type receiverExample struct {
	*WithT

	t                       *testing.T
	command                 []string
	secret, address, events string
	stop                    func()
}

func startReceiver(t *testing.T, command []string, secret string) *receiverExample {
	t.Helper()
	r := &receiverExample{WithT: NewWithT(t), t: t, command: command, secret: secret, address: ports.Address(t), events: t.TempDir()}
	r.start()
	return r
}

func (r *receiverExample) start() {
	r.t.Helper()
	r.stop = startSite(r.t, r.command, r.address, "WEBHOOK_SECRET="+r.secret, "EVENTS="+r.events)
}

// post returns the status that answers an event, with other headers: pairs of a name and a value, which is left out if it is empty.
func (r *receiverExample) post(e event, changes ...string) int {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.address+"/hooks/phone", bytes.NewReader(e.body))
	r.Expect(err).NotTo(HaveOccurred())
	request.Header = e.header.Clone()
	for i := 0; i < len(changes); i += 2 {
		request.Header.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			request.Header.Del(changes[i])
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// stored returns the bodies that the program stored, by their ids.
func (r *receiverExample) stored() map[string]string {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.events, "*"))
	r.Expect(err).NotTo(HaveOccurred())
	bodies := map[string]string{}
	for _, name := range files {
		body, err := os.ReadFile(name)
		r.Expect(err).NotTo(HaveOccurred())
		bodies[strings.TrimSuffix(filepath.Base(name), ".json")] = string(body)
	}
	return bodies
}

// expectStored expects the program to take an event, and to have it and no other.
func (r *receiverExample) expectStored(e event) {
	r.t.Helper()
	r.Expect(r.post(e)).To(Equal(http.StatusNoContent))
	r.Expect(r.stored()).To(Equal(map[string]string{e.header.Get("Webhook-Id"): string(e.body)}))
}

func (r *receiverExample) refusesForgeries() {
	r.t.Helper()
	const id, sent, presented = "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"
	good := sendEvent(r.t, standardSecret, "", time.Now())
	signature := good.header.Get(presented)
	body := bytes.Replace(good.body, []byte("+49151"), []byte("+49152"), 1)
	for name, forged := range map[string]struct {
		event
		changes []string
	}{
		"no headers":                 {event{http.Header{}, good.body}, nil},
		"no signature":               {good, []string{presented, ""}},
		"blank signature":            {good, []string{presented, " "}},
		"no id":                      {good, []string{id, ""}},
		"another id":                 {good, []string{id, "evt_2"}},
		"non-ASCII id":               {good, []string{id, "evt_ä€"}},
		"no time":                    {good, []string{sent, ""}},
		"no number for time":         {good, []string{sent, "soon"}},
		"another time":               {good, []string{sent, strconv.FormatInt(time.Now().Unix()+100, 10)}},
		"negative time":              {good, []string{sent, "-" + good.header.Get(sent)}},
		"endless time":               {good, []string{sent, strings.Repeat("9", 5000)}},
		"time in other digits":       {good, []string{sent, "١٧٩٥٢٦٢٤٩٠"}},
		"superscript time":           {good, []string{sent, "\xb2"}},
		"non-ASCII signature":        {good, []string{presented, "v1,ä€"}},
		"non-ASCII, of right length": {good, []string{presented, signature[:len(signature)-2] + "ä"}},
		"signature of no text":       {good, []string{presented, "v1,\xff\xfe"}},
		"no base64":                  {good, []string{presented, "v1,!!!"}},
		"version alone":              {good, []string{presented, "v1,"}},
		"short signature":            {good, []string{presented, signature[:len(signature)-4]}},
		"long signature":             {good, []string{presented, signature + "AAAA"}},
		"another version":            {good, []string{presented, "v2" + signature[2:]}},
		"many wrong signatures":      {good, []string{presented, strings.Repeat("v1,AAAA ", 500)}},
		"another body":               {event{good.header, body}, nil},
		"no body":                    {event{good.header, nil}, nil},
		"another secret":             {sendEvent(r.t, rawSecret, "", time.Now()), nil},
		"sent an hour ago":           {sendEvent(r.t, standardSecret, "", time.Now().Add(-time.Hour)), nil},
		"sent in an hour":            {sendEvent(r.t, standardSecret, "", time.Now().Add(time.Hour)), nil},
	} {
		r.Expect(r.post(forged.event, forged.changes...)).To(Equal(http.StatusUnauthorized), name)
	}
	r.Expect(r.stored()).To(BeEmpty())

	r.Expect(r.post(good, presented, "v1,ä€ v1a,AAAA v1, "+signature)).To(Equal(http.StatusNoContent), "among others")
	r.expectStored(good)
}

func (r *receiverExample) survivesLengths() {
	r.t.Helper()
	good := sendEvent(r.t, standardSecret, "", time.Now())
	short := strings.TrimSuffix(string(good.body), "}")
	for name, sent := range map[string]struct{ length, body string }{
		"none": {"", short}, "negative": {"-1", short}, "no number": {"many", short}, "not ASCII": {"\xb2", short},
		"not reached": {strconv.Itoa(len(good.body)), short}, "shorter": {strconv.Itoa(len(good.body) - 2), short},
		"endless": {strings.Repeat("9", 5000), short}, "large": {"100000", strings.Repeat("1", 100_000)},
	} {
		var raw bytes.Buffer
		raw.WriteString("POST /hooks/phone HTTP/1.1\r\nHost: receiver\r\nConnection: close\r\n")
		if sent.length != "" {
			raw.WriteString("Content-Length: " + sent.length + "\r\n")
		}
		r.Expect(good.header.WriteSubset(&raw, map[string]bool{"Content-Length": true})).To(Succeed())
		raw.WriteString("\r\n" + sent.body)
		r.Expect(r.sendRaw(raw.Bytes())).To(MatchRegexp(`^HTTP/1\.[01] 4`), name)
	}
	r.Expect(r.stored()).To(BeEmpty())
	r.expectStored(good)
}

// sendRaw returns what answers a request that ends there.
func (r *receiverExample) sendRaw(request []byte) string {
	r.t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(r.t.Context(), "tcp", r.address)
	r.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write(request) // the answer may come, and the connection end, before all of it was sent
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

func (r *receiverExample) storesOnce() {
	r.t.Helper()
	first := sendEvent(r.t, standardSecret, "", time.Now())
	r.expectStored(first)
	r.expectStored(first) // a replay
	number, err := phone.FromE164("+4915112345678")
	r.Expect(err).NotTo(HaveOccurred())
	request := &verification.Request{
		ID: "vr4soqontb52m5bmeyx7bop4b4", Phone: number, Actual: number, Method: verification.Telegram, Phase: verification.Verified,
		CreatedAt: time.Now(), VerifiedAt: time.Now(),
	}
	r.stop()
	r.events = r.t.TempDir()
	old := filepath.Join(r.events, "evt_old.json")
	writeFile(r.t, old, "{}")
	r.Expect(os.Chtimes(old, time.Time{}, time.Now().Add(-8*24*time.Hour))).To(Succeed())
	r.start()
	r.Eventually(r.stored).WithTimeout(patience).Should(BeEmpty(), "what is older than all attempts is forgotten")
	r.expectStored(sendEventOf(r.t, standardSecret, "", time.Now().Add(-time.Minute), request))
	r.stop()
	r.start()
	r.expectStored(sendEventOf(r.t, standardSecret, "", time.Now(), request)) // the next attempt
}

func (r *receiverExample) storesFirst() {
	r.t.Helper()
	e := sendEvent(r.t, standardSecret, "", time.Now())
	r.Expect(os.Rename(r.events, r.events+"-away")).To(Succeed())
	r.Expect(r.post(e)).To(Equal(http.StatusInternalServerError))
	r.Expect(os.Rename(r.events+"-away", r.events)).To(Succeed())
	r.expectStored(e)
}
