package kubernetes

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// The handlers run in the informer, where a panic ends the process, and objects are content that people write.
func TestObserved_survivesAPanic(t *testing.T) {
	g := NewWithT(t)
	s := &Store{limits: newCreationLimits(), clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	told := 0
	s.changes.addListener(func(Change) {
		told++
		panic("a bug")
	})
	e := &entry{ObjectMeta: metav1.ObjectMeta{Name: "a"}, kind: KindMalformed}
	g.Expect(func() { s.handleObserved(e) }).NotTo(Panic())
	g.Expect(func() { s.handleDeleted(e) }).NotTo(Panic())
	g.Expect(told).To(Equal(2))
}

// Before the informer has synced, the limits would count nothing.
func TestStore_startsNothingBeforeTheInformerHasSynced(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	config := &rest.Config{Host: "http://127.0.0.1:1", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return nil, errLost
	})}
	s, err := New(Options{Config: config, Project: "shop/acme", ProjectUID: func() types.UID { return ownerUID }})
	g.Expect(err).NotTo(HaveOccurred())
	n := verification.New{ID: "a", Phone: fromE164(t, "+15550100199"), Method: verification.Telegram, TTL: time.Minute, Fresh: true}
	_, err = s.Create(t.Context(), n, verification.Limits{})
	g.Expect(err).To(MatchError(ContainSubstring("the informer has not synced yet")))
	g.Expect(err).To(MatchError(verification.Unavailable(nil)))
	_, err = s.Stored(t.Context())
	g.Expect(err).To(MatchError(verification.Unavailable(nil)))
	g.Expect(s.Ready(t.Context())).To(MatchError(verification.Unavailable(nil)))
	g.Expect(asked).To(BeZero())
}
