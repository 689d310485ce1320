package v1alpha1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestDuration_parses(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{
		"10m": 10 * time.Minute, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "168h": 168 * time.Hour, "0s": 0,
		"1h2m3s": time.Hour + 2*time.Minute + 3*time.Second, "99999h999999m9999999s": 99999*time.Hour + 999999*time.Minute + 9999999*time.Second,
	} {
		g := NewWithT(t)
		got, err := text.Parse()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want), string(text))
		g.Expect(text.Or(-1)).To(Equal(want))
	}
}

func TestDuration_refusesEverythingElse(t *testing.T) {
	for _, text := range []v1alpha1.Duration{
		"", "-10m", "+10m", "1.5h", "10", "10 m", "1d", "10ms", "10s1m", "m", "1e3s", "１0m", "10m\n", "100000h", "9999999m", "99999999s",
	} {
		g := NewWithT(t)
		_, err := text.Parse()
		g.Expect(err).To(HaveOccurred(), string(text))
		g.Expect(text.Or(time.Second)).To(Equal(time.Second))
	}
}
