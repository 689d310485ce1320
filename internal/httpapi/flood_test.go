package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Many clients of one key exceed its limit during the whole test. Meanwhile another key of the project, and another project
// in the same process and backend, start verifications.
func TestInit_floodAffectsNoOtherClient(t *testing.T) {
	const limit = 50
	g := NewWithT(t)
	h := newHarness(t, func(s *setup) {
		s.settings.Limits.PerKey = verification.Rate{Requests: limit, Period: time.Hour}
	})
	elsewhere, err := New(Options{
		Settings: liveSettings, Invite: newInvitation,
		Service: verification.NewService(verification.NewCodeSpace("shop/other"), h.backend.Open("shop/other")),
	})
	g.Expect(err).NotTo(HaveOccurred())
	neighbour := httptest.NewServer(elsewhere)
	t.Cleanup(neighbour.Close)

	var (
		all                        sync.WaitGroup
		numbers, admitted, refused atomic.Int64
		over                       = make(chan struct{})
		odd                        = make(chan string, 1000)
	)
	for range 32 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				status, retryAfter, err := postAs(h.client, "http://"+h.address, keyAll, int(numbers.Add(1)))
				switch {
				case err == nil && status == http.StatusOK:
					admitted.Add(1)
				case err == nil && status == http.StatusTooManyRequests && retryAfter != "":
					refused.Add(1)
				default:
					select {
					case odd <- fmt.Sprint(status, retryAfter, err):
					default:
					}
				}
			}
		})
	}
	g.Eventually(refused.Load).Should(BeNumerically(">", 100))
	before := refused.Load()
	others := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	t.Cleanup(others.CloseIdleConnections)
	for i := range limit {
		for _, target := range []struct{ base, key string }{{"http://" + h.address, keyInit}, {neighbour.URL, keyAll}} {
			status, _, err := postAs(others, target.base, target.key, 90_000_000+i)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
		}
	}
	g.Eventually(refused.Load).Should(BeNumerically(">", before), "the flood must last until then")
	close(over)
	all.Wait()
	g.Expect(odd).To(BeEmpty())
	g.Expect(admitted.Load()).To(BeEquivalentTo(limit))
}

// postAs starts a verification of the nth number.
func postAs(client *http.Client, base, key string, n int) (status int, retryAfter string, err error) {
	r, err := http.NewRequest(http.MethodPost, base+pathInit, strings.NewReader(fmt.Sprintf(`{"phoneNumber":"+49151%08d"}`, n)))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	return response.StatusCode, response.Header.Get("Retry-After"), response.Body.Close()
}
