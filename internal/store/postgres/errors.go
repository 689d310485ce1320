package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// DatabaseError is why the database does not serve us. Its message is stable and holds nothing of a row, a URI or an address.
type DatabaseError struct {
	// Rejected says that the database answers and refuses; else it cannot be reached.
	Rejected bool
	Message  string
	// state is the SQLSTATE of the refusal.
	state string
}

// Error returns the message.
func (p *DatabaseError) Error() string { return p.Message }

// SQLSTATEs that decide what to do.
const (
	stateSerialization   = "40001"
	stateDeadlock        = "40P01"
	stateUniqueViolation = "23505"
	stateReadOnly        = "25006"
)

// errRepeat ends a transaction that is to be repeated as a whole: another one was faster.
var errRepeat = errors.New("another transaction was faster")

// errAuthentication stands for a server that asks for the password in a way that is not allowed, or for none.
var errAuthentication = &DatabaseError{
	Rejected: true,
	Message: "the database does not authenticate as require_auth in the connection URI demands, by default with SCRAM-SHA-256; " +
		"no password was sent",
}

// problem strips an error of everything that may hold a row: of what the database says only the message is kept, and of
// messages about values not even that.
func problem(err error) *DatabaseError {
	if known, ok := errors.AsType[*DatabaseError](err); ok {
		return known
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused(refusal)
	}
	if strings.Contains(err.Error(), "require_auth check failed") {
		return errAuthentication
	}
	return &DatabaseError{Message: unreachable(err)}
}

func refused(e *pgconn.PgError) *DatabaseError {
	class := e.Code[:min(2, len(e.Code))]
	switch class {
	case "22", "23":
		return &DatabaseError{Rejected: true, state: e.Code, Message: "the database refuses a value (SQLSTATE " + e.Code + ")"}
	case "08", "57": // a connection that broke, a server that stops or starts
		return &DatabaseError{state: e.Code, Message: "the database is not available: " + e.Message + " (SQLSTATE " + e.Code + ")"}
	default:
		return &DatabaseError{Rejected: true, state: e.Code, Message: "the database refuses: " + e.Message + " (SQLSTATE " + e.Code + ")"}
	}
}

// unreachable says in stable words why there is no answer.
func unreachable(err error) string {
	_, unknownCA := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherHost := errors.AsType[x509.HostnameError](err)
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, noName := errors.AsType[*net.DNSError](err)
	_, badURI := errors.AsType[*pgconn.ParseConfigError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case badURI:
		return "the connection URI cannot be read"
	case unknownCA:
		return "the database's certificate is signed by an unknown authority"
	case otherHost:
		return "the database's certificate is for another host"
	case badCertificate:
		return "the database's certificate is not valid"
	case noName:
		return "the database's host name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the database refuses connections"
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EACCES):
		return "the database's socket cannot be opened"
	case errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout(), pgconn.Timeout(err):
		return "the database does not answer in time"
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return "the database does not offer TLS; a connection without it takes sslmode=disable in the connection URI"
	case strings.Contains(err.Error(), "read only connection"):
		return "the database is read-only"
	default:
		return "the connection to the database broke"
	}
}

// unavailable is what a caller of the store is told of an error of the database.
func unavailable(err error) error {
	p := problem(err)
	if aboutContent(p) {
		return errors.Join(verification.ErrContent, p)
	}
	return verification.Unavailable(p)
}

// aboutContent tells whether an error is the fault of one row, so that the others may do without it. A key that is taken is
// not: another transaction was faster, every time that this one was repeated.
func aboutContent(err error) bool {
	p := problem(err)
	return p.state != stateUniqueViolation && (strings.HasPrefix(p.state, "22") || strings.HasPrefix(p.state, "23") || p.state == "54000")
}

// repeatable tells whether the whole transaction is to be tried again: the database asked for it, or the connection broke
// and nobody knows what became of it. What was written by then is found by its version.
func repeatable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if errors.Is(err, errRepeat) {
		return true
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting {
		return false // there is nobody to repeat it to
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		_, known := errors.AsType[*DatabaseError](err)
		return !known
	}
	switch refusal.Code {
	case stateSerialization, stateDeadlock, stateUniqueViolation, stateReadOnly:
		return true
	default:
		return strings.HasPrefix(refusal.Code, "57P") || strings.HasPrefix(refusal.Code, "08")
	}
}
