package pgproxy_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgproxy"
)

func TestProxy_stopsOneMarkedCommit(t *testing.T) {
	w := newFixture(t)
	insert := func(text string) error {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		batch.Queue("INSERT INTO numbers (n) SELECT length(text) FROM unnest($1::text[]) AS text", []string{text})
		batch.Queue("COMMIT")
		return w.connect(t).SendBatch(t.Context(), batch).Close()
	}
	for _, after := range []bool{false, true} {
		stored, _ := w.countRows(t)
		held, clients := -1, []string(nil)
		w.proxy.StopCommit(&pgproxy.Stop{Operation: "insert", Mark: []byte("marked"), After: after, Do: func(client string) {
			held, _ = w.countRows(t)
			clients = append(clients, client)
		}})
		w.Expect(insert("another")).To(Succeed(), "it has no mark")
		w.Expect(insert("marked")).NotTo(Succeed())
		w.Expect(insert("marked")).To(Succeed(), "it stops one")
		w.Expect(clients).To(HaveExactElements(HavePrefix("client at 127.0.0.1:")))
		now, _ := w.countRows(t)
		want := map[bool]int{false: 1, true: 2}[after]
		w.Expect([]int{held, now}).To(Equal([]int{stored + want, stored + want + 1}), "after the commit: %v", after)
	}
	w.proxy.StopCommit(&pgproxy.Stop{Operation: "update", Mark: []byte("marked"), Do: func(string) { t.Error("an insert was stopped") }})
	w.Expect(insert("marked")).To(Succeed())
}
