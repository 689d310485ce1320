package ledger_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

func TestWriter(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), ledger.SinkFile)
	w, err := ledger.Create(path)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(w.Append(ledger.Delivery{Request: "first"})).To(Succeed())
	read, err := ledger.Read[ledger.Delivery](path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(HaveExactElements(ledger.Delivery{Request: "first"}), "before Close")

	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			if err := w.Append(ledger.Delivery{Request: strconv.Itoa(n)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	g.Expect(w.Note(ledger.Delivery{Request: "last"})).To(Succeed())
	g.Expect(w.Close()).To(Succeed())
	g.Expect(w.Close()).To(Succeed())
	g.Expect(w.Append(ledger.Delivery{})).NotTo(Succeed())
	read, err = ledger.Read[ledger.Delivery](path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(HaveLen(202))
	seen := map[string]bool{}
	for _, d := range read {
		seen[d.Request] = true
	}
	g.Expect(seen).To(HaveLen(202))

	_, err = ledger.Create(path)
	g.Expect(err).To(HaveOccurred(), "a run never overwrites a ledger")
}
