package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Activity implements verification.Counter.
func (s *Store) Activity(ctx context.Context, m verification.Method, since time.Time) (verification.Activity, error) {
	var activity verification.Activity
	if err := s.backend.checkAvailable(ctx); err != nil {
		return activity, fmt.Errorf("read activity: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	for _, rec := range s.project.records {
		if rec.request.UsedMethod() == m {
			activity.Count(&rec.request, since)
		}
	}
	return activity, nil
}

// CodesStarted implements verification.Counter.
func (s *Store) CodesStarted(ctx context.Context, m verification.Method, since time.Time) (map[string]int, error) {
	if err := s.backend.checkAvailable(ctx); err != nil {
		return nil, fmt.Errorf("count codes: %w", err)
	}
	s.project.mu.RLock()
	defer s.project.mu.RUnlock()
	started := map[string]int{}
	for _, rec := range s.project.records {
		if r := &rec.request; r.DeliversCode() && r.Method == m && !r.Test && r.CreatedAt.After(since) {
			started[r.KeyName]++
		}
	}
	return started, nil
}
