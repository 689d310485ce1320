// Package ledger records what an adversary run observes: who began which request, what each party did and was shown, and what
// everything outside of PhoneProof saw of the outcome. The judge reads nothing else.
//
// The invariant: a record holds no code and no digits, and what a party could not know is not read from it by that party.
package ledger

import (
	"time"

	chaos "github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// File is the ledger of a run.
const File = "adversary.jsonl"

// Kind is what a record is about.
type Kind string

// The kinds.
const (
	// Scene is the beginning of a scene, with its attack, victim and method.
	Scene Kind = "scene"
	// Begun is an init that was answered 200: Party began Request in Session for Number.
	Begun Kind = "begun"
	// Refused is an init that was not: Answer is the HTTP status, Result the error code.
	Refused Kind = "refused"
	// Messaged is a message with digits in the chat of who proved Request. Offered is set if it offers Not me.
	Messaged Kind = "messaged"
	// Unanswered means that the chat of who proved Request got no such message.
	Unanswered Kind = "unanswered"
	// Talked means that the victim read the digits of Request out to the attacker with Session.
	Talked Kind = "talked"
	// Declined means that the prover answered Not me to Request; Result is the status with its hint after that.
	Declined Kind = "declined"
	// Tried is a code that Party entered on the page of Request; Result is the state that the page showed.
	Tried Kind = "tried"
	// Redeemed is a call of confirm by the client backend for Session: Answer is its HTTP status, Result the error code, Count how often
	// the call was repeated, because it was answered 503.
	Redeemed Kind = "redeemed"
	// Member is what the client backend shows to Session: Verified is set if it takes its user for verified.
	Member Kind = "member"
	// Status is an answer of the status operation.
	Status Kind = "status"
	// Event is an event that the client backend received.
	Event Kind = "event"
	// Stored is a state of Request in the store.
	Stored Kind = "stored"
	// Fetched counts the responses that Party received in a scene, all of which were searched for codes.
	Fetched Kind = "fetched"
	// Shown is a response to Party with a session code that Party did not send.
	Shown Kind = "shown"
	// Counted is the sum of a counter of all replicas: Result is the step, Count the value.
	Counted Kind = "counted"
	// Failed counts the messages that a replica failed to handle, so that the messenger delivered them again.
	Failed Kind = "failed"
	// Collected means that everyone's scenes are over.
	Collected Kind = "collected"
)

// Record is one observation.
type Record struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Scene is the number of the scene; zero outside of scenes.
	Scene  int    `json:"scene,omitempty"`
	Attack string `json:"attack,omitempty"`
	Victim string `json:"victim,omitempty"`
	Method string `json:"method,omitempty"`
	// Party is who did it or saw it.
	Party   string `json:"party,omitempty"`
	Session string `json:"session,omitempty"`
	Request string `json:"request,omitempty"`
	Number  string `json:"number,omitempty"`
	// Asked is when a call began.
	Asked  time.Time `json:"asked,omitzero"`
	Answer int       `json:"answer,omitempty"`
	Result string    `json:"result,omitempty"`
	// Hint is that of a status or an event, or the name of the limit that refused an init.
	Hint      string `json:"hint,omitempty"`
	Assurance string `json:"assurance,omitempty"`
	// ID is that of an event.
	ID       string `json:"id,omitempty"`
	Level    string `json:"level,omitempty"`
	Where    string `json:"where,omitempty"`
	Offered  bool   `json:"offered,omitempty"`
	Verified bool   `json:"verified,omitempty"`
	Count    int    `json:"count,omitempty"`
}

// The parties.
const (
	Attacker  = "attacker"
	Second    = "second attacker"
	Victim    = "victim"
	Bystander = "bystander"
	Scanner   = "scanner"
	Honest    = "honest"
	Late      = "late"
)

// IsAttacker reports whether a party attacks.
func IsAttacker(party string) bool { return party == Attacker || party == Second }

// Read returns the records of a ledger.
func Read(path string) ([]Record, error) { return chaos.Read[Record](path) }
