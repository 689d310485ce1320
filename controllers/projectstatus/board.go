package projectstatus

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Board is where the loops of a term put what they learn, for the Controller to write. Each term of a lease has a new
// one. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	learned learned
	changed chan struct{}
}

// learned is what a board has at one moment.
type learned struct {
	// said has what was set, by type; nil for what was withdrawn. Of other types nobody has said anything.
	said     map[string]*metav1.Condition
	storage  *verdict // nil before the first look was believed
	receiver evidence
}

// NewBoard returns a board on which nothing was said yet.
func NewBoard() *Board {
	return &Board{learned: learned{said: map[string]*metav1.Condition{}}, changed: make(chan struct{}, 1)}
}

// Set says what is true of one condition by now, in place of what was said of its type. ObservedGeneration is that of the
// settings it was judged by, so after each change of the settings it has to be said anew; LastTransitionTime is left to
// the Controller.
func (b *Board) Set(condition metav1.Condition) {
	condition.LastTransitionTime = metav1.Time{}
	b.say(condition.Type, &condition)
}

// Withdraw says that the condition of a type does not apply, so that it is taken off the project.
func (b *Board) Withdraw(conditionType string) { b.say(conditionType, nil) }

func (b *Board) say(conditionType string, condition *metav1.Condition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.learned.said[conditionType]
	if known && (before == condition || before != nil && condition != nil && *before == *condition) {
		return
	}
	b.learned.said[conditionType] = condition
	b.ring()
}

// Attempted takes the outcome of an attempt to deliver an event.
func (b *Board) Attempted(a verification.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.learned.receiver.state
	b.learned.receiver = b.learned.receiver.after(a)
	if b.learned.receiver.state != before {
		b.ring()
	}
}

// anotherReceiver forgets what was learned of the receiver, because events go to another one from now on.
func (b *Board) anotherReceiver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learned.receiver = evidence{state: takes}
}

// stored takes what is believed of the store.
func (b *Board) stored(v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learned.storage = &v
	b.ring()
}

// snapshot returns what was learned so far.
func (b *Board) snapshot() learned {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.learned
	now.said = maps.Clone(now.said)
	return now
}

// ring tells that there is something new, once until somebody looks.
func (b *Board) ring() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
