package httpapi

import (
	"errors"
	"net"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestConnections_whoMakesRoom(t *testing.T) {
	g := NewWithT(t)
	conn := func() net.Conn {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
		return a
	}
	c := newConnections(2)
	first, second, third, fourth, fifth := conn(), conn(), conn(), conn(), conn()
	g.Expect(c.change(first, http.StateNew)).To(BeNil())
	g.Expect(c.change(second, http.StateNew)).To(BeNil())
	g.Expect(c.change(first, http.StateActive)).To(BeNil())
	g.Expect(c.change(first, http.StateIdle)).To(BeNil())
	g.Expect(c.change(third, http.StateNew)).To(BeIdenticalTo(second), "idle for longest")
	g.Expect(c.change(second, http.StateClosed)).To(BeNil())
	g.Expect(c.change(first, http.StateActive)).To(BeNil())
	g.Expect(c.change(third, http.StateActive)).To(BeNil())
	turn{all: c, conn: first}.ours()
	turn{all: c, conn: third}.ours()
	g.Expect(c.change(fourth, http.StateNew)).To(BeIdenticalTo(fourth), "the others are at work")
	g.Expect(c.change(fourth, http.StateClosed)).To(BeNil())
	g.Expect(c.change(third, http.StateHijacked)).To(BeNil())
	g.Expect(c.change(fifth, http.StateNew)).To(BeNil())
	g.Expect(c.open).To(HaveLen(2))
	g.Expect(c.waiting.Len()).To(Equal(1))
}

// Slow headers are new or idle to net/http; slow bodies and slow readers are active, and have to make room as well.
func TestConnections_onlyWorkIsSafe(t *testing.T) {
	g := NewWithT(t)
	c := newConnections(3)
	all := make([]net.Conn, 8)
	for i := range all {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
		all[i] = a
	}
	turnAt := func(i int) turn { return turnOf(c.context(t.Context(), all[i])) }
	for i := range 3 {
		g.Expect(c.change(all[i], http.StateNew)).To(BeNil())
		g.Expect(c.change(all[i], http.StateActive)).To(BeNil())
		turnAt(i).served()
	}
	turnAt(0).ours()
	g.Expect(c.change(all[3], http.StateNew)).To(BeIdenticalTo(all[1]), "its body has not come")
	turnAt(1).theirs()
	g.Expect(c.change(all[1], http.StateIdle)).To(BeNil(), "what made room does not come back")
	turnAt(2).ours()
	turnAt(2).theirs()
	g.Expect(c.change(all[4], http.StateNew)).To(BeIdenticalTo(all[3]))
	g.Expect(c.change(all[5], http.StateNew)).To(BeIdenticalTo(all[2]), "its client does not take the answer")
	turnAt(0).theirs()
	g.Expect(c.change(all[0], http.StateIdle)).To(BeNil())
	g.Expect(c.change(all[6], http.StateNew)).To(BeIdenticalTo(all[4]))
	g.Expect(c.change(all[7], http.StateNew)).To(BeIdenticalTo(all[5]))
	g.Expect(c.open).To(HaveLen(3))
	turnOf(t.Context()).ours()
}
