package project

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxClockDifference is how far ahead of this operator's clock a recorded claim may be and still order new claims after it.
const maxClockDifference = time.Hour

// claim is the time since when a project has named an account.
type claim struct {
	project *verifyv1.VerificationProject
	since   time.Time
}

// claims orders the claims of the projects of a namespace on accounts. They are persisted in the projects' status; this holds
// those that the cache does not show yet. Only one operator works at a time, so its order is the only one.
type claims struct {
	mu   sync.Mutex
	made map[types.UID]map[string]time.Time
}

// recordClaims returns the claims on an account of the projects of one namespace that name it, the oldest first. Projects without
// a claim get one, after all others, in the order of their creation. The caller holds the lock.
func (c *claims) recordClaims(rivals []*verifyv1.VerificationProject, account string, now time.Time) []claim {
	ordered := orderClaims(rivals, account, c.made, now)
	for i := range ordered {
		uid := ordered[i].project.UID
		if c.made[uid] == nil {
			if c.made == nil {
				c.made = map[types.UID]map[string]time.Time{}
			}
			c.made[uid] = map[string]time.Time{}
		}
		c.made[uid][account] = ordered[i].since
	}
	return ordered
}

// release forgets the claims of a project that its status shows, and those on accounts that its spec no longer names: such a
// claim is lost.
func (c *claims) release(project *verifyv1.VerificationProject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := listAccounts(&project.Spec)
	for account := range c.made[project.UID] {
		_, shown := findRecordedClaim(project, account)
		if shown || !slices.Contains(named, account) {
			delete(c.made[project.UID], account)
		}
	}
	if len(c.made[project.UID]) == 0 {
		delete(c.made, project.UID)
	}
}

// forgetClaims drops a deleted project.
func (c *claims) forgetClaims(project types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, project)
}

func orderClaims(
	rivals []*verifyv1.VerificationProject, account string, made map[types.UID]map[string]time.Time, now time.Time,
) []claim {
	latest := now.UTC().Truncate(time.Microsecond).Add(-time.Microsecond)
	var list, unclaimed []claim
	for _, rival := range rivals {
		since, ok := findClaimTime(rival, account, made)
		if !ok {
			unclaimed = append(unclaimed, claim{project: rival})
			continue
		}
		// Clocks of successive leaders differ: a new claim must be newer than the existing ones, whatever this clock shows.
		if since.After(latest) && since.Sub(now) <= maxClockDifference {
			latest = since
		}
		list = append(list, claim{rival, since})
	}
	slices.SortFunc(unclaimed, compareClaims)
	for _, fresh := range unclaimed {
		latest = latest.Add(time.Microsecond)
		list = append(list, claim{fresh.project, latest})
	}
	slices.SortFunc(list, compareClaims)
	return list
}

// findClaimTime returns since when a project has named an account. No claim is older than its project, whatever the status
// contains.
func findClaimTime(p *verifyv1.VerificationProject, account string, made map[types.UID]map[string]time.Time) (time.Time, bool) {
	created := p.CreationTimestamp.UTC()
	if since, ok := findRecordedClaim(p, account); ok {
		if since.Before(created) {
			return created, true
		}
		return since, true
	}
	since, ok := made[p.UID][account]
	return since, ok
}

func findRecordedClaim(p *verifyv1.VerificationProject, account string) (time.Time, bool) {
	for _, c := range p.Status.Claims {
		if c.Account == account {
			return c.Since.UTC(), true
		}
	}
	return time.Time{}, false
}

// compareClaims orders claims by time, and those of the same time by creation and name, so every operator gets the same order.
func compareClaims(a, b claim) int {
	return cmp.Or(a.since.Compare(b.since),
		a.project.CreationTimestamp.Compare(b.project.CreationTimestamp.Time), cmp.Compare(a.project.Name, b.project.Name))
}

// newAccountClaim returns a claim in the form of the status.
func newAccountClaim(account string, since time.Time) verifyv1.AccountClaim {
	return verifyv1.AccountClaim{Account: account, Since: metav1.NewMicroTime(since)}
}
