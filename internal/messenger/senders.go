package messenger

import (
	"crypto/hmac"
	"crypto/sha256"

	"golang.org/x/sync/errgroup"
)

// HandleBySender handles items, those of one sender in their order, and those of up to limit senders at the same time. handle
// reports whether the next item of the same sender is handled too.
func HandleBySender[T any, K comparable](items []T, limit int, sender func(*T) K, handle func(*T) bool) {
	groups := make([][]*T, 0, len(items))
	index := make(map[K]int, len(items))
	for i := range items {
		key := sender(&items[i])
		at, seen := index[key]
		if !seen {
			at = len(groups)
			index[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], &items[i])
	}
	var all errgroup.Group
	all.SetLimit(limit)
	for _, of := range groups {
		all.Go(func() error {
			for _, item := range of {
				if !handle(item) {
					break
				}
			}
			return nil
		})
	}
	_ = all.Wait() // handle keeps the errors
}

// MatchesSecret reports whether presented is what derive returns for one of the secrets. All are tried, and hashes of one length are
// compared, so the time reveals neither which one it was nor how long it is.
func MatchesSecret(presented string, secrets [][]byte, derive func(secret []byte) string) bool {
	sum, found := sha256.Sum256([]byte(presented)), false
	for _, secret := range secrets {
		want := sha256.Sum256([]byte(derive(secret)))
		if hmac.Equal(sum[:], want[:]) {
			found = true
		}
	}
	return found
}
