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

// DatabaseError is the reason why the database is not usable. Its message is stable and contains no row, URI or address.
type DatabaseError struct {
	// Rejected reports whether the database answers and refuses; otherwise it cannot be reached.
	Rejected bool
	Message  string
	// state is the SQLSTATE of the refusal; empty if there is none.
	state string
}

// Error returns the message.
func (p *DatabaseError) Error() string { return p.Message }

// SQLSTATEs that change how an error is handled.
const (
	stateSerialization   = "40001"
	stateDeadlock        = "40P01"
	stateUniqueViolation = "23505"
	stateReadOnly        = "25006"
)

// errRetry ends a transaction that must be retried as a whole because of a concurrent one.
var errRetry = errors.New("conflict with a concurrent transaction")

// errAuthentication reports a server that uses a forbidden authentication method, or none.
var errAuthentication = &DatabaseError{
	Rejected: true,
	Message: "the database does not authenticate as require_auth in the connection URI demands, by default with SCRAM-SHA-256; " +
		"no password was sent",
}

// asDatabaseError removes everything from an error that may contain a row. It keeps only the message of the database, and not
// even that for messages about values.
func asDatabaseError(err error) *DatabaseError {
	if known, ok := errors.AsType[*DatabaseError](err); ok {
		return known
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return serverError(refusal)
	}
	if strings.Contains(err.Error(), "require_auth check failed") {
		return errAuthentication
	}
	return &DatabaseError{Message: describeUnreachable(err)}
}

func serverError(e *pgconn.PgError) *DatabaseError {
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

// describeUnreachable returns a stable message for the reason why the database does not answer.
func describeUnreachable(err error) string {
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

// stepError is an error with the step of a transaction that failed. The step holds no row, so that it may be printed.
type stepError struct {
	step string
	err  error
}

// Error returns the error after its step.
func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }

// Unwrap returns the error without its step.
func (e *stepError) Unwrap() error { return e.err }

// wrapStep wraps an error with the step that failed; nil for nil. Callers of the store see the step, unlike other texts of a wrap.
func wrapStep(step string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{step, err}
}

// unavailableError converts an error of the database to one for callers of the store: verification.ErrContent, or unavailable.
func unavailableError(err error) error {
	p := asDatabaseError(err)
	if isContentError(p) {
		return errors.Join(verification.ErrContent, withSteps(err, p))
	}
	return verification.Unavailable(withSteps(err, p))
}

// withSteps wraps what asDatabaseError made of an error with the steps of that error.
func withSteps(err error, p *DatabaseError) error {
	if failed, ok := errors.AsType[*stepError](err); ok {
		return wrapStep(failed.step, withSteps(failed.err, p))
	}
	return p
}

// isContentError reports whether one row caused the error, so that the others can succeed without it. A unique violation does
// not count: it is a conflict with another transaction in every retry.
func isContentError(err error) bool {
	p := asDatabaseError(err)
	return p.state != stateUniqueViolation && (strings.HasPrefix(p.state, "22") || strings.HasPrefix(p.state, "23") || p.state == "54000")
}

// isRetryable reports whether the whole transaction should be retried: on the database's request, or after a broken connection,
// whose outcome is unknown. A write that was committed is recognised by its version.
func isRetryable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if errors.Is(err, errRetry) {
		return true
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting {
		return false // no server to retry on
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
