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

// texts is a collection that specs and their processes add to.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (t *texts) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, text)
}

func (t *texts) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.all...)
}

// addText adds a text that users send, and the code at its end by itself.
func (t *texts) addText(text string) {
	GinkgoHelper()
	words := strings.Fields(text)
	Expect(words).NotTo(BeEmpty())
	t.add(text)
	t.add(words[len(words)-1])
}

var (
	// printed is everything that the processes of the suite printed, at the level debug.
	printed texts
	// canaries are secrets, codes and texts that none of it may hold.
	canaries texts
	// numbers are those that the suite verifies, whole, and not the digits of a fraction such as a duration's.
	numbers = regexp.MustCompile(`(^|[^0-9.])49151[0-9]{8}([^0-9]|$)`)
)

// Each process of the suite judges what its own specs printed. That the suite printed logs and had something to look for is
// asked of all processes together: which specs ran in one of them is chance.
var _ = SynchronizedAfterSuite(func() {
	all := strings.Join(printed.list(), "")
	for _, canary := range canaries.list() {
		if strings.Contains(all, canary) {
			Fail("a log holds what it must not: " + canary)
		}
	}
	Expect(numbers.FindString(all)).To(BeEmpty(), "a log holds a number")
	note("printed", all != "")
	note("serving", strings.Contains(all, `"msg":"serving"`))
	note("canaries", len(canaries.list()) > 0)
}, func() {
	if noted("printed") { // not where none of the specs that ran starts anything
		Expect(noted("serving")).To(BeTrue(), "a log of a server was looked at")
		Expect(noted("canaries")).To(BeTrue(), "there was something to look for")
	}
})

// note tells the first process that something holds in this one.
func note(name string, holds bool) {
	GinkgoHelper()
	if holds {
		Expect(os.WriteFile(filepath.Join(sharedDir, name), nil, 0o600)).To(Succeed())
	}
}

// noted reports whether something holds in any process.
func noted(name string) bool {
	_, err := os.Stat(filepath.Join(sharedDir, name))
	return err == nil
}
