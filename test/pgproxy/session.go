package pgproxy

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// session is the state of a connection, derived from its messages so far.
type session struct {
	classify   func(string) string
	statements map[string]string // prepared ones, by name
	portals    map[string]string // their statements, by name
	// explicit reports whether a BEGIN was sent and its end was not.
	explicit bool
	// operation is that of the open transaction; empty if none of its statements has one.
	operation string
	// queue holds the messages that the server has not answered yet, in order; failed reports whether it skips the rest up to the
	// next Sync.
	queue  []awaited
	failed bool
}

// awaited is a message that the server still has to answer: a statement to run, or a Sync.
type awaited struct {
	kind byte
	// operation is that of the transaction that the message commits; empty if it commits none.
	operation string
	// losing and noting are the orders that concern the commit; nil if there are none.
	losing, noting *order
	// stopping is the order to stop after the commit; nil if there is none.
	stopping *Stop
}

// outcome is the result of an awaited message.
type outcome int

const (
	// otherwise: it committed nothing, and its commit was not refused. The server may have skipped it.
	otherwise outcome = iota
	committed
	refused
)

// result is the outcome of an awaited message.
type result struct {
	awaited

	outcome outcome
}

func newSession(classify func(string) string) session {
	return session{classify: classify, statements: map[string]string{}, portals: map[string]string{}}
}

// committedOperation returns the operation of the transaction that the message would commit; empty if it commits none.
func (s *session) committedOperation(m message) string {
	if s.failed || m.kind == typeSync && s.explicit {
		return ""
	}
	if m.kind == typeSync || isCommit(s.executedStatement(m)) {
		return s.operation
	}
	return ""
}

// executedStatement returns the statement that the message makes the server run; empty if it runs none.
func (s *session) executedStatement(m message) string {
	switch m.kind {
	case typeExecute:
		var execute pgproto3.Execute
		if execute.Decode(m.body()) == nil {
			return s.portals[execute.Portal]
		}
	case typeQuery:
		var query pgproto3.Query
		if query.Decode(m.body()) == nil {
			return query.String
		}
	}
	return ""
}

// recordSent records a message of the client. a is queued if the message has an answer of its own.
func (s *session) recordSent(m message, a awaited) error {
	switch m.kind {
	case typeParse:
		var parse pgproto3.Parse
		if err := parse.Decode(m.body()); err != nil {
			return fmt.Errorf("decode Parse: %w", err)
		}
		s.statements[parse.Name] = parse.Query
	case typeBind:
		var bind pgproto3.Bind
		if err := bind.Decode(m.body()); err != nil {
			return fmt.Errorf("decode Bind: %w", err)
		}
		s.portals[bind.DestinationPortal] = s.statements[bind.PreparedStatement]
	case typeClose:
		var closed pgproto3.Close
		if err := closed.Decode(m.body()); err != nil {
			return fmt.Errorf("decode Close: %w", err)
		}
		if closed.ObjectType == 'S' {
			delete(s.statements, closed.Name)
		}
	case typeExecute, typeQuery:
		s.queue = append(s.queue, a)
		s.trackStatement(s.executedStatement(m))
	case typeSync:
		s.queue = append(s.queue, a)
		if !s.explicit {
			s.operation = ""
		}
	}
	return nil
}

// trackStatement updates the state of the transaction by a statement.
func (s *session) trackStatement(statement string) {
	switch verb := verbOf(statement); {
	case verb == "BEGIN", verb == "START":
		s.explicit, s.operation = true, ""
	case verb == "ROLLBACK", isCommit(statement):
		s.explicit, s.operation = false, ""
	default:
		if operation := s.classify(statement); operation != "" {
			s.operation = operation
		}
	}
}

// recordAnswer records a message of the server, and returns the outcomes that it decides.
func (s *session) recordAnswer(m message) []result {
	switch m.kind {
	case typeCommandComplete, typeEmptyQueryResponse, typePortalSuspended:
		return s.completeStatement(m)
	case typeErrorResponse:
		s.failed = true
		return s.skipRest()
	case typeReadyForQuery:
		return s.becomeReady(m)
	default:
		return nil
	}
}

// completeStatement records the end of a statement. A Query goes on until the server is ready for the next.
func (s *session) completeStatement(m message) []result {
	if len(s.queue) == 0 || s.queue[0].kind == typeSync {
		return nil
	}
	a := s.queue[0]
	ended := result{awaited: a}
	if a.operation != "" && m.kind == typeCommandComplete && isCommit(tagOf(m)) {
		ended.outcome = committed
	}
	if a.kind == typeQuery {
		s.queue[0] = awaited{kind: typeQuery}
	} else {
		s.queue = s.queue[1:]
	}
	return []result{ended}
}

// skipRest records an error. The server skips all messages after the one that caused it, up to the next Sync.
func (s *session) skipRest() []result {
	var ended []result
	for n, a := range s.queue {
		r := result{awaited: a}
		if n == 0 && a.operation != "" {
			r.outcome = refused
		}
		if a.kind != typeExecute { // it remains until the server is ready
			if n == 0 {
				ended, s.queue[0] = append(ended, r), awaited{kind: a.kind}
			}
			s.queue = s.queue[n:]
			return ended
		}
		ended = append(ended, r)
	}
	s.queue = nil
	return ended
}

// becomeReady records that the server is ready for the next query: it has answered a Query, or a Sync with all before it.
func (s *session) becomeReady(m message) []result {
	const idle, failed = 'I', 'E'
	var ended []result
	for len(s.queue) > 0 {
		r := result{awaited: s.queue[0]}
		s.queue = s.queue[1:]
		if r.kind == typeSync && r.operation != "" && !s.failed {
			r.outcome = committed
		}
		ended = append(ended, r)
		if r.kind != typeExecute {
			break
		}
	}
	s.failed = false
	if len(s.queue) > 0 { // the client has begun something else
		return ended
	}
	switch m.body()[0] {
	case idle:
		s.explicit, s.operation = false, ""
	case failed: // a COMMIT would roll back
		s.operation = ""
	}
	return ended
}

// tagOf returns the command tag of a statement. A COMMIT of a failed transaction has the tag ROLLBACK.
func tagOf(m message) string {
	var complete pgproto3.CommandComplete
	if complete.Decode(m.body()) != nil {
		return ""
	}
	return string(complete.CommandTag)
}

func isCommit(statement string) bool {
	verb := verbOf(statement)
	return verb == "COMMIT" || verb == "END"
}

// verbOf returns the first word of a statement in upper case.
func verbOf(statement string) string {
	verb, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	return strings.ToUpper(strings.TrimRight(verb, ";"))
}
