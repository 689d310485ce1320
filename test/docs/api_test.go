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

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/controllers/project/render"
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
