package pgproxy_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgproxy"
)

func TestProxy_stopsOneMarkedCommit(t *testing.T) {
	w := newFixture(t)
	insert := inserts["a pipeline with BEGIN and COMMIT"]
	for _, after := range []bool{false, true} {
		stored, _ := w.countRows(t)
		held, clients := -1, []string(nil)
		w.proxy.StopCommit(&pgproxy.Stop{Operation: "insert", Mark: []byte("INSERT INTO numbers"), After: after, Do: func(client string) {
			held, _ = w.countRows(t)
			clients = append(clients, client)
		}})
		w.Expect(insert(t.Context(), w.connect(t))).NotTo(Succeed())
		w.Expect(insert(t.Context(), w.connect(t))).To(Succeed(), "it stops one")
		w.Expect(clients).To(HaveExactElements(HavePrefix("client at 127.0.0.1:")))
		now, _ := w.countRows(t)
		want := map[bool]int{false: 0, true: 1}[after]
		w.Expect([]int{held, now}).To(Equal([]int{stored + want, stored + want + 1}), "after the commit: %v", after)

		w.proxy.StopCommit(&pgproxy.Stop{Operation: "insert", Mark: []byte("another"), After: after, Do: func(string) { t.Error("another was stopped") }})
		w.Expect(insert(t.Context(), w.connect(t))).To(Succeed())
	}
}
