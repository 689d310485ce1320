package messenger

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// TestHandleBySender: the items of a sender stay in order, and one that ends keeps back no other.
func TestHandleBySender(t *testing.T) {
	g := NewWithT(t)
	items := []string{"a1", "b1", "a2", "c1", "b2", "a3"}
	var mu sync.Mutex
	handled := map[byte][]string{}
	HandleBySender(items, 2, func(item *string) byte { return (*item)[0] }, func(item *string) bool {
		mu.Lock()
		defer mu.Unlock()
		handled[(*item)[0]] = append(handled[(*item)[0]], *item)
		return *item != "b1"
	})
	g.Expect(handled).To(Equal(map[byte][]string{'a': {"a1", "a2", "a3"}, 'b': {"b1"}, 'c': {"c1"}}))
}

func TestMatchesSecret(t *testing.T) {
	g := NewWithT(t)
	derive := func(secret []byte) string { return "derived " + string(secret) }
	secrets := [][]byte{[]byte("new"), []byte("old")}
	g.Expect(MatchesSecret("derived new", secrets, derive)).To(BeTrue())
	g.Expect(MatchesSecret("derived old", secrets, derive)).To(BeTrue())
	g.Expect(MatchesSecret("derived ", secrets, derive)).To(BeFalse())
	g.Expect(MatchesSecret("derived new", nil, derive)).To(BeFalse())
}
