package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// creation is a request to be stored.
type creation struct {
	verification.New

	limits verification.Limits
	// version is the version of the request's first state. It identifies a creation whose outcome was unknown.
	version int64
}

// Create implements verification.Store.
func (s *Store) Create(ctx context.Context, n verification.New, limits verification.Limits) (verification.Created, error) {
	limits.MaxStored = 0 // a database needs no cap
	created, err := s.creates.do(ctx, creation{New: n, limits: limits, version: newVersion()})
	if err != nil {
		return verification.Created{}, err
	}
	if !created.Existing {
		s.watch.Notify(n.ID)
		if n.Test { // its outcome may be due
			s.notifyWorker()
		}
	}
	return created, nil
}

// newCreationFilter returns a filter that admits each id once per batch, and only calls with the limits and the mode of the first one.
func newCreationFilter() func(*call[creation, verification.Created]) bool {
	var (
		limits verification.Limits
		test   bool
	)
	ids := make(map[string]bool)
	return func(next *call[creation, verification.Created]) bool {
		if len(ids) == 0 {
			limits, test = next.in.limits, next.in.Test
		}
		if next.in.limits != limits || next.in.Test != test || ids[next.in.ID] {
			return false
		}
		ids[next.in.ID] = true
		return true
	}
}

// createAll stores the creations of a batch in one transaction.
func (s *Store) createAll(ctx context.Context, calls []*call[creation, verification.Created]) error {
	b := newCreationBatch(s.options.Project, calls)
	return s.retryWrite(ctx, func(c *pgx.Conn) error {
		defer func() { b.retried = true }()
		return b.run(ctx, c)
	})
}

// creationBatch is the transaction of a batch of creations.
type creationBatch struct {
	project string
	calls   []*call[creation, verification.Created]
	limits  verification.Limits
	// keys, numbers and groups are the ones with a rate limit.
	keys []string
	// lines are the numbers that may cool down; none where no creation of the batch has such a limit.
	lines           []string
	numbers, groups placeDemand
	// retried reports whether an earlier attempt may have stored the batch.
	retried bool
}

func newCreationBatch(project string, calls []*call[creation, verification.Created]) *creationBatch {
	b := &creationBatch{project: project, calls: calls, limits: calls[0].in.limits}
	keys := map[string]bool{}
	for _, c := range calls {
		keys[keyOf(c.in.New)] = true
	}
	if b.limits.PerKey.Limited() {
		b.keys = slices.Sorted(maps.Keys(keys))
	}
	b.lines = linesOf(calls, b.limits)
	b.numbers, b.groups = demandOfNumbers(calls, b.limits), demandOfGroups(calls, b.limits)
	return b
}

// keyOf returns the name that a creation counts by. No key has a space in its name, so one whose mode changes begins anew.
func keyOf(n verification.New) string {
	if n.Test {
		return "test " + n.KeyName
	}
	return n.KeyName
}

// linesOf returns the canonical numbers of calls that may cool down, sorted.
func linesOf(calls []*call[creation, verification.Created], limits verification.Limits) []string {
	var lines []string
	for _, c := range calls {
		if limits.CooldownOf(c.in.Counted()) > 0 {
			lines = append(lines, lineOf(c.in.Phone))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// run reads the windows, admits the creations and writes them: two round trips for a batch of any size.
func (b *creationBatch) run(ctx context.Context, c *pgx.Conn) error {
	w, existing, err := b.readWindows(ctx, c)
	if err != nil {
		return wrapStep("prepare creations", err)
	}
	var admitted []*call[creation, verification.Created]
	for _, call := range b.calls {
		if known, ok := existing[call.in.ID]; ok {
			ours := known.version == call.in.version // committed by an attempt whose answer was lost; out.Key is from then
			call.out.Request, call.out.Existing, call.err = known.Request, !ours, nil
			continue
		}
		quota, refusal := w.admitCreation(call.in.New)
		if call.err = refusal; refusal != nil {
			continue
		}
		call.out = verification.Created{Request: newRequest(call.in, w.now), Key: quota}
		admitted = append(admitted, call)
	}
	return b.writeAdmitted(ctx, c, w, admitted)
}

// newRequest returns the first state of a request.
func newRequest(in creation, now time.Time) verification.Request {
	r := verification.NewRequest(in.New, now)
	r.Version = versionText(in.version)
	return r
}

// readWindows begins the transaction, locks the keys and reads the windows.
func (b *creationBatch) readWindows(ctx context.Context, c *pgx.Conn) (*windows, map[string]*state, error) {
	w := &windows{
		limits: b.limits, keys: make(map[string]*keyWindow),
		numbers: make(map[string]*placeWindow), groups: make(map[string]*placeWindow),
	}
	existing := make(map[string]*state)
	batch := &pgx.Batch{}
	batch.Queue(sqlBegin)
	if len(b.keys) > 0 {
		batch.Queue(sqlLockKeys, b.project, b.keys).Query(w.readKeys)
		batch.Queue(sqlKeyWindows, b.project, b.keys, b.limits.PerKey.Period).Query(w.readKeyWindows)
	} else {
		batch.Queue(sqlNow).QueryRow(w.readNow)
	}
	b.numbers.queueRead(batch, sqlNumbers, b.project, w.numbers)
	b.groups.queueRead(batch, sqlGroups, b.project, w.groups)
	if len(b.lines) > 0 {
		batch.Queue(sqlDeclines, b.project, b.lines).Query(w.readDeclines)
	}
	if ids := b.idsToRead(); len(ids) > 0 {
		batch.Queue(sqlRead, b.project, ids).Query(func(rows pgx.Rows) error { return collectStates(rows, existing) })
	}
	if err := c.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, wrapStep("read windows", err)
	}
	if len(w.keys) < len(b.keys) {
		return nil, nil, b.addKeys(ctx, c)
	}
	return w, existing, b.readLeaving(ctx, c, w)
}

// idsToRead returns the ids that may already exist, which are neither limited nor counted. Fresh ids are read only on a retry,
// which an existing one causes.
func (b *creationBatch) idsToRead() []string {
	list := make([]string, 0, len(b.calls))
	for _, c := range b.calls {
		if b.retried || !c.in.Fresh {
			list = append(list, c.in.ID)
		}
	}
	return list
}

// addKeys inserts the rows of keys that were never counted before, and returns errRetry.
func (b *creationBatch) addKeys(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, sqlRollback); err != nil {
		return wrapStep("roll back", err)
	}
	if _, err := c.Exec(ctx, sqlAddKeys, b.project, b.keys); err != nil {
		return wrapStep("insert keys", err)
	}
	return errRetry
}

// readLeaving reads when a key over its rate admits again, if that does not follow from its oldest row.
func (b *creationBatch) readLeaving(ctx context.Context, c *pgx.Conn, w *windows) error {
	for _, name := range b.keys {
		key := w.keys[name]
		if !key.beyondFirst(b.limits.PerKey) {
			continue
		}
		row := c.QueryRow(ctx, sqlKeyLeaves, b.project, name, w.now.Add(-b.limits.PerKey.Period), key.blockingNumber(b.limits.PerKey))
		if err := row.Scan(&key.leaves); err != nil {
			return wrapStep("read when a key admits again", err)
		}
	}
	return nil
}

func (w *windows) readKeys(rows pgx.Rows) error {
	var (
		name  string
		total int64
		last  time.Time
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &total, &last}, func() error {
		w.keys[name] = &keyWindow{total: total, lastAt: last.UTC()}
		return nil
	})
	return wrapStep("lock keys", err)
}

