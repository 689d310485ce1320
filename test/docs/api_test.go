package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// patience bounds waits, which are longer on a loaded machine.
const patience = 2 * time.Minute

// initBlock returns a check that begins a verification of a project that earlier blocks created, in the namespace; if that is
// empty, in the reader's.
func initBlock(namespace, project string) check {
	return func(t *testing.T, r *reader, b block) {
		t.Helper()
		lookPathOrSkip(t, "curl")
		g := NewWithT(t)
		if namespace == "" {
			namespace = r.namespace
		}
		r.serveProject(t, namespace, project)
		r.run(t, b.text)
		g.Expect(r.recordedCalls(t)).To(ContainElement(HaveSuffix("port-forward service/" + render.Name(project) + " 8080:80")))
		var begun map[string]string
		g.Expect(json.Unmarshal(r.answer, &begun)).To(Succeed())
		g.Expect(begun).To(And(HaveKey("requestId"), HaveKey("tgLink")), "%s", r.answer)
		r.env["REQUEST_ID"], r.env["LINK"] = begun["requestId"], begun["tgLink"]
	}
}

// statusBlock reads the status after the user has sent the text and shared the contact.
func statusBlock(t *testing.T, r *reader, b block) {
	t.Helper()
	lookPathOrSkip(t, "curl")
	g := NewWithT(t)
	key, begun := r.env["KEY"], r.answer
	r.run(t, `curl -sSf "$SIM/sim/users/+4915112345678/send" -H 'Content-Type: application/json' -d "{\"link\": \"$LINK\"}"
curl -sSf "$SIM/sim/users/+4915112345678/share-contact" -H 'Content-Type: application/json' -d '{"wait": "20s"}'`)
	g.Expect(r.env["KEY"]).To(Equal(key))
	script := strings.ReplaceAll(b.text, "REQUEST_ID", r.env["REQUEST_ID"])
	g.Expect(script).NotTo(Equal(b.text))
	g.Eventually(func() string { return r.run(t, script) }).WithTimeout(patience).Should(ContainSubstring("VERIFIED"), "%s", begun)
}

// fitsInitRequest checks a body of init against the contract, and that it has none but documented fields.
func fitsInitRequest(t *testing.T, _ *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	g.Expect(err).NotTo(HaveOccurred())
	var body any
	g.Expect(json.Unmarshal([]byte(b.text), &body)).To(Succeed())
	schema := document.Components.Schemas["InitRequest"].Value
	schema.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
	g.Expect(schema.VisitJSON(body, openapi3.EnableJSONSchema2020())).To(Succeed())
}

// sample is a block with its replacement from a run.
type sample struct {
	block block
	got   string
	wrong bool
}

// answerInShape checks that the previous answer has the fields that the page shows, with values of the same kind.
func answerInShape(t *testing.T, r *reader, b block) {
	t.Helper()
	lookPathOrSkip(t, "curl") // like the block with the request
	answered, shown := fieldKinds(t, r.answer), fieldKinds(t, []byte(b.text))
	if *update {
		r.samples = append(r.samples, sample{b, formatSample(r.answer), !maps.Equal(answered, shown)})
		return
	}
	NewWithT(t).Expect(shown).To(Equal(answered), "run make samples")
}

// update rewrites the samples of a page if the fields of one differ from those of the API's answer; make samples sets it.
var update = flag.Bool("update", false, "rewrite the samples of pages with an outdated one")

// rewriteSamples replaces all samples of a page if one is outdated, because their times and ids belong to one verification.
func (r *reader) rewriteSamples() error {
	if !slices.ContainsFunc(r.samples, func(s sample) bool { return s.wrong }) {
		return nil
	}
	for _, s := range r.samples {
		if err := replaceBlock(s.block, s.got); err != nil {
			return err
		}
	}
	return nil
}

// sampleWidth is the largest number of characters in a line of a sample, unless one field is longer.
const sampleWidth = 120

