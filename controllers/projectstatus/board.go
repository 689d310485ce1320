package projectstatus

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Board collects what the loops of a term learn, for the Controller to write. Each term of a lease has a new one. It is safe for
// concurrent use.
type Board struct {
	mu      sync.Mutex
	learned learned
	changed chan struct{}
}

// learned is a snapshot of a Board.
type learned struct {
	// conditions holds the last condition of each type; nil for a withdrawn one. Types that are missing were never set in this
	// term.
	conditions map[string]*metav1.Condition
	storage    *verdict // nil until the first result counts
	receiver   evidence
}

// NewBoard returns an empty board.
func NewBoard() *Board {
	return &Board{learned: learned{conditions: map[string]*metav1.Condition{}}, changed: make(chan struct{}, 1)}
}

// Set replaces the condition of one type. ObservedGeneration is the generation of the settings that it was judged by, so it must
// be set again after each change of the settings; LastTransitionTime is set by the Controller.
func (b *Board) Set(condition metav1.Condition) {
	condition.LastTransitionTime = metav1.Time{}
	b.update(condition.Type, &condition)
}

// Withdraw removes the condition of a type from the project, because it no longer applies.
func (b *Board) Withdraw(conditionType string) { b.update(conditionType, nil) }

func (b *Board) update(conditionType string, condition *metav1.Condition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.learned.conditions[conditionType]
	if known && (before == condition || before != nil && condition != nil && *before == *condition) {
		return
	}
	b.learned.conditions[conditionType] = condition
	b.notify()
}

// Attempted takes the outcome of an attempt to deliver an event.
func (b *Board) Attempted(a verification.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.learned.receiver.state
	b.learned.receiver = b.learned.receiver.withAttempt(a)
	if b.learned.receiver.state != before {
		b.notify()
	}
}

// resetReceiver forgets what was learned of the receiver, because events go to another one from now on.
func (b *Board) resetReceiver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learned.receiver = evidence{state: receiverHealthy}
}

// setStorage sets the verdict on the store.
func (b *Board) setStorage(v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learned.storage = &v
	b.notify()
}

// snapshot returns a copy of what was learned so far.
func (b *Board) snapshot() learned {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.learned
	now.conditions = maps.Clone(now.conditions)
	return now
}

// notify signals a change. Changes before the next read count as one.
func (b *Board) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
