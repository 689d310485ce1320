package ledger

import (
	"slices"
	"time"
)

// The files of a run.
const (
	ClientFile   = "client.jsonl"
	StatusFile   = "status.jsonl"
	PlatformFile = "platform.jsonl"
	SinkFile     = "sink.jsonl"
	AnswerFile   = "answers.jsonl"
	StoreFile    = "store.jsonl"
	FinalFile    = "final.jsonl"
	FaultFile    = "faults.jsonl"
	KeyFile      = "keys.jsonl"
	ConfirmFile  = "confirm.jsonl"
)

// Fate is what the user does with a request.
type Fate string

// The fates. Only requests with the fate Proven may become VERIFIED.
const (
	Proven      Fate = "proven"
	Unproven    Fate = "unproven"     // no message is sent
	WrongSender Fate = "wrong-sender" // another user sends the code
	Forged      Fate = "forged"       // the message has a wrong signature
	Unconfirmed Fate = "unconfirmed"  // proven, and no session code is entered
	WrongCodes  Fate = "wrong-codes"  // proven, and wrong session codes are entered until it ends
)

// Ack is an init that was answered 200.
type Ack struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	// Key is the Idempotency-Key, one per request.
	Key   string `json:"key"`
	ID    string `json:"id"`
	Phone string `json:"phone"`
	// Number is what the user's messenger reports: for some users another form of the claimed number.
	Number  string    `json:"number"`
	Method  string    `json:"method"`
	Code    string    `json:"code"`
	Fate    Fate      `json:"fate"`
	Expires time.Time `json:"expires"`
	// Session reports whether the client must confirm the request.
	Session bool `json:"session,omitempty"`
}

// Confirm is a session code that a client entered, and its answer.
type Confirm struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	ID    string    `json:"id"`
	// Right reports whether it is the code that the user received.
	Right bool `json:"right"`
	// Answer is the HTTP status, 0 if none came; Error is the code of the error.
	Answer int    `json:"answer"`
	Error  string `json:"error,omitempty"`
}

// Facts are what events, statuses and stored states contain about a verification, in the API's spelling. A zero value
// means that the place does not contain it.
type Facts struct {
	// Phone is the claimed number, Actual the one that the messenger reported.
	Phone     string    `json:"phone,omitempty"`
	Actual    string    `json:"actual,omitempty"`
	Method    string    `json:"method,omitempty"`
	Assurance string    `json:"assurance,omitempty"`
	Verified  time.Time `json:"verified,omitzero"`
}

// Status is an answer of the status operation; the status is "404" if the request was not found.
type Status struct {
	Facts

	Asked   time.Time `json:"asked"`
	At      time.Time `json:"at"`
	ID      string    `json:"id"`
	Status  string    `json:"status"`
	Expires time.Time `json:"expires,omitzero"`
}

// Inbound is a platform's webhook and its answer.
type Inbound struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	// Answer is the HTTP status; 0 if none came.
	Answer   int       `json:"answer"`
	Signed   bool      `json:"signed"`
	Messages []Message `json:"messages"`
}

// Message is one message in a webhook.
type Message struct {
	// ID is the platform's own id: redeliveries have the same one.
	ID string `json:"id"`
	// Request is the id of the request whose code the message has; empty without a code.
	Request string `json:"request,omitempty"`
	// Proves reports whether the message completes the proof: from the right sender, through the right messenger, with
	// their number.
	Proves bool `json:"proves,omitempty"`
	// From is the sender's number as the messenger reports it, and Method the messenger.
	From   string `json:"from,omitempty"`
	Method string `json:"method,omitempty"`
}

// KeyTry is a call with a revoked API key.
type KeyTry struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	// Replica is the address of the API, and Last is true of one that ran at the end.
	Replica string `json:"replica"`
	Last    bool   `json:"last,omitempty"`
	// Answer is the HTTP status, 0 if none came; Error is the code of the error.
	Answer int    `json:"answer"`
	Error  string `json:"error,omitempty"`
}

