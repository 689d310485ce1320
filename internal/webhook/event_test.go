package webhook

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEvent_bytesArePinned(t *testing.T) {
	for name, change := range map[string]func(*verification.Request){
		"event":               func(*verification.Request) {},
		"event_sharedcontact": func(r *verification.Request) { r.Assurance = verification.AssuranceSharedContact },
		"event_session": func(r *verification.Request) {
			r.Terms.Level, r.ProvenAt = verification.LevelSession, r.CreatedAt
		},
		"event_session_echo": func(r *verification.Request) {
			r.Terms.Level, r.ProvenAt, r.Assurance = verification.LevelSession, r.CreatedAt, verification.AssuranceEcho
		},
		"event_session_code": func(r *verification.Request) {
			r.Terms = verification.Terms{Level: verification.LevelSession, Deliver: verification.DeliverCode}
			r.ProvenAt, r.Via = r.CreatedAt, verification.ViaCode
		},
		"event_telegram":       func(r *verification.Request) { r.Method = verification.Telegram },
		"event_wholesecond":    func(r *verification.Request) { r.VerifiedAt = r.VerifiedAt.Truncate(time.Second) },
		"event_deliverystate":  func(r *verification.Request) { r.Delivery.Attempts, r.Version, r.Epoch = 4, "77", 9 },
		"event_kubectlrequest": func(r *verification.Request) { r.ID = "made.with.kubectl" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := verifiedRequest()
			change(r)
			e, err := NewEvent("shop/checkout", r)
			g.Expect(err).NotTo(HaveOccurred())
			golden := filepath.Join("testdata", name+".txt")
			got := e.ID() + "\n" + string(e.body.Reveal()) + "\n"
			if *update {
				g.Expect(os.WriteFile(golden, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(string(want), got)).To(BeEmpty())
			expectContract(g, e.body.Reveal())
		})
	}
}

// expectContract checks a body against the event's schema in openapi.yaml, made stricter: it has no other fields.
func expectContract(g *WithT, body []byte) {
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	g.Expect(err).NotTo(HaveOccurred())
	var fields map[string]any
	g.Expect(json.Unmarshal(body, &fields)).To(Succeed())
	name := "verification.update"
	if strings.HasSuffix(fields["event"].(string), ".success") {
		name = "verification.success"
	}
	schema := document.Webhooks[name].Post.RequestBody.Value.Content["application/json"].Schema.Value
	schema.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
	g.Expect(schema.VisitJSON(fields, openapi3.EnableJSONSchema2020())).To(Succeed(), string(body))
}

func TestEventID_distinguishesInstances(t *testing.T) {
	g := NewWithT(t)
	ids := map[string]bool{}
	add := func(project string, change func(*verification.Request)) {
		r := verifiedRequest()
		change(r)
		e, err := NewEvent(project, r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.ID()).To(MatchRegexp(`^evt_[a-z2-7]{32}$`))
		ids[e.ID()] = true
	}
	add("shop/checkout", func(*verification.Request) {})
	add("shop/checkout", func(r *verification.Request) { r.Delivery.Attempts = 3 })
	add("shop/checkout", func(r *verification.Request) { r.CreatedAt = r.CreatedAt.Truncate(time.Millisecond) })
	add("shop/checkout", func(r *verification.Request) { r.CreatedAt = r.CreatedAt.In(time.FixedZone("", -3600)) })
	g.Expect(ids).To(HaveLen(1))
	add("shop/checkout", func(r *verification.Request) { r.CreatedAt = r.CreatedAt.Add(time.Millisecond) })
	add("shop/checkout", func(r *verification.Request) { r.ID = "vr2" })
	add("bar/checkout", func(*verification.Request) {})
	g.Expect(ids).To(HaveLen(4))
}

func TestNewEvent_refusesRequestsWithoutOne(t *testing.T) {
	for name, change := range map[string]func(*verification.Request){
		"pending":            func(r *verification.Request) { r.Phase = verification.Pending },
		"expired at no time": func(r *verification.Request) { r.Phase, r.ExpiresAt = verification.Expired, time.Time{} },
		"without a time":     func(r *verification.Request) { r.VerifiedAt = time.Time{} },
		"without its number": func(r *verification.Request) { r.Phone = phone.Number{} },
		"without the actual": func(r *verification.Request) { r.Actual = phone.Number{} },
	} {
		t.Run(name, func(t *testing.T) {
			r := verifiedRequest()
			change(r)
			_, err := NewEvent("p", r)
			NewWithT(t).Expect(err).To(MatchError(ErrNoEvent))
		})
	}
}

func TestEvent_printsNoNumber(t *testing.T) {
	g := NewWithT(t)
	e := testEvent()
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "event", e)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", e, &e, struct{ e Event }{e})
	}
	g.Expect(out.String()).To(ContainSubstring(e.ID()))
	g.Expect(out.String()).NotTo(Or(
		ContainSubstring("5512345678"), ContainSubstring(fmt.Sprintf("%x", "5512345678")), ContainSubstring("53 53 49 50 51 52"),
	), "digits as text, hex or bytes")
}

