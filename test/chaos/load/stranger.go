package load

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Marker is in everything that a stranger makes up, so that it is found wherever it appears.
const Marker = "stranger"

const (
	// revokeAfter is the time before the key is revoked, and revocationTime how long every replica may take to learn of
	// it: longer than any freeze.
	revokeAfter    = 5 * time.Second
	revocationTime = 20 * time.Second
	// longHeader is longer than all headers of a request may be.
	longHeader = 32 << 10

	statusPath = "/api/verify/status"
	initPath   = "/api/verify/init"
)

// stranger tries, at any replica, requests that must be refused: other people's ids and keys, text that could break a
// line of a log, and words that could become metrics.
type stranger struct {
	load   *Load
	random *rand.Rand
	// key was revoked; from since on every replica must refuse it.
	key   string
	since time.Time
}

// try is one request of a stranger.
type try struct {
	offence      ledger.Offence
	method, path string
	header       http.Header
	body         string
}

func (l *Load) runStranger(ctx context.Context) {
	s := &stranger{load: l, random: rand.New(rand.NewPCG(l.Seed, l.Seed))}
	began := time.Now()
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(20+s.random.IntN(40))*time.Millisecond)
		if s.key == "" && time.Since(began) > revokeAfter {
			key, err := l.Revoke()
			l.recordError(err)
			s.key, s.since = key, time.Now().Add(revocationTime)
		}
		if replica, ok := l.pickReplica(); ok {
			s.sendTry(ctx, replica, s.nextTry())
		}
	}
}

func (s *stranger) sendTry(ctx context.Context, replica string, t try) {
	asked := time.Now()
	status, body := s.load.sendRequest(ctx, t.method, replica+t.path, t.header, t.body)
	hash := sha256.Sum256(body)
	s.load.recordError(s.load.Trespasses.Note(ledger.Trespass{
		Asked: asked, At: time.Now(), Offence: t.offence, Answer: status, Error: readErrorCode(body), Body: hex.EncodeToString(hash[:]),
	}))
}

func (s *stranger) nextTry() try {
	all := []func() try{s.guessID, s.changeKey, s.makeKey, s.showKey, s.breakLines, s.sendLongHeader, s.requestOddPath, s.useOddMethod}
	if s.key != "" && time.Now().After(s.since) {
		all = append(all, s.useRevoked)
	}
	return all[s.random.IntN(len(all))]()
}

// guessID queries an id of the right form, which is looked up in the store.
func (s *stranger) guessID() try {
	const symbols = "abcdefghijklmnopqrstuvwxyz234567"
	id := []byte("vr" + Marker + "----------------")
	for i := range id {
		if id[i] == '-' {
			id[i] = symbols[s.random.IntN(len(symbols))]
		}
	}
	return s.tryStatus(ledger.GuessedID, string(id), s.load.Key())
}

func (s *stranger) useRevoked() try {
	return s.tryStatus(ledger.RevokedKey, s.load.recent.pickRandom(), s.key)
}

// makeKey uses a key of the right form that was never issued.
func (s *stranger) makeKey() try {
	key, err := settings.NewAPIKey(crand.Reader)
	s.load.recordError(err)
	return s.tryStatus(ledger.UnknownKey, s.load.recent.pickRandom(), key)
}

// changeKey uses a key whose last character is wrong.
func (s *stranger) changeKey() try {
	key := s.load.Key()
	last := "x"
	if strings.HasSuffix(key, last) {
		last = "y"
	}
	return s.tryStatus(ledger.ChangedKey, s.load.recent.pickRandom(), key[:len(key)-1]+last)
}

// showKey puts a good key into the URL, where logs would have it.
func (s *stranger) showKey() try {
	query := url.Values{"id": {s.load.recent.pickRandom()}, "api_key": {s.load.Key()}, "access_token": {s.load.Key()}}
	return try{ledger.KeyInURL, http.MethodGet, statusPath + "?" + query.Encode(), http.Header{}, ""}
}

// breakLines sends line breaks and escapes in everything that a log may contain.
func (s *stranger) breakLines() try {
	header := newAuthorizedHeader(s.load.Key())
	header.Set("Content-Type", "application/json")
	for _, name := range []string{"User-Agent", "X-Request-Id", "Idempotency-Key"} {
		header.Set(name, Marker+"\u009b31m%0d%0a"+Marker)
	}
	return try{
		ledger.BrokenLines, http.MethodPost, initPath + "?x=%0d%0a" + Marker + "%1b[31m", header,
		`{"phoneNumber":"+4915\r\n` + Marker + `\u001b[31m"}`,
	}
}

// sendLongHeader sends a header that is longer than the server accepts.
func (s *stranger) sendLongHeader() try {
	header := newAuthorizedHeader(s.load.Key())
	header.Set("User-Agent", strings.Repeat("A", longHeader))
	return try{ledger.LongHeader, http.MethodGet, statusPath + "?id=x", header, ""}
}

// requestOddPath requests a path that does not exist, a different one each time.
func (s *stranger) requestOddPath() try {
	path := fmt.Sprintf("/%s%d/%%0a%s", Marker, s.random.Uint64(), Marker)
	return try{ledger.OddPath, http.MethodGet, path, newAuthorizedHeader(s.load.Key()), ""}
}

// useOddMethod uses a method that does not exist, a different one each time.
func (s *stranger) useOddMethod() try {
	method := fmt.Sprintf("%s%d", strings.ToUpper(Marker), s.random.Uint64())
	return try{ledger.OddMethod, method, initPath, newAuthorizedHeader(s.load.Key()), ""}
}

func (s *stranger) tryStatus(offence ledger.Offence, id, key string) try {
	return try{offence, http.MethodGet, statusPath + "?" + url.Values{"id": {id}}.Encode(), newAuthorizedHeader(key), ""}
}

func newAuthorizedHeader(key string) http.Header {
	return http.Header{"Authorization": {"Bearer " + key}}
}
