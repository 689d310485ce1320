package phone

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	. "github.com/onsi/gomega"
)

func TestString_masks(t *testing.T) {
	for e164, want := range map[string]string{
		"+4915112345607":   "+49*********07",
		"+12015550123":     "+1********23",
		"+878101234567890": "+878**********90",
		"+6834000":         "+683****",
		"+68340001":        "+683*****",
		"+12345":           "+1****",
	} {
		t.Run(want, func(t *testing.T) {
			NewWithT(t).Expect(mustNumber(e164).String()).To(Equal(want))
		})
	}
}

func TestNumber_neverPrintsItsDigits(t *testing.T) {
	const e164 = "+4915112345607"
	n := mustNumber(e164)
	type hidden struct{ number Number }
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o", "%t", "%20s"} {
		fmt.Fprintf(&out, verb+"\n", n)
		fmt.Fprintf(&out, verb+"\n", &n)
		fmt.Fprintf(&out, verb+"\n", []Number{n})
		fmt.Fprintf(&out, verb+"\n", struct{ Number Number }{n})
	}
	fmt.Fprintf(&out, "%v %+v %#v %d\n", hidden{n}, hidden{n}, hidden{n}, hidden{n})
	noTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, noTime), slog.NewJSONHandler(&out, noTime)} {
		slog.New(handler).Info("m", "n", n, "list", []Number{n}, "struct", struct{ Number Number }{n}, "hidden", hidden{n})
	}
	g := NewWithT(t)
	g.Expect(out.String()).To(ContainSubstring("n=+49*********07"))
	g.Expect(out.String()).To(ContainSubstring(`"n":"+49*********07"`))
	for i := range len(n.Digits()) - 3 {
		g.Expect(out.String()).NotTo(ContainSubstring(n.Digits()[i : i+4]))
	}
}

func TestNumber_refusesImplicitEncoding(t *testing.T) {
	g := NewWithT(t)
	n := mustNumber("+4915112345607")
	_, err := json.Marshal(map[string]any{"phoneNumber": n})
	g.Expect(err).To(MatchError(errEncoded))
	_, err = json.Marshal(map[Number]int{n: 1})
	g.Expect(err).To(MatchError(ContainSubstring(errEncoded.Error())))
	_, err = n.Value()
	g.Expect(err).To(MatchError(errEncoded))
}

func TestError_messagesAreForTheClient(t *testing.T) {
	g := NewWithT(t)
	for _, e := range []*Error{
		errEmpty, errInputLong, errDigitsLong, errCountryLong, errShort, errNotDigits, errNotASCII, errControl,
		errURI, errExtension, errNoCountry, errUnknown, errInvalid, errPremium, errAnonymous, errService,
		errReported, errStored,
	} {
		g.Expect(string(e.Reason)).To(MatchRegexp(`^[a-z]+(_[a-z]+)*$`))
		g.Expect(e.Error()).To(MatchRegexp(`^[ -~]{20,}$`))
		g.Expect(e.Error()).NotTo(MatchRegexp(`[0-9]{4}`))
	}
}
