package ledger

import "time"

// The files of a run.
const (
	ClientFile   = "client.jsonl"
	StatusFile   = "status.jsonl"
	PlatformFile = "platform.jsonl"
	SinkFile     = "sink.jsonl"
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
	Key     string    `json:"key"`
	ID      string    `json:"id"`
	Phone   string    `json:"phone"`
	Method  string    `json:"method"`
	Code    string    `json:"code"`
	Fate    Fate      `json:"fate"`
	Expires time.Time `json:"expires"`
}

// Status is an answer of the status operation, or one that could not be what was asked for: "404".
type Status struct {
	Asked  time.Time `json:"asked"`
	At     time.Time `json:"at"`
	ID     string    `json:"id"`
	Status string    `json:"status"`
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
	// Proves says that the message completes the proof: the right sender's, through the right messenger, with his number.
	Proves bool `json:"proves,omitempty"`
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
	At      time.Time `json:"at"`
	Webhook string    `json:"webhook"`
	Request string    `json:"request"`
	Stamp   string    `json:"stamp"`
	// Valid says that the signatures are right.
	Valid  bool   `json:"valid"`
	Body   string `json:"body"`
	Answer Answer `json:"answer"`
}

// Change is one committed state of a stored request, by a witness beneath the system: the database's own trigger, or
// etcd's log.
type Change struct {
	At time.Time `json:"at"`
	// Op is create, update or delete; a deletion carries the last state.
	Op        string    `json:"op"`
	ID        string    `json:"id"`
	Phase     string    `json:"phase"`
	Attempts  int       `json:"attempts,omitempty"`
	Code      int       `json:"code,omitempty"` // of the last attempt's answer
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

// Fault is one that was injected.
type Fault struct {
	Kind string    `json:"kind"`
	From time.Time `json:"from"`
	// Until is when it was over; that of a kill is when the process was gone.
	Until time.Time `json:"until"`
	// Processes is how many serve processes it hit.
	Processes int    `json:"processes"`
	Victim    string `json:"victim,omitempty"`
	// Cuts is how many exchanges a fault of the network broke.
	Cuts int `json:"cuts,omitempty"`
	// Held says that what was in flight went on later, instead of ending with the fault.
	Held bool `json:"held,omitempty"`
	// Sink says that it was between the replicas and the receiver.
	Sink bool `json:"sink,omitempty"`
	// Outage says that the store could commit nothing from From to Until.
	Outage bool `json:"outage,omitempty"`
}
