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

// takeProfile measures once more and stores a CPU profile of the process from when the load begins; see startProfile. It adds rows of
// where the time of that round was used, if the work says what each call cost.
func (b *bench) takeProfile(ctx context.Context, name string, r *system.Replica, work side) error {
	if err := os.MkdirAll(b.profilesDir(), 0o755); err != nil {
		return err
	}
	begun := make(chan struct{})
	b.begun = sync.OnceFunc(func() { close(begun) })
	defer func() { b.begun = nil }()
	file := filepath.Join(b.profilesDir(), name+".pprof")
	var found sample
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		found, err = work(ctx, b.rounds)
		return err
	})
	group.Go(func() error {
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
		url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", r.Profiles, int(b.length.Seconds()))
		return downloadFile(ctx, url, file)
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}
	each, measured := found[keyServer]
	if !measured {
		return nil
	}
	shares, err := readShares(file)
	if err != nil {
		return err
	}
	for _, where := range places {
		b.addRow(row{figure: fmt.Sprintf("%s, CPU for each, the server, %s", name, where), unit: "µs", ours: series{shares[where] * each}})
	}
	return nil
}

// startProfile is called when everything is prepared and the load begins.
func (b *bench) startProfile() {
	if b.begun != nil {
		b.begun()
	}
}

// downloadProfile stores a profile of the process as it is now, such as "heap".
func downloadProfile(ctx context.Context, r *system.Replica, kind, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return downloadFile(ctx, fmt.Sprintf("http://%s/debug/pprof/%s?gc=1", r.Profiles, kind), file)
}

func downloadFile(ctx context.Context, url, file string) error {
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
		return fmt.Errorf("profile request was answered %d: %s", response.StatusCode, content)
	}
	return os.WriteFile(file, content, 0o644)
}
