package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// parseListQuery reads the parameters of a list. Each may be given once, and unknown ones are refused: an answer without a filter that
// was meant would have all requests.
func parseListQuery(raw, project string) (verification.ListQuery, error) {
	query := verification.ListQuery{Limit: defaultPage}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query, errQuery
	}
	if err := readListParameters(values, project, &query); err != nil {
		return query, err
	}
	if len(values) > 0 {
		return query, errListParameter
	}
	return query, nil
}

// readListParameters reads the parameters that are given, and removes them.
func readListParameters(values url.Values, project string, query *verification.ListQuery) error {
	for _, p := range listParameters { // the cursor last: it is checked against the others
		given := values[p.name]
		if len(given) > 0 && (len(given) > 1 || !p.read(given[0], project, query)) {
			return p.refusal
		}
		delete(values, p.name)
	}
	return nil
}

// listParameters are the parameters of a list, in the order in which they are read.
var listParameters = [...]struct {
	name    string
	read    func(value, project string, q *verification.ListQuery) bool
	refusal *verification.Error
}{
	{"status", readPhase, errListStatus},
	{"reference", readReference, errListReference},
	{"since", readSince, errListSince},
	{"kind", readKind, errListKind},
	{"limit", readLimitParameter, errListLimit},
	{"cursor", readCursor, errListCursor},
}

func readPhase(value, _ string, q *verification.ListQuery) bool {
	q.Phase = verification.Phase(value)
	return q.Phase == verification.Pending || q.Phase.Final()
}

func readReference(value, _ string, q *verification.ListQuery) bool {
	q.Reference = value
	return utf8.ValidString(value) && isReference(value)
}

func readSince(value, _ string, q *verification.ListQuery) bool {
	since, err := time.Parse(time.RFC3339Nano, value)
	q.Since = since.UTC()
	return err == nil && len(value) <= maxSinceBytes
}

func readKind(value, _ string, q *verification.ListQuery) bool {
	q.Deliveries = true
	return value == "DELIVERY"
}

func readLimitParameter(value, _ string, q *verification.ListQuery) bool {
	limit, err := strconv.Atoi(value)
	q.Limit = limit
	// No sign, no zero in front: a number has one form.
	return err == nil && limit >= 1 && limit <= verification.MaxPage && strconv.Itoa(limit) == value
}

func readCursor(value, project string, q *verification.ListQuery) bool {
	after, ok := decodeCursor(value, project, q.ListFilter)
	q.After = after
	return ok
}

// A cursor is a position after a check of it: the time in microseconds, and the id. The check finds cursors that were cut, or that
// belong to another project or other filters. It is no secret: a made-up cursor only begins a list of the same project elsewhere.
const (
	cursorCheck = 8
	cursorTime  = 8
	maxCursorID = 253
	// maxCursorTime is in the year 9999, in microseconds.
	maxCursorTime = 253_000_000_000 * 1_000_000
)

// encodeCursor returns the text of a position.
func encodeCursor(p verification.Position, project string, f verification.ListFilter) string {
	place := binary.BigEndian.AppendUint64(nil, uint64(p.CreatedAt.UnixMicro()))
	place = append(place, p.ID...)
	return base64.RawURLEncoding.EncodeToString(append(checkCursor(place, project, f), place...))
}

// decodeCursor returns the position of a text, and false if it is not one that encodeCursor returned for that project and filter.
func decodeCursor(text, project string, f verification.ListFilter) (verification.Position, bool) {
	if len(text) > base64.RawURLEncoding.EncodedLen(cursorCheck+cursorTime+maxCursorID) {
		return verification.Position{}, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) <= cursorCheck+cursorTime {
		return verification.Position{}, false
	}
	check, place := data[:cursorCheck], data[cursorCheck:]
	if string(check) != string(checkCursor(place, project, f)) {
		return verification.Position{}, false
	}
	micros := int64(binary.BigEndian.Uint64(place)) //nolint:gosec // as it was written
	position := verification.Position{CreatedAt: time.UnixMicro(micros).UTC(), ID: string(place[cursorTime:])}
	// Who makes a cursor up can make its check up. A store may fail at what it never stores.
	return position, micros > 0 && micros < maxCursorTime && verification.IsStoredID(position.ID)
}

func checkCursor(place []byte, project string, f verification.ListFilter) []byte {
	text := fmt.Appendf(nil, "%q %q %q %d %x", project, f.Phase, f.Reference, f.Since.UnixMicro(), place)
	if !f.Phone.IsZero() {
		text = append(text, phone.Canonical(f.Phone).E164()...)
	}
	if f.Deliveries {
		text = append(text, " deliveries"...)
	}
	sum := sha256.Sum256(text)
	return sum[:cursorCheck]
}
