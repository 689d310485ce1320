package judge_test

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Of two deliveries of one event, the second was answered.
func TestLoad_setsWhenADeliveryWasAnswered(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(name string, records ...any) {
		w, err := ledger.Create(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred())
		for _, record := range records {
			g.Expect(w.Append(record)).To(Succeed())
		}
		g.Expect(w.Close()).To(Succeed())
	}
	for _, name := range []string{
		ledger.ClientFile, ledger.StatusFile, ledger.PlatformFile, ledger.StoreFile, ledger.FinalFile, ledger.FaultFile, ledger.KeyFile,
		ledger.ConfirmFile, ledger.CodeFile, ledger.TryFile,
	} {
		write(name)
	}
	first, second := at(1).Add(7), at(2).Add(9)
	write(ledger.SinkFile,
		ledger.Delivery{At: first, Webhook: "evt"}, ledger.Delivery{At: second.In(time.FixedZone("", 3600)), Webhook: "evt"})
	write(ledger.AnswerFile, ledger.Given{Webhook: "evt", Came: second, Answered: at(3)})
	e, err := judge.Load(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Events).To(HaveExactElements(
		HaveField("Answered", BeZero()), HaveField("Answered", BeTemporally("==", at(3)))))
}
