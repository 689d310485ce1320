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

// Marker is in all that a stranger makes up, so that it is found wherever it gets to.
const Marker = "stranger"

const (
	// revokeAfter is how long the key that is to be revoked is left alone, and revoked how long every replica may take to
	// know: longer than any of them stands still.
	revokeAfter = 5 * time.Second
	revoked     = 20 * time.Second
	// longHeader is more than all headers of a request may have.
	longHeader = 32 << 10

	statusPath = "/api/verify/status"
	initPath   = "/api/verify/init"
)

// stranger tries, at any replica, what is to be refused: ids and keys that are not his, what could break a line of a log,
// and words that could become metrics.
type stranger struct {
	load   *Load
	random *rand.Rand
	// key was revoked, and from since on nobody takes it.
	key   string
	since time.Time
}

// try is one request of his.
type try struct {
	offence      ledger.Offence
	method, path string
	header       http.Header
	body         string
}

func (l *Load) trespass(ctx context.Context) {
	s := &stranger{load: l, random: rand.New(rand.NewPCG(l.Seed, l.Seed))}
	began := time.Now()
	for ctx.Err() == nil {
		pause(ctx, time.Duration(20+s.random.IntN(40))*time.Millisecond)
		if s.key == "" && time.Since(began) > revokeAfter {
			key, err := l.Revoke()
			l.write(err)
			s.key, s.since = key, time.Now().Add(revoked)
		}
		if replica, ok := l.any(); ok {
			s.send(ctx, replica, s.next())
		}
	}
}

func (s *stranger) send(ctx context.Context, replica string, t try) {
	asked := time.Now()
	status, body := s.load.call(ctx, t.method, replica+t.path, t.header, t.body)
	hash := sha256.Sum256(body)
	s.load.write(s.load.Trespasses.Note(ledger.Trespass{
		Asked: asked, At: time.Now(), Offence: t.offence, Answer: status, Body: hex.EncodeToString(hash[:]),
	}))
}

func (s *stranger) next() try {
	all := []func() try{s.guess, s.changeKey, s.makeKey, s.showKey, s.breakLines, s.shout, s.wander, s.invent}
	if s.key != "" && time.Now().After(s.since) {
		all = append(all, s.useRevoked)
	}
	return all[s.random.IntN(len(all))]()
}

// guess asks for an id of the right form, which the store is asked for.
func (s *stranger) guess() try {
	const symbols = "abcdefghijklmnopqrstuvwxyz234567"
	id := []byte("vr" + Marker + "----------------")
	for i := range id {
		if id[i] == '-' {
			id[i] = symbols[s.random.IntN(len(symbols))]
		}
	}
	return s.ask(ledger.GuessedID, string(id), s.load.Key())
}

func (s *stranger) useRevoked() try {
	return s.ask(ledger.RevokedKey, s.load.recent.any(), s.key)
}

// makeKey uses a key of the right form that nobody gave out.
func (s *stranger) makeKey() try {
	key, err := settings.NewAPIKey(crand.Reader)
	s.load.write(err)
	return s.ask(ledger.UnknownKey, s.load.recent.any(), key)
}

// changeKey uses a key that is right but for its last character.
func (s *stranger) changeKey() try {
	key := s.load.Key()
	last := "x"
	if strings.HasSuffix(key, last) {
		last = "y"
	}
	return s.ask(ledger.ChangedKey, s.load.recent.any(), key[:len(key)-1]+last)
}

// showKey puts a good key where logs would have it.
func (s *stranger) showKey() try {
	query := url.Values{"id": {s.load.recent.any()}, "api_key": {s.load.Key()}, "access_token": {s.load.Key()}}
	return try{ledger.KeyInURL, http.MethodGet, statusPath + "?" + query.Encode(), http.Header{}, ""}
}

// breakLines begins lines of its own, where a log takes words as they are.
func (s *stranger) breakLines() try {
	header := authorized(s.load.Key())
	header.Set("Content-Type", "application/json")
	for _, name := range []string{"User-Agent", "X-Request-Id", "Idempotency-Key"} {
		header.Set(name, Marker+"\u009b31m%0d%0a"+Marker)
	}
	return try{
		ledger.BrokenLines, http.MethodPost, initPath + "?x=%0d%0a" + Marker + "%1b[31m", header,
		`{"phoneNumber":"+4915\r\n` + Marker + `\u001b[31m"}`,
	}
}

// shout sends more header than anybody reads.
func (s *stranger) shout() try {
	header := authorized(s.load.Key())
	header.Set("User-Agent", strings.Repeat("A", longHeader))
	return try{ledger.LongHeader, http.MethodGet, statusPath + "?id=x", header, ""}
}

// wander asks for what is nowhere, each time another thing.
func (s *stranger) wander() try {
	path := fmt.Sprintf("/%s%d/%%0a%s", Marker, s.random.Uint64(), Marker)
	return try{ledger.OddPath, http.MethodGet, path, authorized(s.load.Key()), ""}
}

// invent uses a method that does not exist, each time another one.
func (s *stranger) invent() try {
	method := fmt.Sprintf("%s%d", strings.ToUpper(Marker), s.random.Uint64())
	return try{ledger.OddMethod, method, initPath, authorized(s.load.Key()), ""}
}

func (s *stranger) ask(offence ledger.Offence, id, key string) try {
	return try{offence, http.MethodGet, statusPath + "?" + url.Values{"id": {id}}.Encode(), authorized(key), ""}
}

func authorized(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }
