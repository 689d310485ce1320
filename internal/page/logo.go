package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// maxLogo limits the picture above the page, in bytes. It is loaded beside the page, by phones with a slow network.
	maxLogo = 64 << 10
	// logoAge is how old the picture in memory may be before its file is read again.
	logoAge = 10 * time.Second
	// logoLife is how long a browser keeps the picture, in seconds.
	logoLife = 300
)

// picture is the content of a file that browsers can show. It is never SVG, which can hold scripts.
type picture struct {
	content   []byte
	mediaType string
	// tag is the picture's ETag.
	tag string
}

// logo is the picture above the page. It is safe for concurrent use.
type logo struct {
	file  string
	clock clock.PassiveClock
	log   logr.Logger

	mu      sync.Mutex
	readAt  time.Time
	picture *picture
	problem string
}

// currentPicture returns the picture; nil if there is none, or if its file cannot be used.
func (l *logo) currentPicture() *picture {
	if l.file == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if !l.readAt.IsZero() && now.Sub(l.readAt) < logoAge {
		return l.picture
	}
	found, err := readPicture(l.file)
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != l.problem {
		l.log.Info("logo cannot be used", "file", l.file, "reason", problem)
	}
	l.readAt, l.picture, l.problem = now, found, problem
	return found
}

// readPicture returns the picture in a file: PNG, JPEG, WebP or GIF of at most maxLogo bytes.
func readPicture(path string) (*picture, error) {
	file, err := os.Open(path) //nolint:gosec // the file that the flag names
	if err != nil {
		return nil, fmt.Errorf("open picture: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	content, err := io.ReadAll(io.LimitReader(file, maxLogo+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read picture: %w", err)
	case len(content) > maxLogo:
		return nil, errors.New("larger than 64 KiB")
	}
	switch mediaType := http.DetectContentType(content); mediaType {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		sum := sha256.Sum256(content)
		return &picture{content: content, mediaType: mediaType, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}, nil
	default:
		return nil, fmt.Errorf("is %s, and no PNG, JPEG, WebP or GIF", mediaType)
	}
}

// serveLogo answers with the picture above the page.
func (h *Handler) serveLogo(v *visit) {
	found := h.logo.currentPicture()
	if found == nil {
		h.refuse(v.w, v.r, http.StatusNotFound, refusedTicket)
		return
	}
	header := v.w.Header()
	header.Set("Cache-Control", fmt.Sprintf("private, max-age=%d", logoLife))
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Content-Type", found.mediaType)
	header.Set("ETag", found.tag)
	http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(found.content))
}
