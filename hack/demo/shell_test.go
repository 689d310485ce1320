package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTyped_canBeTyped(t *testing.T) {
	for want, words := range map[string][]string{
		"kubectl get pods":                        {"kubectl", "get", "pods"},
		"kubectl wait --for=condition=Ready":      {"kubectl", "wait", "--for=condition=Ready"},
		`curl --json '{"name":"Ada"}'`:            {"curl", "--json", `{"name":"Ada"}`},
		`echo 'it'\''s'`:                          {"echo", "it's"},
		"curl 'http://127.0.0.1/x?id=1&wait=20s'": {"curl", "http://127.0.0.1/x?id=1&wait=20s"},
		"echo ''": {"echo", ""},
	} {
		NewWithT(t).Expect(typed(words[0], words[1:])).To(Equal(want))
	}
}

func TestNewNumber_isOneOfAGermanMobile(t *testing.T) {
	number, err := newNumber()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(number).To(MatchRegexp(`^\+491511[0-9]{7}$`))
}