// Answer is how the receiver responds to an event.
type Answer string

// The answers of the receiver.
const (
	Takes       Answer = "200"
	TakesResets Answer = "200-reset" // takes it and resets the connection
	TakesSlowly Answer = "200-slow"  // takes it, with a body that is sent byte by byte
	Fails       Answer = "500"
	Unavailable Answer = "503"
	Limits      Answer = "429"
	Gone        Answer = "410"
	Hangs       Answer = "hang"
)

// Took reports whether the receiver answers 2xx.
func (a Answer) Took() bool { return a == Takes || a == TakesResets || a == TakesSlowly }

// Delivery is an event that arrived at the receiver. It is on disk before the receiver answers.
type Delivery struct {
	Facts

	At time.Time `json:"at"`
	// Process owns the connection, by the kernel's table of sockets; empty if it had ended before the lookup.
	Process string `json:"process,omitempty"`
	Webhook string `json:"webhook"`
	Request string `json:"request"`
	Stamp   string `json:"stamp"`
	// Valid reports whether the signatures are right.
	Valid  bool   `json:"valid"`
	Body   string `json:"body"`
	Answer Answer `json:"answer"`
	// Answered is when the whole answer had been sent, after the delivery was on disk; zero if it was not sent. It has
	// its own ledger.
	Answered time.Time `json:"-"`
}

// Given records that the answer to a delivery had been sent; Came identifies the delivery.
type Given struct {
	Webhook  string    `json:"webhook"`
	Came     time.Time `json:"came"`
	Answered time.Time `json:"answered"`
}

// Change is one committed state of a stored request, seen by a witness beneath the system: a trigger of the database,
// or etcd's log.
type Change struct {
	Facts

	// At is when the witness saw it: within the transaction, or after etcd had it.
	At time.Time `json:"at"`
	// Committed is when the database began to write the commit; zero if the store does not record it.
	Committed time.Time `json:"committed,omitzero"`
	// Op is create, update or delete; a deletion carries the last state.
	Op       string `json:"op"`
	ID       string `json:"id"`
	Phase    string `json:"phase"`
	Attempts int    `json:"attempts,omitempty"`
	// Tried is when the last attempt ended, Code the status of its answer, and Reason why it failed.
	Tried     time.Time `json:"tried,omitzero"`
	Code      int       `json:"code,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Delivered bool      `json:"delivered,omitempty"`
	Exhausted bool      `json:"exhausted,omitempty"`
	Next      time.Time `json:"next,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	// Deliver and CodeState are those of a request with a code, in the API's spelling.
	Deliver   string `json:"deliver,omitempty"`
	CodeState string `json:"codeState,omitempty"`
}

// The operations of a Change.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// Everyone stands for all processes in the victims of a fault.
const Everyone = "*"

// Fault is an injected fault.
type Fault struct {
	Kind string    `json:"kind"`
	From time.Time `json:"from"`
	// Until is when what it hit worked again; for a kill, when the process had ended.
	Until time.Time `json:"until"`
	// Victims are the names of the processes that it hit, or Everyone. A fault without victims explains nothing.
	Victims []string `json:"victims,omitempty"`
	// From Down to Up the store could certainly commit nothing; both are zero if it could.
	Down time.Time `json:"down,omitzero"`
	Up   time.Time `json:"up,omitzero"`
	// Hits counts what it hit, by operation, for faults that hit a share: transactions, writes, events.
	Hits map[string]int `json:"hits,omitempty"`
	// Request is the only request that it hit; empty if it hit all.
	Request string `json:"request,omitempty"`
	// Replica is the address of the API of a victim that was killed while codes were sent.
	Replica string `json:"replica,omitempty"`
}

// Hit reports whether the fault hit what a process did for a request. An unknown process may be any victim.
func (f *Fault) Hit(process, request string) bool {
	if f.Request != "" && f.Request != request {
		return false
	}
	return slices.Contains(f.Victims, Everyone) || slices.Contains(f.Victims, process) || process == "" && len(f.Victims) > 0
}
