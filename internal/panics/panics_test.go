package panics_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/panics"
)

func TestRecover(t *testing.T) {
	var none []int
	for name, c := range map[string]struct {
		handler func()
		want    string
	}{
		"no panic":       {func() {}, ""},
		"a text":         {func() { panic("canary") }, "panic: string\n"},
		"an error":       {func() { panic(errors.New("canary")) }, "panic: *errors.errorString\n"},
		"of the runtime": {func() { _ = none[7] }, "panic: runtime error: index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := ""
			func() {
				defer panics.Recover(func(failure error) { got = failure.Error() })
				c.handler()
			}()
			g.Expect(got).To(HavePrefix(c.want))
			g.Expect(got).NotTo(ContainSubstring("canary"))
			g.Expect(got).To(Or(Not(BeEmpty()), Equal(c.want)))
		})
	}
}

func TestToError(t *testing.T) {
	g := NewWithT(t)
	g.Expect(panics.ToError(func() error { return nil })).To(Succeed())
	failure := errors.New("it failed")
	g.Expect(panics.ToError(func() error { return failure })).To(Equal(failure))
	g.Expect(panics.ToError(func() error { panic("canary") })).To(MatchError(And(HavePrefix("panic: string\n"), Not(ContainSubstring("canary")))))
}
