package pgproxy

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// session is what the messages so far say about the state of a connection.
type session struct {
	classify   func(string) string
	statements map[string]string // prepared ones, by name
	portals    map[string]string // their statements, by name
	// explicit reports that a BEGIN was sent whose end was not.
	explicit bool
	// operation is that of the open transaction; empty if none of its statements has one.
	operation string
	// ending is the operation of the transaction whose commit was sent and not answered; empty if there is none.
	ending string
	// last is how many statements are running when it is the commit's turn: a COMMIT itself, or none before a Sync.
	last int
	// running is how many statements the server has not answered yet; failed reports that it skips the rest.
	running int
	failed  bool
}

func newSession(classify func(string) string) session {
	return session{classify: classify, statements: map[string]string{}, portals: map[string]string{}}
}

// committing returns the operation of the transaction that the message would commit; empty if it commits none.
func (s *session) committing(m message) string {
	if s.failed || m.kind == typeSync && s.explicit {
		return ""
	}
	if m.kind == typeSync || isCommit(s.executes(m)) {
		return s.operation
	}
	return ""
}

// executes returns the statement that the message has the server run; empty if it runs none.
func (s *session) executes(m message) string {
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

// sent notes a message of the client.
func (s *session) sent(m message) error {
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
		s.running++
		s.run(s.executes(m))
	case typeSync:
		if !s.explicit && s.operation != "" {
			s.ending, s.last, s.operation = s.operation, 0, ""
		}
	}
	return nil
}

// run follows transactions through a statement.
func (s *session) run(statement string) {
	switch verb := verbOf(statement); {
	case verb == "BEGIN", verb == "START":
		s.explicit, s.operation = true, ""
	case isCommit(statement):
		s.explicit, s.ending, s.last, s.operation = false, s.operation, 1, ""
	case verb == "ROLLBACK":
		s.explicit, s.operation = false, ""
	default:
		if operation := s.classify(statement); operation != "" {
			s.operation = operation
		}
	}
}

// received notes a message of the server. It returns the operation of the transaction whose commit that refuses, if it does,
// and reports whether it says that one was committed.
func (s *session) received(m message) (refused string, committed bool) {
	switch m.kind {
	case typeCommandComplete, typeEmptyQueryResponse, typePortalSuspended:
		committed = s.ending != "" && s.running == s.last && isCommit(tagOf(m))
		s.running = max(0, s.running-1)
	case typeErrorResponse:
		if s.running == s.last && !s.failed {
			refused = s.ending
		}
		s.ending, s.failed = "", true
	case typeReadyForQuery:
		const idle, failed = 'I', 'E'
		committed = s.ending != "" && m.body()[0] == idle
		s.running, s.failed = 0, false
		switch m.body()[0] {
		case idle:
			s.explicit, s.operation, s.ending = false, "", ""
		case failed: // a COMMIT would roll back
			s.operation, s.ending = "", ""
		}
	}
	return refused, committed
}

// tagOf returns what the server says that it did.
func tagOf(m message) string {
	var complete pgproto3.CommandComplete
	if m.kind != typeCommandComplete || complete.Decode(m.body()) != nil {
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
