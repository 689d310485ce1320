package requests

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// pollInterval is how often the API is asked for changes.
	pollInterval = 2 * time.Second
	// watched is how many of the newest requests a watch compares.
	watched = maxLimit
)

// pages are the requests that the API lists.
type pages struct {
	api      *apiClient
	interval time.Duration
}

// List reads pages until the limit.
func (p *pages) List(ctx context.Context, query Query, limit int) ([]Request, error) {
	var found []Request
	for cursor := ""; ; {
		page, err := p.api.List(ctx, query, limit-len(found), cursor)
		if err != nil {
			return nil, fmt.Errorf("list requests: %w", err)
		}
		found = append(found, page.Requests...)
		if cursor = page.NextCursor; cursor == "" || len(found) >= limit {
			return found[:min(len(found), limit)], nil
		}
	}
}

// Get reads one request.
func (p *pages) Get(ctx context.Context, id string) (Request, error) {
	request, err := p.api.Get(ctx, id)
	if err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	return request, nil
}

// Watch compares the newest requests every few seconds.
func (p *pages) Watch(ctx context.Context, query Query, show func(Request) error) error {
	seen := map[string]string{}
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		list, err := p.List(ctx, query, watched)
		if err != nil {
			return err
		}
		present := make(map[string]string, len(list))
		for _, request := range slices.Backward(list) { // the oldest first, as they happened
			state := stateOf(&request)
			present[request.RequestID] = state
			if seen[request.RequestID] == state {
				continue
			}
			if err := show(request); err != nil {
				return err
			}
		}
		seen = present
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Follow asks for one request every few seconds.
func (p *pages) Follow(ctx context.Context, id string, show func(Request) error) error {
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for last := ""; ; {
		request, err := p.Get(ctx, id)
		switch {
		case hasCode(err, "request_not_found"):
			return describeAbsence(id, last != "")
		case err != nil:
			return endOf(ctx, err)
		}
		if state := stateOf(&request); state != last {
			last = state
			if err := show(request); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// stateOf returns what a watch compares.
func stateOf(r *Request) string {
	state := r.Status + " " + r.Hint + " " + r.Problem
	if r.Delivery != nil {
		state += fmt.Sprintf(" %s %d", r.Delivery.State, r.Delivery.Attempts)
	}
	return state
}
