package integration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// sharedTexts is a list to which specs and their processes add.
type sharedTexts struct {
	mu  sync.Mutex
	all []string
}

func (t *sharedTexts) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, text)
}

func (t *sharedTexts) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.all...)
}

// The client's own data in the requests of the suite, and as the fields of a body.
const (
	reference  = "canary-of-a-reference"
	cart       = "canary-of-the-metadata"
	clientData = `"reference":"` + reference + `","metadata":{"cart":"` + cart + `"}`
)

// addText adds a text that users send, and separately the code at its end, and the client's own data.
func (t *sharedTexts) addText(text string) {
	GinkgoHelper()
	t.add(reference)
	t.add(cart)
	words := strings.Fields(text)
	Expect(words).NotTo(BeEmpty())
	t.add(text)
	t.add(words[len(words)-1])
}

var (
	// printed is all output of the processes of the suite, at the level debug, with their metrics and problems at the end, and the Events
	// and statuses of the projects.
	printed sharedTexts
	// canaries are secrets, codes and texts that must not occur in it.
	canaries sharedTexts
	// numbers matches the whole phone numbers that the suite verifies, but not the digits of a fraction such as a duration's.
	numbers = regexp.MustCompile(`(^|[^0-9.])49151[0-9]{8}([^0-9]|$)`)
)

// Each process of the suite checks the output of its own specs. Whether there were logs and canaries at all is checked over all
// processes, because the specs are distributed among them at random.
var _ = SynchronizedAfterSuite(func() {
	all := strings.Join(printed.list(), "")
	for _, canary := range canaries.list() {
		if strings.Contains(all, canary) {
			Fail("a log, metric, problem, Event or status contains a canary: " + canary)
		}
	}
	Expect(numbers.FindString(all)).To(BeEmpty(), "a log, metric, problem, Event or status contains a phone number")
	shareFact("printed", all != "")
	shareFact("serving", strings.Contains(all, `"msg":"serving"`))
	shareFact("metrics", strings.Contains(all, "# TYPE phoneproof_"))
	shareFact("canaries", len(canaries.list()) > 0)
}, func() {
	if anyProcessHas("printed") { // unless none of the specs that ran starts a process
		Expect(anyProcessHas("serving")).To(BeTrue(), "the log of a server was checked")
		Expect(anyProcessHas("metrics")).To(BeTrue(), "the metrics of a process were checked")
		Expect(anyProcessHas("canaries")).To(BeTrue(), "there were canaries")
	}
})

// shareFact records for the first process that a fact holds in this one.
func shareFact(name string, holds bool) {
	GinkgoHelper()
	if holds {
		Expect(os.WriteFile(filepath.Join(sharedDir, name), nil, 0o600)).To(Succeed())
	}
}

// anyProcessHas reports whether a fact holds in any process.
func anyProcessHas(name string) bool {
	_, err := os.Stat(filepath.Join(sharedDir, name))
	return err == nil
}
