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
	StrangerFile = "stranger.jsonl"
)

// Fate is what the users of a run do with a request.
type Fate string

// The fates. Only those of Proven may end VERIFIED.
const (
	Proven      Fate = "proven"
	Unproven    Fate = "unproven"     // nobody sends anything
	WrongSender Fate = "wrong-sender" // somebody else sends the code
	Forged      Fate = "forged"       // the message comes without a right signature
)

// Ack is an init that was answered 200.
type Ack struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	// Key is the Idempotency-Key, by itself one per request of a client.
	Key   string `json:"key"`
	ID    string `json:"id"`
	Phone string `json:"phone"`
	// Number is what the user's messenger reports: another form of the claimed one, for some.
	Number  string    `json:"number"`
	Method  string    `json:"method"`
	Code    string    `json:"code"`
	Fate    Fate      `json:"fate"`
	Expires time.Time `json:"expires"`
}

// Facts are what events, statuses and stored states say of a verification, as the API spells it. A zero value is what the
// place does not say.
type Facts struct {
	// Phone is the claimed number, Actual the one that the messenger reported.
	Phone     string    `json:"phone,omitempty"`
	Actual    string    `json:"actual,omitempty"`
	Method    string    `json:"method,omitempty"`
	Assurance string    `json:"assurance,omitempty"`
	Verified  time.Time `json:"verified,omitzero"`
}

// Status is an answer of the status operation, or one that could not be what was asked for: "404".
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
	// Answer is the status; 0 if none came.
	Answer   int       `json:"answer"`
	Signed   bool      `json:"signed"`
	Messages []Message `json:"messages"`
}

// Message is one message in a webhook.
type Message struct {
	// ID is the platform's own: redeliveries have the same.
	ID string `json:"id"`
	// Request is that of the code in it; empty without one.
	Request string `json:"request,omitempty"`
	// Proves says that the message completes the proof: the right sender's, through the right messenger, with their number.
	Proves bool `json:"proves,omitempty"`
	// From is the sender's number as the messenger reports it, and Method the messenger.
	From   string `json:"from,omitempty"`
	Method string `json:"method,omitempty"`
}

// Offence is what a stranger does that is to be refused.
type Offence string

// The offences.
const (
	GuessedID   Offence = "guessed-id"
	ChangedKey  Offence = "changed-key"  // one character of an API key is another
	UnknownKey  Offence = "unknown-key"  // of the right form, and never given out
	RevokedKey  Offence = "revoked-key"  // it was valid once
	KeyInURL    Offence = "key-in-url"   // a good one, where it does not belong
	BrokenLines Offence = "broken-lines" // line feeds and escapes in all that a log may take
	LongHeader  Offence = "long-header"
	OddPath     Offence = "odd-path"
	OddMethod   Offence = "odd-method"
)

// Trespass is an offence and its answer.
type Trespass struct {
	Asked   time.Time `json:"asked"`
	At      time.Time `json:"at"`
	Offence Offence   `json:"offence"`
	// Answer is the status; 0 if none came.
	Answer int `json:"answer"`
	// Body is a hash of the answer's.
	Body string `json:"body"`
}

// Answer is what the receiver of events does with one.
type Answer string

// The answers of a receiver.
const (
	Takes       Answer = "200"
	TakesResets Answer = "200-reset" // takes it and breaks the connection
	TakesSlowly Answer = "200-slow"  // takes it, with a body of a byte at a time
	Fails       Answer = "500"
	Unavailable Answer = "503"
	Limits      Answer = "429"
	Gone        Answer = "410"
	Hangs       Answer = "hang"
)

// Took tells whether the receiver answers 2xx.
func (a Answer) Took() bool { return a == Takes || a == TakesResets || a == TakesSlowly }

// Delivery is an event as it came to the receiver. It is on disk before the receiver answers.
type Delivery struct {
	Facts

	At time.Time `json:"at"`
	// Process is the one that the kernel says the connection belongs to; empty if it was gone before it could be asked.
	Process string `json:"process,omitempty"`
	Webhook string `json:"webhook"`
	Request string `json:"request"`
	Stamp   string `json:"stamp"`
	// Valid says that the signatures are right.
	Valid  bool   `json:"valid"`
	Body   string `json:"body"`
	Answer Answer `json:"answer"`
	// Answered is when the whole answer was given, once the delivery was on disk; zero if it was not. It is in a ledger of its
	// own.
	Answered time.Time `json:"-"`
}

// Given is the end of an answer to the delivery that came at a time.
type Given struct {
	Webhook  string    `json:"webhook"`
	Came     time.Time `json:"came"`
	Answered time.Time `json:"answered"`
}

// Change is one committed state of a stored request, by a witness beneath the system: the database's own trigger, or
// etcd's log.
type Change struct {
	Facts

	// At is when the witness saw it: within the transaction, or after etcd had it.
	At time.Time `json:"at"`
	// Committed is when the database began to write the commit; zero where the store does not tell.
	Committed time.Time `json:"committed,omitzero"`
	// Op is create, update or delete; a deletion carries the last state.
	Op       string `json:"op"`
	ID       string `json:"id"`
	Phase    string `json:"phase"`
	Attempts int    `json:"attempts,omitempty"`
	// Tried is when the last attempt ended, Code the status of its answer, and Reason why it was no success.
	Tried     time.Time `json:"tried,omitzero"`
	Code      int       `json:"code,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Delivered bool      `json:"delivered,omitempty"`
	Exhausted bool      `json:"exhausted,omitempty"`
	Next      time.Time `json:"next,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
}

// The operations of a Change.
const (
	Created = "create"
	Updated = "update"
	Deleted = "delete"
)

// Everyone stands for all processes among the victims of a fault.
const Everyone = "*"

// Fault is one that was injected.
type Fault struct {
	Kind string    `json:"kind"`
	From time.Time `json:"from"`
	// Until is when what it hit worked again; that of a kill is when the process was gone.
	Until time.Time `json:"until"`
	// Victims are the processes that it hit, by their names, or Everyone. A fault without victims explains nothing.
	Victims []string `json:"victims,omitempty"`
	// From Down to Up the store could certainly commit nothing; both are zero if it could.
	Down time.Time `json:"down,omitzero"`
	Up   time.Time `json:"up,omitzero"`
	// Hits is how many of each thing it hit, where it hits a share: transactions, writes, events.
	Hits map[string]int `json:"hits,omitempty"`
}

// Hit reports whether the fault hit a process. One that is not known may be any victim.
func (f *Fault) Hit(process string) bool {
	return slices.Contains(f.Victims, Everyone) || slices.Contains(f.Victims, process) || process == "" && len(f.Victims) > 0
}