// fieldPattern matches the fields of a flat JSON object whose strings contain no quotes.
var fieldPattern = regexp.MustCompile(`"[^"]*":("[^"]*"|[^",}]*)`)

// formatSample formats a flat JSON object with line breaks before the fields that would not fit.
func formatSample(answer []byte) string {
	text, width := "", 0
	for _, field := range fieldPattern.FindAllString(string(answer), -1) {
		switch {
		case text == "":
			text = "{"
			width = len(text)
		case width+len(field)+len(",,") > sampleWidth:
			text += ",\n "
			width = len(" ")
		default:
			text += ","
			width += len(",")
		}
		text += field
		width += len(field)
	}
	return text + "}\n"
}

// replaceBlock replaces the text of a block that is not indented.
func replaceBlock(b block, text string) error {
	path := filepath.Join(root, b.page)
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fence := "```" + b.language + "\n"
	if !strings.Contains(string(page), fence+b.text) {
		return fmt.Errorf("replace sample: %s has no block in line %d", b.page, b.line)
	}
	changed := strings.Replace(string(page), fence+b.text, fence+text, 1)
	return os.WriteFile(path, []byte(changed), 0o644)
}

func TestFormatSample(t *testing.T) {
	g := NewWithT(t)
	g.Expect(formatSample([]byte(`{"a":"b","n":12}`))).To(Equal(`{"a":"b","n":12}` + "\n"))
	long := strings.Repeat("x", sampleWidth-len(`{"a":"",`))
	g.Expect(formatSample([]byte(`{"a":"` + long + `","n":"a,b"}`))).To(Equal(`{"a":"` + long + `",` + "\n" + ` "n":"a,b"}` + "\n"))
}

// eventInShape checks that events have the fields that the page shows, in that order.
func eventInShape(t *testing.T, _ *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	sent := sendEvent(t, rawSecret, "", time.Now()).body
	g.Expect(fieldKinds(t, sent)).To(Equal(fieldKinds(t, []byte(b.text))))
	g.Expect(keysOf(t, string(sent))).To(Equal(keysOf(t, b.text)))
}

// attentionInShape compares a block with the event of a request whose code came from another number.
func attentionInShape(t *testing.T, _ *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	number, err := phone.FromE164("+4915112345678")
	g.Expect(err).NotTo(HaveOccurred())
	now := time.Now()
	sent := sendEventOf(t, rawSecret, "", now, &verification.Request{
		ID: "vr4soqontb52m5bmeyx7bop4b4", Phone: number, Method: verification.WhatsApp, Phase: verification.Pending,
		CreatedAt: now, ExpiresAt: now.Add(time.Minute), Hints: []verification.Hint{{Kind: verification.HintOtherNumber, At: now}},
	}).body
	g.Expect(fieldKinds(t, sent)).To(Equal(fieldKinds(t, []byte(b.text))))
	g.Expect(keysOf(t, string(sent))).To(Equal(keysOf(t, b.text)))
}

// fieldKinds returns the fields of a JSON object, each with its kind.
func fieldKinds(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var object map[string]any
	NewWithT(t).Expect(json.Unmarshal(text, &object)).To(Succeed(), "%s", text)
	kinds := map[string]string{}
	for name, value := range object {
		kinds[name] = kindOf(value)
	}
	return kinds
}

func kindOf(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%T", value)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", text); err == nil {
		return "a time"
	}
	if _, err := time.ParseDuration(text); err == nil {
		return "a duration " + text
	}
	for _, prefix := range []string{"https://t.me/ada_books_bot?start=", "/start ", "+49", "vr", "verification."} {
		if strings.HasPrefix(text, prefix) {
			return fmt.Sprintf("%s and %d more", prefix, len(text)-len(prefix))
		}
	}
	return "a word"
}

// keysOf returns the names of a flat object's fields in order.
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	var names []string
	for i := -1; decoder.More() || i < 0; i++ {
		token, err := decoder.Token()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if name, ok := token.(string); ok && i%2 == 0 {
			names = append(names, name)
		}
	}
	return names
}
