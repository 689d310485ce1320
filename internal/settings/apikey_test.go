package settings

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"
)

func TestNewAPIKey_form(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for range 1000 {
		key, err := NewAPIKey(rand.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(key).To(MatchRegexp(`^pp_[0-9A-Za-z]{49}$`))
		g.Expect(CheckFormat([]byte(key))).To(Succeed())
		seen[key] = true
	}
	g.Expect(seen).To(HaveLen(1000))
}

func TestNewAPIKey_same_bits_same_key(t *testing.T) {
	g := NewWithT(t)
	// The format must never change: existing keys must stay valid.
	zero, err := NewAPIKey(bytes.NewReader(make([]byte, 32)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(zero).To(Equal("pp_" + strings.Repeat("0", 43) + "2CBep1"))
	ones, err := NewAPIKey(bytes.NewReader(bytes.Repeat([]byte{0xff}, 32)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ones).To(Equal("pp_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp142LQA7"))
}

func TestNewAPIKey_no_randomness(t *testing.T) {
	g := NewWithT(t)
	broken := errors.New("broken")
	_, err := NewAPIKey(iotest.ErrReader(broken))
	g.Expect(err).To(MatchError(broken))
	_, err = NewAPIKey(bytes.NewReader(make([]byte, 31)))
	g.Expect(err).To(HaveOccurred())
}

func TestCheckFormat(t *testing.T) {
	good, err := NewAPIKey(rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct {
		key  string
		want error
	}{
		"made by us":         {good, nil},
		"not ours":           {apiKey(""), nil},
		"empty":              {"", nil},
		"prefix alone":       {"pp_", ErrKeyLength},
		"too short":          {good[:len(good)-1], ErrKeyLength},
		"too long":           {good + "0", ErrKeyLength},
		"newline at the end": {good + "\n", ErrKeyLength},
		"space inside":       {good[:10] + " " + good[11:], ErrKeyCharacters},
		"underscore inside":  {good[:10] + "_" + good[11:], ErrKeyCharacters},
		"look-alike inside":  {good[:10] + "\u0410" + good[12:], ErrKeyCharacters},
		"swapped characters": {swapNeighbours(good), ErrKeyChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.want == nil {
				g.Expect(CheckFormat([]byte(tc.key))).To(Succeed())
				return
			}
			g.Expect(CheckFormat([]byte(tc.key))).To(MatchError(tc.want))
		})
	}
}

// swapNeighbours swaps the first two neighbours that differ, the most common typing mistake.
func swapNeighbours(key string) string {
	for i := 3; i < len(key)-1; i++ {
		if key[i] != key[i+1] {
			return key[:i] + string(key[i+1]) + string(key[i]) + key[i+2:]
		}
	}
	return key
}

func TestCheckFormat_finds_every_changed_character(t *testing.T) {
	g := NewWithT(t)
	key, err := NewAPIKey(rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	for i := len(keyPrefix); i < len(key); i++ {
		for _, c := range []byte(base62) {
			if c == key[i] {
				continue
			}
			g.Expect(CheckFormat([]byte(key[:i]+string(c)+key[i+1:]))).To(MatchError(ErrKeyChecksum), "character %d", i)
		}
	}
	g.Expect(CheckFormat([]byte(strings.ToLower(key)))).To(MatchError(ErrKeyChecksum))
}

func TestCheckFormat_errors_hold_no_key(t *testing.T) {
	g := NewWithT(t)
	for _, err := range []error{ErrKeyLength, ErrKeyCharacters, ErrKeyChecksum} {
		g.Expect(regexp.MustCompile(`pp_\w`).MatchString(err.Error())).To(BeFalse())
	}
}
