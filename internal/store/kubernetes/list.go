package kubernetes

import (
	"context"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// List implements verification.Lister. It looks at every object that this replica knows, and never calls the API server: Limits.MaxStored
// bounds how many there are.
func (s *Store) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	if err := ctx.Err(); err != nil {
		return verification.ListPage{}, err
	}
	if !s.HasSynced() {
		return verification.ListPage{}, errNotSynced()
	}
	own := s.ownWrites.names() // first: the watch then has what is forgotten in between
	listing := verification.NewListing(q, s.now())
	for _, item := range s.informer.GetStore().List() {
		e := entryOf(item)
		if e == nil {
			continue
		}
		if !own.Has(e.Name) {
			addEntry(listing, e)
		}
	}
	for name := range own {
		addEntry(listing, s.cachedEntry(name))
	}
	return listing.Page(), nil
}

func addEntry(listing *verification.Listing, e *entry) {
	if e != nil && e.kind == KindRequest {
		listing.Add(&e.request)
	}
}