func (w *windows) readNow(row pgx.Row) error {
	if err := row.Scan(&w.now); err != nil {
		return wrapStep("read the time", err)
	}
	w.now = w.now.UTC()
	return nil
}

func (w *windows) readKeyWindows(rows pgx.Rows) error {
	var (
		name     string
		now      time.Time
		at       *time.Time
		total, n *int64
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &now, &at, &total, &n}, func() error {
		w.now = now.UTC()
		if key := w.keys[name]; key != nil && at != nil {
			key.first = admissions{at: at.UTC(), total: *total, n: *n}
		}
		return nil
	})
	return wrapStep("read admissions of keys", err)
}

func (w *windows) readDeclines(rows pgx.Rows) error {
	var (
		line string
		at   time.Time
	)
	w.declined = make(map[string]time.Time)
	_, err := pgx.ForEachRow(rows, []any{&line, &at}, func() error {
		w.declined[line] = at
		return nil
	})
	return wrapStep("read declines", err)
}

// writeAdmitted stores the admitted creations and ends the transaction.
func (b *creationBatch) writeAdmitted(
	ctx context.Context, c *pgx.Conn, w *windows, admitted []*call[creation, verification.Created],
) error {
	if len(admitted) == 0 {
		// A commit would wait for the disk only to release locks, and a flood of refusals would delay all other callers.
		_, err := c.Exec(ctx, sqlRollback)
		return wrapStep("roll back", err)
	}
	batch := &pgx.Batch{}
	b.queueKeys(batch, w)
	b.numbers.queueWrite(batch, sqlInsertNumberAdmissions, b.project, w.numbers, w.now)
	b.groups.queueWrite(batch, sqlInsertGroupAdmissions, b.project, w.groups, w.now)
	b.queueRequests(batch, w, admitted)
	batch.Queue(sqlCommit)
	return wrapStep("write requests", c.SendBatch(ctx, batch).Close())
}

func (b *creationBatch) queueKeys(batch *pgx.Batch, w *windows) {
	var (
		names      []string
		at         []time.Time
		totals, ns []int64
	)
	for _, name := range b.keys {
		if key := w.keys[name]; key.admitted > 0 {
			names, at = append(names, name), append(at, notBefore(key.lastAt, w.now))
			totals, ns = append(totals, key.total+key.admitted), append(ns, key.admitted)
		}
	}
	if len(names) > 0 {
		batch.Queue(sqlCountKeys, b.project, names, at, totals, ns, b.limits.PerKey.Period)
	}
}

func (b *creationBatch) queueRequests(batch *pgx.Batch, w *windows, admitted []*call[creation, verification.Created]) {
	n := len(admitted)
	ids, phones, methods, keys, hashes := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	expire, since, versions, names := make([]time.Time, n), make([]time.Time, n), make([]int64, n), make([]string, n)
	data, references, works, deliver := make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	phases := make([]string, n)
	for i, c := range admitted {
		r := &c.out.Request
		ids[i], phones[i], methods[i], keys[i], hashes[i] = r.ID, r.Phone.E164(), string(r.Method), r.KeyName, r.BodyHash
		expire[i], versions[i], names[i] = r.ExpiresAt, c.in.version, r.DisplayName
		data[i], references[i] = encodeClientData(r), r.Reference
		works[i], since[i] = workOf(r)
		deliver[i], phases[i] = string(r.Terms.Deliver), string(r.Phase)
	}
	batch.Queue(sqlInsertRequests, b.project, w.now, ids, phones, methods, expire, keys, hashes, versions, since, names, data,
		references, works, b.calls[0].in.Test, deliver, phases)
}
