package project

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// What somebody changes in a project's children or status is put right at once for the first few times, and from then on once per
// interval: two who disagree for ever are to cost little.
const (
	mendingInterval = time.Minute
	mendingBurst    = 5
)

// pace bounds how often the children and the status of each project are mended. A change of the project itself is not
// bounded. It starts anew with each process, which is no harm.
type pace struct {
	mu     sync.Mutex
	limits map[types.UID]limit
	told   map[types.UID]statement
	// refused are the last refusals of projects' exposures.
	refused map[types.UID]refusal
}

// refusal is when the exposures of a project were refused, and in which generation.
type refusal struct {
	generation int64
	at         time.Time
}

// limit is that of a project, and the generation in which it was mended last.
type limit struct {
	*rate.Limiter

	generation int64
}

// statement is what a project's status was told to say.
type statement struct {
	generation int64
	conditions []metav1.Condition // without times
}

// wait returns how long a project is to be left alone.
func (p *pace) wait(project *verifyv1.VerificationProject, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, ok := p.limits[project.UID]
	if !ok || limit.generation != project.Generation {
		return 0
	}
	if missing := 1 - limit.TokensAt(now); missing > 0 {
		return time.Duration(missing * float64(mendingInterval))
	}
	return 0
}

// mended notes that a project was put right.
func (p *pace) mended(project *verifyv1.VerificationProject, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limits == nil {
		p.limits = map[types.UID]limit{}
	}
	mine, ok := p.limits[project.UID]
	if !ok {
		for uid, limit := range p.limits { // those that are full again say nothing
			if limit.TokensAt(now) >= mendingBurst {
				delete(p.limits, uid)
			}
		}
		mine.Limiter = rate.NewLimiter(rate.Every(mendingInterval), mendingBurst)
	}
	mine.generation = project.Generation
	p.limits[project.UID] = mine
	mine.AllowN(now, 1)
}

// recordRefusal notes that the exposures of a project were refused.
func (p *pace) recordRefusal(project *verifyv1.VerificationProject, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = map[types.UID]refusal{}
	}
	p.refused[project.UID] = refusal{project.Generation, now}
}

// wasRefused reports whether the exposures of a project, as it is now, were refused in the last afterRejection.
func (p *pace) wasRefused(project *verifyv1.VerificationProject, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.refused[project.UID]
	return ok && last.generation == project.Generation && now.Sub(last.at) < afterRejection
}

// repeats notes what a project's status was told to say, and tells whether that is what it was told before: if so, somebody
// else has overwritten it.
func (p *pace) repeats(project types.UID, generation int64, conditions []metav1.Condition) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told == nil {
		p.told = map[types.UID]statement{}
	}
	before, ok := p.told[project]
	p.told[project] = statement{generation, conditions}
	return ok && before.generation == generation && slices.Equal(before.conditions, conditions)
}

// forget drops a project that is gone.
func (p *pace) forget(project types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.limits, project)
	delete(p.told, project)
	delete(p.refused, project)
}
