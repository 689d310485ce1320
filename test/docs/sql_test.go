package docs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgserver"
)

// separatesRoles runs the block for two roles; then neither may read the tables of the other.
func separatesRoles(t *testing.T, _ *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	roles := [2]string{"shop", "bank"}
	var conns [2]*pgx.Conn
	for i, role := range roles {
		g.Expect(server.Exec(t.Context(), "postgres", strings.ReplaceAll(b.text, "shop", role))).To(Succeed())
		conns[i], err = pgx.Connect(t.Context(), fmt.Sprintf("postgresql://%s@127.0.0.1:%d/postgres", role, server.Port))
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conns[i].Close(t.Context()) })
		_, err = conns[i].Exec(t.Context(), "CREATE TABLE phoneproof_requests (id text)")
		g.Expect(err).NotTo(HaveOccurred())
	}
	for i, role := range roles {
		_, err := conns[1-i].Exec(t.Context(), "SELECT id FROM "+role+".phoneproof_requests")
		g.Expect(err).To(MatchError(ContainSubstring("permission denied for schema " + role)))
	}
}
