package sink

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// answerMix is how the receiver answers at first, in thousandths of all requests. The rest is taken.
//
//nolint:gochecknoglobals // Go has no constant arrays
var answerMix = []struct {
	answer ledger.Answer
	parts  uint64
}{
	{ledger.Fails, 20}, {ledger.Unavailable, 10}, {ledger.Limits, 10}, {ledger.TakesResets, 10},
	{ledger.TakesSlowly, 5}, {ledger.Hangs, 5}, {ledger.Gone, 5},
}

// Choose returns the first answer to a request's event, which depends on seed and id.
func Choose(seed uint64, id string) ledger.Answer {
	h := fnv.New64a()
	var salt [8]byte
	binary.LittleEndian.PutUint64(salt[:], seed)
	_, _ = h.Write(salt[:]) // a hash returns no errors
	_, _ = io.WriteString(h, id)
	drawn := (h.Sum64() >> 8) % 1000
	for _, m := range answerMix {
		if drawn < m.parts {
			return m.answer
		}
		drawn -= m.parts
	}
	return ledger.Takes
}

// retryAfter is the Retry-After of an overloaded receiver, in seconds.
const retryAfter = 6

// writeAnswer writes the answer.
func writeAnswer(w http.ResponseWriter, r *http.Request, answer ledger.Answer) {
	switch answer {
	case ledger.Fails:
		w.WriteHeader(http.StatusInternalServerError)
	case ledger.Unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case ledger.Limits:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		w.WriteHeader(http.StatusTooManyRequests)
	case ledger.Gone:
		w.WriteHeader(http.StatusGone)
	case ledger.Hangs:
		<-r.Context().Done() // until the sender gives up
	case ledger.TakesResets:
		resetConnection(w)
	case ledger.TakesSlowly:
		writeSlowly(w, r)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// resetConnection resets the connection after the head of a good answer that announces a body.
func resetConnection(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	c, _, err := control.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// writeSlowly sends a body byte by byte, for longer than any sender reads it.
func writeSlowly(w http.ResponseWriter, r *http.Request) {
	const bytes = 100
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range bytes {
		if _, err := io.WriteString(w, "."); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
