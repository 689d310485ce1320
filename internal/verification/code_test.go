package verification

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
)

var acme = NewCodeSpace("shop/acme")

func drawCode(t testing.TB, p CodeSpace) Code {
	t.Helper()
	code, err := p.NewCode(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestNewCode_hasTheDesignedForm(t *testing.T) {
	g := NewWithT(t)
	form := regexp.MustCompile(`^([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$`)
	seen := map[string]bool{}
	for range 1000 {
		code := drawCode(t, acme)
		g.Expect(code.Grouped()).To(MatchRegexp(form.String()))
		g.Expect(seen).NotTo(HaveKey(code.Grouped()))
		seen[code.Grouped()] = true
	}
}

func TestNewCode_usesAllRandomBits(t *testing.T) {
	g := NewWithT(t)
	zero, err := acme.NewCode(bytes.NewReader(make([]byte, randomSymbols)))
	g.Expect(err).NotTo(HaveOccurred())
	for i := range randomSymbols {
		for bit := range 5 {
			random := make([]byte, randomSymbols)
			random[i] = 1 << bit
			other, err := acme.NewCode(bytes.NewReader(random))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(other).NotTo(Equal(zero), "bit %d of symbol %d", bit, i)
		}
	}
}

func TestNewCode_withoutRandomness(t *testing.T) {
	g := NewWithT(t)
	_, err := acme.NewCode(bytes.NewReader(make([]byte, randomSymbols-1)))
	g.Expect(err).To(MatchError(ContainSubstring("random bits")))
}

func TestCodeFor_repeatsForTheSameKeyAndHeaderOnly(t *testing.T) {
	g := NewWithT(t)
	key, otherKey := sha256.Sum256([]byte("key")), sha256.Sum256([]byte("other"))
	code := acme.CodeFor(key, "order-1")
	g.Expect(acme.CodeFor(key, "order-1")).To(Equal(code))
	g.Expect(acme.CodeFor(key, "order-2")).NotTo(Equal(code))
	g.Expect(acme.CodeFor(otherKey, "order-1")).NotTo(Equal(code))
	other := NewCodeSpace("shop/other").CodeFor(key, "order-1")
	g.Expect(other.Grouped()[:randomSymbols]).NotTo(Equal(code.Grouped()[:randomSymbols]), "the check bits alone are no secret")
	g.Expect(acme.isValid(code.Reveal())).To(BeTrue())
}

// The values are pinned: a release that made other ids would lose the requests that are stored.
func TestRequestID_isPinned(t *testing.T) {
	g := NewWithT(t)
	code := acme.CodeFor(sha256.Sum256([]byte("key")), "order-1")
	g.Expect(code.Grouped()).To(Equal("ZJSE-JNS0-1TTQ-3W8Z"))
	g.Expect(acme.RequestID(code)).To(Equal("vrl4n7mnbpjmdnbbgtjvgc7jlj"))
}

func TestRequestID_isAnObjectName(t *testing.T) {
	g := NewWithT(t)
	for range 1000 {
		id := acme.RequestID(drawCode(t, acme))
		g.Expect(validation.IsDNS1123Label(id)).To(BeEmpty())
		g.Expect(IsRequestID(id)).To(BeTrue())
	}
}

func TestRequestID_differsByProject(t *testing.T) {
	g := NewWithT(t)
	code := drawCode(t, acme)
	g.Expect(NewCodeSpace("shop/other").RequestID(code)).NotTo(Equal(acme.RequestID(code)))
}

func TestIsRequestID(t *testing.T) {
	valid := acme.RequestID(drawCode(t, acme))
	for name, id := range map[string]string{
		"empty": "", "prefix": "vr", "short": valid[:25], "long": valid + "a", "upper case": "VR" + valid[2:],
		"other prefix": "xx" + valid[2:], "path": "../" + valid[3:], "digit one": valid[:25] + "1", "NUL": valid[:25] + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IsRequestID(id)).To(BeFalse())
		})
	}
}

func TestCode_isHiddenWhereverItIsPrinted(t *testing.T) {
	g := NewWithT(t)
	code := drawCode(t, acme)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "code", code)
	type holder struct{ hidden Code }
	printed := fmt.Sprintf("%v %s %+v %#v %v %v", code, code, code, code, Initiated{Code: code}, holder{code}) + log.String()
	plain := code.Reveal()
	g.Expect(printed).NotTo(ContainSubstring(string(plain[:8])))
	g.Expect(printed).NotTo(ContainSubstring(strings.Trim(fmt.Sprintf("%d", plain[:4]), "[]")))
	g.Expect(printed).NotTo(ContainSubstring(code.Grouped()[:9]))
}

func TestCode_checkRejectsAlmostEveryTypo(t *testing.T) {
	g := NewWithT(t)
	const tries = 200_000
	passed := 0
	for range tries / (codeSymbols * 31) {
		code := drawCode(t, acme).Reveal()
		for i := range code {
			for _, symbol := range []byte(alphabet) {
				typo := code
				if typo[i] = symbol; typo != code && acme.isValid(typo) {
					passed++
				}
			}
		}
	}
	// 15 check bits let one in 32,768 pass: about six; sixty would be a broken check.
	g.Expect(passed).To(BeNumerically("<", 60))
}

func TestError_matchesByCode(t *testing.T) {
	g := NewWithT(t)
	err := fmt.Errorf("get: %w", &Error{Code: CodeNotFound, Message: "other words"})
	g.Expect(errors.Is(err, ErrNotFound)).To(BeTrue())
	g.Expect(errors.Is(Unavailable(errors.New("down")), ErrNotFound)).To(BeFalse())
	g.Expect(errors.Is(errors.New("plain"), ErrNotFound)).To(BeFalse())
}
