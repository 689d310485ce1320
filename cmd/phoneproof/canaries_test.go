package main

import (
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
	// numbers are those that the suite verifies, whole.
	numbers = regexp.MustCompile(`49151[0-9]{8}`)
)

var _ = AfterSuite(func() {
	all := strings.Join(printed.list(), "")
	Expect(canaries.list()).NotTo(BeEmpty())
	Expect(all).To(ContainSubstring(`"msg":"serving"`))
	for _, canary := range canaries.list() {
		if strings.Contains(all, canary) {
			Fail("a log holds what it must not: " + canary)
		}
	}
	Expect(numbers.FindString(all)).To(BeEmpty(), "a log holds a number")
})
