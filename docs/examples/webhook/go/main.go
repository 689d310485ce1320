// Command go is a receiver of webhooks.
//
// A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is
// acknowledged.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	phoneproof "github.com/phoneproof/phoneproof/sdk/go"
)

const kept = 7 * 24 * time.Hour // an event is sent again for about three days

// folder has a file for each event.
type folder string

// take stores an event, and begins the work if it is new. An event that it returns an error for is sent again.
func (f folder) take(_ context.Context, event *phoneproof.Event) error {
	isNew, err := f.storeEvent(event.ID, event.Raw)
	if isNew && err == nil {
		go doWork(event)
	}
	return err
}

// doWork stands for yours.
func doWork(event *phoneproof.Event) { fmt.Fprintln(os.Stdout, event.Kind, event.RequestID) }

// storeEvent stores an event that will outlive a crash, and reports whether it is new.
func (f folder) storeEvent(id string, body []byte) (isNew bool, err error) {
	file, err := os.CreateTemp(string(f), "new-*")
	if err != nil {
		return false, fmt.Errorf("create file: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // deleteOldEvents takes what is left
	_, err = file.Write(body)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return false, fmt.Errorf("write event: %w", err)
	}
	err = os.Link(file.Name(), filepath.Join(string(f), id+".json")) // fails if the event is there already
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("store event: %w", err)
	}
	isNew = err == nil
	entries, err := os.Open(string(f))
	if err != nil {
		return false, fmt.Errorf("open folder: %w", err)
	}
	if err := errors.Join(entries.Sync(), entries.Close()); err != nil {
		return false, fmt.Errorf("sync folder: %w", err)
	}
	return isNew, nil
}

func (f folder) deleteOldEvents() error {
	files, err := os.ReadDir(string(f))
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) > kept {
			err = os.Remove(filepath.Join(string(f), file.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a temporary file may be gone
			return fmt.Errorf("delete event: %w", err)
		}
	}
	return nil
}

func run() error {
	events := folder(cmp.Or(os.Getenv("EVENTS"), "events"))
	receiver := phoneproof.Receiver{Secrets: []string{os.Getenv("WEBHOOK_SECRET")}}
	handler, err := receiver.Handler(phoneproof.HandlerOptions{OnEvent: events.take})
	if err != nil {
		return fmt.Errorf("use WEBHOOK_SECRET: %w", err)
	}
	if err := os.MkdirAll(string(events), 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	hours := time.Tick(time.Hour)
	go func() {
		for ; ; <-hours {
			if err := events.deleteOldEvents(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/hooks/phone", handler)
	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8000"), Handler: mux, ReadTimeout: 15 * time.Second}
	return fmt.Errorf("serve: %w", server.ListenAndServe())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