func FuzzEventBody(f *testing.F) {
	for _, seed := range []string{"shop/checkout", `a"b\c`, "\x00\x1f\x7f", "<&>\u2028\u2029", "\xff\xfe", "😀", ""} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, project, id string) {
		g := NewWithT(t)
		r := verifiedRequest()
		r.ID = id
		e, err := NewEvent(project, r)
		g.Expect(err).NotTo(HaveOccurred())
		var got struct {
			ProjectID string `json:"projectId"`
			RequestID string `json:"requestId"`
		}
		g.Expect(json.Unmarshal(e.body.Reveal(), &got)).To(Succeed())
		g.Expect(got.ProjectID).To(Equal(string([]rune(project))))
		g.Expect(got.RequestID).To(Equal(string([]rune(id))))
	})
}

func TestNewEvent_ofEachKind(t *testing.T) {
	g := NewWithT(t)
	hinted := func(phase verification.Phase, kind verification.HintKind) *verification.Request {
		r := verifiedRequest()
		r.Phase, r.VerifiedAt, r.Actual = phase, time.Time{}, phone.Number{}
		r.CreatedAt, r.ExpiresAt = time.UnixMilli(1_795_000_000_000), time.UnixMilli(1_795_000_600_000)
		if kind != "" {
			r.Hints = []verification.Hint{{Kind: kind, At: time.UnixMilli(1_795_000_100_000)}}
		}
		return r
	}
	proven := func(phase verification.Phase, hints ...verification.HintKind) *verification.Request {
		r := hinted(phase, "")
		r.Terms.Level, r.Assurance, r.Actual = verification.LevelSession, verification.AssuranceEcho, r.Phone
		r.ProvenAt, r.Via = time.UnixMilli(1_795_000_090_000), verification.ViaCode // which only a success shows
		for i, kind := range hints {
			r.Hints = append(r.Hints, verification.Hint{Kind: kind, At: time.UnixMilli(1_795_000_100_000 + int64(i)*1000)})
		}
		return r
	}
	withData := hinted(verification.Expired, "")
	withData.ClientData = verification.ClientData{Reference: "order \"7\"", Metadata: map[string]string{"b": "2", "a": "1"}, Locale: "es"}
	ids := map[string]bool{}
	for want, r := range map[string]*verification.Request{
		`{"event":"verification.attention","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:20.000Z","hint":"OTHER_NUMBER"}`: hinted(verification.Pending, verification.HintOtherNumber),
		`{"event":"verification.attention","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:20.000Z","hint":"NUMBER_HIDDEN"}`: hinted(verification.Pending, verification.HintNumberHidden),
		`{"event":"verification.expired","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:16:40.000Z","hint":"OTHER_NUMBER"}`: hinted(verification.Expired, verification.HintOtherNumber),
		`{"event":"verification.declined","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:20.000Z","hint":"DECLINED"}`: hinted(verification.Expired, verification.HintDeclined),
		`{"event":"verification.attention","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:20.000Z","hint":"AWAITING_CONFIRMATION"}`: proven(verification.Pending, verification.HintAwaitingConfirmation),
		`{"event":"verification.declined","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:21.000Z","hint":"DECLINED"}`: proven(verification.Expired, verification.HintAwaitingConfirmation, verification.HintDeclined),
		`{"event":"verification.expired","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:21.000Z","hint":"WRONG_CODE"}`: proven(verification.Expired, verification.HintAwaitingConfirmation, verification.HintWrongCode),
		`{"event":"verification.expired","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:08:21.000Z","hint":"CANCELED"}`: proven(verification.Expired, verification.HintAwaitingConfirmation, verification.HintCanceled),
		`{"event":"verification.expired","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:16:40.000Z","hint":"AWAITING_CONFIRMATION"}`: proven(verification.Expired, verification.HintAwaitingConfirmation),
		`{"event":"verification.expired","phoneNumber":"PHONE","requestId":"REQUEST","projectId":"p","method":"WHATSAPP",` +
			`"timestamp":"2026-11-18T11:16:40.000Z","reference":"order \"7\"","metadata":{"a":"1","b":"2"}}`: withData,
	} {
		e, err := NewEvent("p", r)
		g.Expect(err).NotTo(HaveOccurred())
		want = strings.NewReplacer("PHONE", r.Phone.E164(), "REQUEST", r.ID, "METHOD", string(r.Method)).Replace(want)
		g.Expect(string(e.body.Reveal())).To(Equal(want))
		expectContract(g, e.body.Reveal())
		ids[e.ID()] = true
		tested := *r
		tested.Test = true
		test, err := NewEvent("p", &tested)
		g.Expect(err).NotTo(HaveOccurred())
		expectContract(g, test.body.Reveal())
	}
	g.Expect(ids).To(HaveLen(9), "each is an event of its own, but for those of one request that exclude each other")
}

// A receiver drops what has an id that it knows, so the proof of an echo is an event of its own.
func TestEventID_distinguishesTheProofOfAnEcho(t *testing.T) {
	g := NewWithT(t)
	r := verifiedRequest()
	r.Phase, r.VerifiedAt, r.Terms.Level = verification.Pending, time.Time{}, verification.LevelSession
	r.Hints = []verification.Hint{{Kind: verification.HintAwaitingConfirmation, At: time.UnixMilli(1_795_000_100_000)}}
	asked, err := NewEvent("p", r)
	g.Expect(err).NotTo(HaveOccurred())
	r.ProvenAt, r.Hints[0].At = time.UnixMilli(1_795_000_200_000), time.UnixMilli(1_795_000_200_000)
	proven, err := NewEvent("p", r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proven.ID()).NotTo(Equal(asked.ID()))
	r.Delivery.Attempts = 3
	again, err := NewEvent("p", r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.ID()).To(Equal(proven.ID()))
}
