// Command go is a receiver of webhooks. It uses the standard library alone.
//
// A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is
// acknowledged.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance = 5 * time.Minute    // by which webhook-timestamp may be off
	kept      = 7 * 24 * time.Hour // an event is sent again for about three days
	maxBody   = 64 << 10
)

// receiver stores events.
type receiver struct {
	key    []byte // for HMAC
	events string // a folder
}

// isAuthentic reports whether the body was signed within the last minutes.
func isAuthentic(rawBody []byte, header http.Header, key []byte) bool {
	sent := header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("Webhook-Id"), sent, rawBody)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for part := range strings.SplitSeq(header.Get("Webhook-Signature"), " ") {
		if hmac.Equal([]byte(part), want) {
			return true
		}
	}
	return false
}

// receiveEvent takes an event, and returns the status to answer.
func (rc *receiver) receiveEvent(w http.ResponseWriter, r *http.Request) int {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)) // as it came: the signature is over these bytes
	if err != nil {
		return http.StatusBadRequest
	}
	if !isAuthentic(body, r.Header, rc.key) {
		return http.StatusUnauthorized
	}
	isNew, err := rc.storeEvent(r.Header.Get("Webhook-Id"), body)
	if err != nil {
		return http.StatusInternalServerError // the event is sent again
	}
	if isNew {
		go doWork(body)
	}
	return http.StatusNoContent
}

// doWork stands for yours.
func doWork(body []byte) {
	var event struct {
		Event     string `json:"event"`
		RequestID string `json:"requestId"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprintln(os.Stdout, event.Event, event.RequestID)
}

// storeEvent stores an event that will outlive a crash, and reports whether it is new.
func (rc *receiver) storeEvent(id string, body []byte) (isNew bool, err error) {
	file, err := os.CreateTemp(rc.events, "new-*")
	if err != nil {
		return false, fmt.Errorf("create file: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // deleteOldEvents takes what is left
	_, err = file.Write(body)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return false, fmt.Errorf("write event: %w", err)
	}
	err = os.Link(file.Name(), filepath.Join(rc.events, id+".json")) // fails if the event is there already
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("store event: %w", err)
	}
	isNew = err == nil
	folder, err := os.Open(rc.events)
	if err != nil {
		return false, fmt.Errorf("open folder: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return false, fmt.Errorf("sync folder: %w", err)
	}
	return isNew, nil
}

func (rc *receiver) deleteOldEvents() error {
	files, err := os.ReadDir(rc.events)
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) > kept {
			err = os.Remove(filepath.Join(rc.events, file.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a temporary file may be gone
			return fmt.Errorf("delete event: %w", err)
		}
	}
	return nil
}

// decodeSecret returns the key for HMAC. With an empty one, anyone could sign.
func decodeSecret(secret string) ([]byte, error) {
	key := []byte(secret)
	if encoded, isEncoded := strings.CutPrefix(secret, "whsec_"); isEncoded {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("decode WEBHOOK_SECRET: %w", err)
		}
	}
	if len(key) < 24 {
		return nil, errors.New("WEBHOOK_SECRET needs 24 bytes or more")
	}
	return key, nil
}

func run() error {
	key, err := decodeSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		return err
	}
	rc := &receiver{key: key, events: cmp.Or(os.Getenv("EVENTS"), "events")}
	if err := os.MkdirAll(rc.events, 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	hours := time.Tick(time.Hour)
	go func() {
		for ; ; <-hours {
			if err := rc.deleteOldEvents(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/phone", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(rc.receiveEvent(w, r)) })
	server := &http.Server{Addr: cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8000"), Handler: mux, ReadTimeout: 15 * time.Second}
	return fmt.Errorf("serve: %w", server.ListenAndServe())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
