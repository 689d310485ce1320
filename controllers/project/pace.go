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

// Foreign changes of a project's children or status are corrected at once for the first few times, and then once per interval, so
// that clients that disagree for ever cost little.
const (
	correctionInterval = time.Minute
	correctionBurst    = 5
)

// pace limits how often the children and the status of each project are corrected. A change of the project itself is not limited.
// It starts empty with each process, which is harmless.
type pace struct {
	mu         sync.Mutex
	limits     map[types.UID]limit
	statements map[types.UID]statement
}

// limit is the limiter of a project, with the generation in which it was corrected last.
type limit struct {
	*rate.Limiter

	generation int64
}

// statement is the last status that was written for a project.
type statement struct {
	generation int64
	conditions []metav1.Condition // without times
}

// delay returns how long a project must not be corrected.
func (p *pace) delay(project *verifyv1.VerificationProject, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, ok := p.limits[project.UID]
	if !ok || limit.generation != project.Generation {
		return 0
	}
	if missing := 1 - limit.TokensAt(now); missing > 0 {
		return time.Duration(missing * float64(correctionInterval))
	}
	return 0
}

// recordCorrection records that a project was corrected.
func (p *pace) recordCorrection(project *verifyv1.VerificationProject, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limits == nil {
		p.limits = map[types.UID]limit{}
	}
	mine, ok := p.limits[project.UID]
	if !ok {
		for uid, limit := range p.limits { // full limiters hold no information
			if limit.TokensAt(now) >= correctionBurst {
				delete(p.limits, uid)
			}
		}
		mine.Limiter = rate.NewLimiter(rate.Every(correctionInterval), correctionBurst)
	}
	mine.generation = project.Generation
	p.limits[project.UID] = mine
	mine.AllowN(now, 1)
}

// recordStatement records the written status of a project, and reports whether it was the same before: then another client has
// overwritten it.
func (p *pace) recordStatement(project types.UID, generation int64, conditions []metav1.Condition) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.statements == nil {
		p.statements = map[types.UID]statement{}
	}
	before, ok := p.statements[project]
	p.statements[project] = statement{generation, conditions}
	return ok && before.generation == generation && slices.Equal(before.conditions, conditions)
}

// forget drops a deleted project.
func (p *pace) forget(project types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.limits, project)
	delete(p.statements, project)
}
