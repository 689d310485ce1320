package postgres

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/auxten/postgresql-parser/pkg/sql/parser"
	. "github.com/onsi/gomega"
)

// statements holds every statement of the store.
var statements = map[string]string{
	"sqlReady": sqlReady, "sqlRead": sqlRead, "sqlVersions": sqlVersions, "sqlStored": sqlStored, "sqlCodes": sqlCodes, "sqlActivity": sqlActivity, "sqlAwaiting": sqlAwaiting, "sqlList": sqlList, "sqlListReference": sqlListReference,
	"sqlListTest": sqlListTest, "sqlListTestReference": sqlListTestReference, "sqlListDelivered": sqlListDelivered,
	"sqlListTestDelivered": sqlListTestDelivered, "sqlFind": sqlFind, "sqlFindTest": sqlFindTest, "sqlFindDelivered": sqlFindDelivered,
	"sqlFindTestDelivered": sqlFindTestDelivered, "sqlAddKeys": sqlAddKeys,
	"sqlLockKeys": sqlLockKeys, "sqlNow": sqlNow, "sqlKeyWindows": sqlKeyWindows, "sqlKeyLeaves": sqlKeyLeaves,
	"sqlNumbers": sqlNumbers, "sqlGroups": sqlGroups, "sqlInsertGroupAdmissions": sqlInsertGroupAdmissions, "sqlSweepGroups": sqlSweepGroups, "sqlInsertRequests": sqlInsertRequests,
	"sqlCountKeys": sqlCountKeys, "sqlInsertNumberAdmissions": sqlInsertNumberAdmissions, "sqlUpdate": sqlUpdate,
	"sqlBind": sqlBind, "sqlDelete": sqlDelete, "sqlUnbind": sqlUnbind, "sqlDue": sqlDue, "sqlLease": sqlLease, "sqlRelease": sqlRelease, "sqlSweepLapsed": sqlSweepLapsed,
	"sqlSweepFinished": sqlSweepFinished, "sqlDeclines": sqlDeclines, "sqlInsertDecline": sqlInsertDecline, "sqlDeleteDeclines": sqlDeleteDeclines,
	"sqlUncount": sqlUncount, "sqlSweepKeys": sqlSweepKeys, "sqlReadLease": sqlReadLease,
	"sqlCreateLease": sqlCreateLease, "sqlUpdateLease": sqlUpdateLease, "sqlServer": sqlServer, "sqlVersion": sqlVersion, "sqlTune": sqlTune, "sqlStandby": sqlStandby, "sqlCommitNothing": sqlCommitNothing,
	"sqlEndWithClient": sqlEndWithClient, "sqlEndWhenIdle": sqlEndWhenIdle, "sqlBegin": sqlBegin, "sqlCommit": sqlCommit, "sqlRollback": sqlRollback,
}

// The parser is generated from the grammar of CockroachDB 20.1, which has every construct used here.
func TestSQL_parsesWithTheGrammarOfCockroachDB(t *testing.T) {
	for name, statement := range statements {
		if name == "sqlTune" { // only for PostgreSQL: others have no such settings
			continue
		}
		t.Run(name, func(t *testing.T) {
			parsed, err := parser.Parse(statement)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed).To(HaveLen(1))
		})
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			content, err := migrations.ReadFile(name)
			g.Expect(err).NotTo(HaveOccurred())
			// Partial indexes came with CockroachDB 20.2.
			parsed, err := parser.Parse(regexp.MustCompile(`(?m)^    WHERE .*;$`).ReplaceAllString(string(content), ";"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, statement := range parsed {
				g.Expect(statement.SQL).To(Or(ContainSubstring(" IF NOT EXISTS "), ContainSubstring(" IF EXISTS "), HavePrefix("CREATE INDEX CONCURRENTLY ")),
					"it can be repeated after a migration that failed")
			}
			g.Expect(string(content)).To(HavePrefix("-- +goose NO TRANSACTION\n-- +goose Up\n"))
		})
	}
}

// Statements missing from the list would not be parsed above.
func TestSQL_isListed(t *testing.T) {
	g := NewWithT(t)
	sources, err := filepath.Glob("*.go")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		g.Expect(err).NotTo(HaveOccurred())
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok == token.IMPORT || general.Tok == token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				for _, constant := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(constant.Name, "sql") {
						g.Expect(statements).To(HaveKey(constant.Name))
					}
				}
			}
		}
	}
}

// Distributed databases keep no sessions, their sequences are hot spots, and they send no notifications.
func TestSQL_staysWithinThePortableCore(t *testing.T) {
	g := NewWithT(t)
	for name, statement := range statements {
		for _, word := range []string{"advisory", "listen", "notify", "unlogged", "serial", "temp ", "ctid", "partition", "returning *"} {
			g.Expect(strings.ToLower(statement)).NotTo(ContainSubstring(word), name)
		}
	}
}
