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
	g.Expect(c.change(fourth, http.StateNew)).To(BeIdenticalTo(fourth), "the others are at work")
	g.Expect(c.change(fourth, http.StateClosed)).To(BeNil())
	g.Expect(c.change(third, http.StateHijacked)).To(BeNil())
	g.Expect(c.change(fifth, http.StateNew)).To(BeNil())
	g.Expect(c.open).To(HaveLen(2))
	g.Expect(c.idle.Len()).To(Equal(1))
}
