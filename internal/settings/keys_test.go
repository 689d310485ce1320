package settings

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func newKey(name, value string) Key {
	return Key{Name: name, Hash: sha256.Sum256([]byte(value)), Scopes: ScopeInit | ScopeStatus}
}

func TestKeysFind(t *testing.T) {
	const generated = "pp_" + "0000000000000000000000000000000000000000000" + "2CBep1"
	longest := strings.Repeat("k", maxAPIKey)
	limited := newKey("limited", apiKey("limited"))
	limited.ExpiresAt = start.Add(time.Minute)
	former := newKey("rotated", apiKey("former"))
	former.until = start.Add(time.Minute)
	both := newKey("both", apiKey("both"))
	both.until, both.ExpiresAt = start.Add(2*time.Minute), start.Add(time.Minute)
	all := NewKeys(
		newKey("plain", apiKey("plain")), newKey("generated", generated), newKey("longest", longest),
		limited, newKey("rotated", apiKey("rotated")), former, both,
	)
	for name, tc := range map[string]struct {
		presented string
		after     time.Duration
		want      string
		err       error
	}{
		"current":                        {apiKey("plain"), 0, "plain", nil},
		"generated":                      {generated, 0, "generated", nil},
		"longest":                        {longest, 0, "longest", nil},
		"longer than any key":            {longest + "k", 0, "", ErrKeyUnknown},
		"empty":                          {"", 0, "", ErrKeyUnknown},
		"unknown":                        {apiKey("unknown"), 0, "", ErrKeyUnknown},
		"one bit changed":                {apiKey("plaio"), 0, "", ErrKeyUnknown},
		"cut short":                      {apiKey("plai"), 0, "", ErrKeyUnknown},
		"with a newline":                 {apiKey("plain") + "\n", 0, "", ErrKeyUnknown},
		"in lower case":                  {strings.ToLower(apiKey("plain")), 0, "", ErrKeyUnknown},
		"generated with a wrong sum":     {generated[:51] + "2", 0, "", ErrKeyUnknown},
		"just before it expires":         {apiKey("limited"), time.Minute - 1, "limited", nil},
		"when it expires":                {apiKey("limited"), time.Minute, "", ErrKeyExpired},
		"former, just before the end":    {apiKey("former"), time.Minute - 1, "rotated", nil},
		"former, at the end":             {apiKey("former"), time.Minute, "", ErrKeyUnknown},
		"successor of the former":        {apiKey("rotated"), time.Hour, "rotated", nil},
		"former of an expired key":       {apiKey("both"), time.Minute, "", ErrKeyExpired},
		"former of an expired key, over": {apiKey("both"), 2 * time.Minute, "", ErrKeyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			key, err := all.Find(tc.presented, start.Add(tc.after))
			if tc.err != nil {
				g.Expect(err).To(MatchError(tc.err))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(key.Name).To(Equal(tc.want))
		})
	}
}

func TestKeysFind_no_keys(t *testing.T) {
	_, err := Keys{}.Find(apiKey(""), start)
	NewWithT(t).Expect(err).To(MatchError(ErrKeyUnknown))
}

func TestNewKeys_first_of_equal_ones_counts(t *testing.T) {
	g := NewWithT(t)
	key, err := NewKeys(newKey("first", apiKey("")), newKey("second", apiKey(""))).Find(apiKey(""), start)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key.Name).To(Equal("first"))
}

func TestKeys_compareEveryBit(t *testing.T) {
	g := NewWithT(t)
	key := newKey("web", apiKey(""))
	for bit := range sha256.Size * 8 {
		other := key.Hash
		other[bit/8] ^= 1 << (bit % 8)
		g.Expect(NewKeys(key).findIndex(&other)).To(Equal(-1), "bit %d", bit)
	}
	g.Expect(NewKeys(key).findIndex(&key.Hash)).To(BeZero())
}

func TestKeyHas(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Key{Scopes: ScopeInit}.Has(ScopeInit)).To(BeTrue())
	g.Expect(Key{Scopes: ScopeInit}.Has(ScopeStatus)).To(BeFalse())
}

// fullKeys returns the maximum number of keys of a project, each with the maximum number of former values.
func fullKeys() Keys {
	var all []Key
	for i := range 32 {
		all = append(all, newKey(fmt.Sprintf("key-%d", i), apiKey(strconv.Itoa(i))))
		for j := range maxFormer {
			former := newKey(fmt.Sprintf("key-%d", i), apiKey(fmt.Sprint(i, "former", j)))
			former.until = start.Add(Overlap)
			all = append(all, former)
		}
	}
	return NewKeys(all...)
}

func TestKeysFind_allocatesLittle(t *testing.T) {
	g := NewWithT(t)
	all := fullKeys()
	for _, presented := range []string{
		apiKey("0"), apiKey("31"), apiKey("unknown"), strings.Repeat("k", maxAPIKey), strings.Repeat("k", maxAPIKey+1),
		"pp_" + strings.Repeat("0", 49), strings.Repeat("k", 40),
	} {
		g.Expect(testing.AllocsPerRun(100, func() { _, _ = all.Find(presented, start) })).To(BeNumerically("<=", 1))
	}
}

func BenchmarkKeysFind(b *testing.B) {
	all := fullKeys()
	for name, presented := range map[string]string{
		"known":        apiKey("7"),
		"former":       apiKey(fmt.Sprint(31, "former", 3)),
		"unknown":      apiKey("unknown"),
		"bad checksum": "pp_" + strings.Repeat("0", 49),
		"4 KiB":        strings.Repeat("k", maxAPIKey),
		"too long":     strings.Repeat("k", maxAPIKey+1),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = all.Find(presented, start)
			}
		})
	}
}
