package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/phoneproof/phoneproof/test/system"
)

// profile measures once more, for no figure, and keeps how the process spent its time, from when the load began; see
// loading.
func (b *bench) profile(ctx context.Context, name string, r *system.Replica, work side) error {
	if err := os.MkdirAll(b.profiles(), 0o755); err != nil {
		return err
	}
	begun := make(chan struct{})
	b.begun = sync.OnceFunc(func() { close(begun) })
	defer func() { b.begun = nil }()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := work(ctx, b.rounds)
		return err
	})
	group.Go(func() error {
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
		url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", r.Profiles, int(b.length.Seconds()))
		return download(ctx, url, filepath.Join(b.profiles(), name+".pprof"))
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}
	return nil
}

// loading is called when everything is prepared and the load begins.
func (b *bench) loading() {
	if b.begun != nil {
		b.begun()
	}
}

func download(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %d: %s", response.StatusCode, content)
	}
	return os.WriteFile(file, content, 0o644)
}
