package messenger

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRecoverPanic(t *testing.T) {
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
				defer RecoverPanic(func(failure error) { got = failure.Error() })
				c.handler()
			}()
			g.Expect(got).To(HavePrefix(c.want))
			g.Expect(got).NotTo(ContainSubstring("canary"))
			g.Expect(got).To(Or(Not(BeEmpty()), Equal(c.want)))
		})
	}
}
