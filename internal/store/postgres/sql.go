package postgres

import "strings"

// requestColumns returns the columns of a request in the order of scanState, each with a prefix.
func requestColumns(prefix string) string {
	return prefix + strings.ReplaceAll("id, phone, method, test, created_at, expires_at, key_name, body_hash, display_name, phase, "+
		"verified_at, actual, assurance, contacts, attempts, next_attempt_at, last_attempt_at, last_status_code, last_reason, "+
		"delivered_at, exhausted_at, redelivered, client_data, hints, verified_by, proven_at, wrong_codes, earlier_attempts, extra_from, "+
		"deliver, via, code_state, code_reason, epoch, version", ", ", ", "+prefix)
}

// decidingAdmissions returns the statement that finds, for each name, its last admission and those that must leave before the
// next ones fit. At a rate of n requests the first of these is n places before the next admission, so a full window costs as
// much as an empty one.
func decidingAdmissions(table, name string) string {
	return strings.NewReplacer("TABLE", table, "NAME", name).Replace(`SELECT u.name, l.place, l.at, a.place, a.at
		FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS u(name, requests, calls) CROSS JOIN LATERAL (
			SELECT place, at FROM TABLE WHERE project = $1 AND NAME = u.name ORDER BY place DESC LIMIT 1
		) AS l LEFT JOIN LATERAL (
			SELECT place, at FROM TABLE
			WHERE project = $1 AND NAME = u.name AND place > l.place - u.requests AND place <= l.place - u.requests + u.calls
			ORDER BY place LIMIT $5
		) AS a ON true`)
}

// longestPage is how many rows the statements of lists read, which ask for one more than the page has; see pageSizes.
const longestPage = "201"

// The conditions that select the requests of test keys, for which an index stands, and all others.
const (
	ofTestKeys = " AND test AND deliver <> 'GIVEN'"
	ofLiveKeys = " AND NOT test AND deliver <> 'GIVEN'"
	// The same of deliveries.
	ofTestDeliveries = " AND test AND work = 5"
	ofLiveDeliveries = " AND NOT test AND work = 5"
	// withReference selects the requests with the reference of the query.
	withReference = " AND reference = $8 AND reference <> ''"
)

// listStatement returns the statement that reads a page of requests. Each phase is read in the order of its index, and not at all
// where its boolean is false. Rows of the other mode are not even counted, so the place where a page ends says nothing about them.
func listStatement(also string) string {
	phase := func(name, wanted string) string {
		return `(SELECT ` + requestColumns("") + ` FROM phoneproof_requests
			WHERE phase = '` + name + `' AND project = $1 AND created_at >= $4 AND (created_at, id) < ($2::timestamptz, $3::text)
				AND ` + wanted + `::boolean` + also + `
			ORDER BY created_at DESC, id DESC LIMIT ` + longestPage + `)`
	}
	return `SELECT ` + requestColumns("") + `, statement_timestamp() FROM (` + strings.Join([]string{
		phase("PENDING", "$5"), phase("VERIFIED", "$6"), phase("EXPIRED", "$7"),
	}, " UNION ALL ") + `) AS r ORDER BY created_at DESC, id DESC LIMIT ` + longestPage
}

// deliveriesStatement returns the statement that reads a page of deliveries. All are expired, and are a range of the index of work.
func deliveriesStatement(also string) string {
	return `SELECT ` + requestColumns("") + `, statement_timestamp() FROM phoneproof_requests
		WHERE project = $1 AND since >= $4 AND (since, id) < ($2::timestamptz, $3::text) AND $5::boolean` + also + `
		ORDER BY since DESC, id DESC LIMIT ` + longestPage
}

// findStatement returns the statement that reads a page of the requests of a number, which has one form or two. They are few, and the
// subquery keeps a planner without statistics from reading those of the whole project.
func findStatement(also string) string {
	return `SELECT ` + requestColumns("") + `, statement_timestamp() FROM (
			SELECT ` + requestColumns("") + `, project, work FROM phoneproof_requests WHERE phone IN ($8, $9) OFFSET 0
		) AS r WHERE project = $1 AND created_at >= $4 AND (created_at, id) < ($2::timestamptz, $3::text)
			AND (phase = 'PENDING' AND $5::boolean OR phase = 'VERIFIED' AND $6::boolean OR phase = 'EXPIRED' AND $7::boolean)` + also + `
		ORDER BY created_at DESC, id DESC LIMIT ` + longestPage
}

// extraAttempts returns the part of sqlDue for extra attempts of events that wait, as Policy.attemptAt has them. They come after all that
// is due, so that what a repaired receiver missed does not delay what is new. Without $11 nothing is read.
func extraAttempts(work string) string {
	return `UNION ALL
		SELECT id, due_at FROM (
			SELECT id, since AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = ` + work + ` AND since > statement_timestamp() + $12::interval AND leased_until <= statement_timestamp()
				AND NOT test AND last_attempt_at < $11::timestamptz AND coalesce(extra_from, $11) <= statement_timestamp()
				AND $11 IS NOT NULL
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS extra` + work + `
		`
}

// The values of the column work, each with the meaning of the column since.
const (
	workExpire  = 1 // since a pending request may be expired, or the outcome of a test number played
	workDeliver = 2 // since its event is due
	workDelete  = 3 // since it was finished; it is deleted after its retention
	// workDeliverFew is the same as workDeliver, of a request that is pending or of a test key. These are few, and some need a step while
	// events are not sent: every claim reads them, and none the backlog of all others.
	workDeliverFew = 4
	// workDeleteDelivery is since a delivery was created; it is deleted after CodeKept.
	workDeleteDelivery = 5
)

// finishedRequests returns the part of a statement that locks what is to be deleted: deliveries after kept, all others after $3.
func finishedRequests(kept string) string {
	return `SELECT f.id, f.due_at FROM (VALUES (3, $3::interval), (5, ` + kept + `::interval)) AS k(work, kept) CROSS JOIN LATERAL (
			SELECT id, since + k.kept AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = k.work AND since <= statement_timestamp() - k.kept
				AND leased_until <= statement_timestamp()
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS f`
}

// All statements. Clock functions have no schema prefix, because tests replace them by search_path.
//
// Many rows are read by a lateral join with a limit, and changed one by one in one transaction. That leaves the planner only a
// lookup by the whole primary key for each, even on tables that were never analysed.
var (
	sqlBegin    = `BEGIN`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`

	// sqlReady reads the column that tables of unreleased versions lack.
	sqlReady = `SELECT test FROM phoneproof_requests WHERE project = $1 AND id = '' LIMIT 1`

	sqlRead = `SELECT ` + requestColumns("r.") + `, clock_timestamp() FROM unnest($2::text[]) AS u(id) CROSS JOIN LATERAL (
			SELECT ` + requestColumns("") + ` FROM phoneproof_requests WHERE project = $1 AND id = u.id LIMIT 1
		) AS r`

	sqlVersions = `SELECT u.id, r.version FROM unnest($2::text[]) AS u(id) CROSS JOIN LATERAL (
			SELECT version FROM phoneproof_requests WHERE project = $1 AND id = u.id LIMIT 1
		) AS r`

	// sqlStored counts each kind of work in its range of the index, up to a limit.
	sqlStored = `SELECT
		(SELECT count(*) FROM (SELECT 1 FROM phoneproof_requests WHERE project = $1 AND work = 1 LIMIT $2) AS pending),
		(SELECT count(*) FROM (SELECT 1 FROM phoneproof_requests WHERE project = $1 AND work IN (2, 4) LIMIT $2) AS undelivered),
		(SELECT count(*) FROM (SELECT 1 FROM phoneproof_requests WHERE project = $1 AND work IN (3, 5) LIMIT $2) AS finished)`

	// sqlCodes counts the codes of a method that each key started since a time, up to a limit in all.
	sqlCodes = `SELECT key_name, count(*) FROM (
			SELECT key_name FROM phoneproof_requests
			WHERE project = $1 AND created_at > $2::timestamptz AND deliver <> '' AND NOT test AND method = $4 ORDER BY created_at DESC LIMIT $3
		) AS codes GROUP BY key_name`

	sqlList              = listStatement(ofLiveKeys)
	sqlListReference     = listStatement(ofLiveKeys + withReference)
	sqlListTest          = listStatement(ofTestKeys)
	sqlListTestReference = listStatement(ofTestKeys + withReference)
	sqlListTestDelivered = deliveriesStatement(ofTestDeliveries)
	sqlListDelivered     = deliveriesStatement(ofLiveDeliveries)
	sqlFind              = findStatement(ofLiveKeys)
	sqlFindTest          = findStatement(ofTestKeys)
	sqlFindTestDelivered = findStatement(ofTestDeliveries)
	sqlFindDelivered     = findStatement(ofLiveDeliveries)

	sqlAwaiting = `SELECT ` + requestColumns("r.") + `, clock_timestamp()
		FROM phoneproof_bindings AS b JOIN phoneproof_requests AS r ON r.project = b.project AND r.id = b.request_id
		WHERE b.project = $1 AND b.binding = $2`

	// Creation. The rows of keys are locked first, in a fixed order, and everything else is read after that.

	sqlAddKeys = `INSERT INTO phoneproof_keys (project, name, total, last_at)
		SELECT $1, u.name, 0, clock_timestamp() FROM unnest($2::text[]) AS u(name)
		ON CONFLICT (project, name) DO NOTHING`

	sqlLockKeys = `SELECT name, total, last_at FROM phoneproof_keys
		WHERE project = $1 AND name = ANY ($2::text[]) ORDER BY name FOR UPDATE`

	sqlNow = `SELECT statement_timestamp()`

	// sqlKeyWindows finds the oldest admission of each key that counts at the time that it returns. The names are a subquery
	// because PostgreSQL would otherwise plan the statement anew each time for the number of names.
	sqlKeyWindows = `SELECT u.name, statement_timestamp(), a.at, a.total, a.n
		FROM unnest((SELECT $2::text[])) AS u(name) LEFT JOIN LATERAL (
			SELECT at, total, n FROM phoneproof_key_admissions
			WHERE project = $1 AND name = u.name AND at > statement_timestamp() - $3::interval ORDER BY at LIMIT 1
		) AS a ON true`

	// sqlKeyLeaves finds the time of the admission with that number, if it is not the oldest.
	sqlKeyLeaves = `SELECT at FROM phoneproof_key_admissions
		WHERE project = $1 AND name = $2 AND at > $3::timestamptz AND total >= $4 ORDER BY at LIMIT 1`

	// sqlNumbers finds the admissions that decide on the next ones of each number, and sqlGroups of each prefix and subject.
	sqlNumbers = decidingAdmissions("phoneproof_number_admissions", "number")
	sqlGroups  = decidingAdmissions("phoneproof_group_admissions", "name")

	// sqlDeclines finds when each number was declined last.
	sqlDeclines = `SELECT u.number, d.at FROM unnest($2::text[]) AS u(number) CROSS JOIN LATERAL (
			SELECT at FROM phoneproof_declines WHERE project = $1 AND number = u.number ORDER BY at DESC LIMIT 1
		) AS d`

	sqlInsertRequests = `INSERT INTO phoneproof_requests
			(project, id, phone, method, test, created_at, expires_at, key_name, body_hash, display_name, client_data, reference, phase,
			version, work, since, deliver)
		SELECT $1, u.id, u.phone, u.method, $15::boolean, $2::timestamptz, u.expires_at, u.key_name, u.body_hash, u.display_name,
			u.client_data, u.reference, u.phase, u.version, u.work, u.since, u.deliver
		FROM unnest($3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::text[], $9::bigint[],
				$10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::bigint[], $16::text[], $17::text[])
			AS u(id, phone, method, expires_at, key_name, body_hash, version, since, display_name, client_data, reference, work, deliver,
				phase)`

	// sqlCountKeys records a batch's admissions by key, with the number of each key's last one.
	sqlCountKeys = `WITH counted AS (
			UPDATE phoneproof_keys AS k SET total = u.total, last_at = u.at
			FROM unnest($2::text[], $3::timestamptz[], $4::bigint[]) AS u(name, at, total)
			WHERE k.project = $1 AND k.name = u.name
		)
		INSERT INTO phoneproof_key_admissions (project, name, at, total, n, until)
		SELECT $1, u.name, u.at, u.total, u.n, u.at + $6::interval
		FROM unnest($2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[]) AS u(name, at, total, n)
		ON CONFLICT (project, name, at) DO UPDATE
		SET total = excluded.total, n = phoneproof_key_admissions.n + excluded.n`

	sqlInsertNumberAdmissions = `INSERT INTO phoneproof_number_admissions (project, number, place, at, until)
		SELECT $1, u.number, u.place, u.at, u.until
		FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::timestamptz[]) AS u(number, place, at, until)`

	sqlInsertGroupAdmissions = `INSERT INTO phoneproof_group_admissions (project, name, place, at, until)
		SELECT $1, u.name, u.place, u.at, u.until
		FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::timestamptz[]) AS u(name, place, at, until)`

	// sqlUpdate replaces the state that a change was derived from, unless that state is too old by the database's clock. A lease
	// goes on where the work stays the same.
	sqlUpdate = `UPDATE phoneproof_requests SET
			phase = $6, verified_at = $7, actual = $8, assurance = $9, contacts = $10, attempts = $11, next_attempt_at = $12,
			last_attempt_at = $13, last_status_code = $14, last_reason = $15, delivered_at = $16, exhausted_at = $17,
			redelivered = $18, hints = $19, work = $20, since = $21, verified_by = $23, proven_at = $24, wrong_codes = $25,
			earlier_attempts = $26, extra_from = $27, via = $28, code_state = $29, code_reason = $30, version = $4,
			leased_until = CASE WHEN $22::boolean THEN leased_until ELSE '1970-01-01 00:00:00+00' END
		WHERE project = $1 AND id = $2 AND version = $3 AND clock_timestamp() < $5::timestamptz`

	// sqlBind maps a sender to the request that the preceding update in the same transaction bound them to.
	sqlBind = `INSERT INTO phoneproof_bindings (project, binding, request_id)
		SELECT project, $4::text, id FROM phoneproof_requests WHERE project = $1 AND id = $2 AND version = $3
		ON CONFLICT (project, binding) DO UPDATE SET request_id = excluded.request_id`

	// sqlInsertDecline stores the decline that the preceding update in the same transaction made, for the number's canonical form.
	sqlInsertDecline = `INSERT INTO phoneproof_declines (project, number, request_id, at)
		SELECT project, $4::text, id, $5::timestamptz FROM phoneproof_requests WHERE project = $1 AND id = $2 AND version = $3
		ON CONFLICT (project, number, request_id) DO UPDATE SET at = excluded.at`

	sqlDelete = `DELETE FROM phoneproof_requests WHERE project = $1 AND id = $2 AND version = $3 RETURNING id, phone, hints`

	sqlUnbind = `DELETE FROM phoneproof_bindings WHERE project = $1 AND request_id = ANY ($2::text[])`

	sqlDeleteDeclines = `DELETE FROM phoneproof_declines
		WHERE project = $1 AND number = ANY ($2::text[]) AND request_id = ANY ($3::text[])`

	// sqlUncount deletes the admissions of numbers that no longer count. Requests are kept longer, so the last admission of a
	// number is deleted with its last request at the latest.
	sqlUncount = `DELETE FROM phoneproof_number_admissions
		WHERE project = $1 AND number = ANY ($2::text[]) AND until <= statement_timestamp()`

	// sqlDue locks the claimable requests of each kind of work, and returns the longest overdue of all. A request whose event is not sent
	// is claimed when it lapses, or when its event is given up. While no events are sent, $4 keeps their backlog from being read.
	sqlDue = `SELECT id FROM (
		SELECT id, due_at FROM (
			SELECT id, since AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 1 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS lapsed
		UNION ALL
		SELECT id, due_at FROM (
			SELECT id, since AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 2 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
				AND $4::boolean
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS undelivered
		UNION ALL
		SELECT id, due_at FROM (
			SELECT id, since AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 4 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
				AND (CASE WHEN test THEN $9::boolean ELSE $4::boolean END
					OR phase = 'PENDING' AND expires_at + CASE WHEN proven_at > expires_at - $8::interval THEN $8::interval ELSE '0' END
						<= statement_timestamp() - CASE WHEN test THEN '0' ELSE $7::interval END
					OR phase <> 'PENDING' AND $10::boolean AND coalesce(verified_at, expires_at) <= statement_timestamp() - $6::interval)
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS few
		UNION ALL
		SELECT id, due_at FROM (
			SELECT id, coalesce(verified_at, expires_at) + $6::interval AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 2 AND coalesce(verified_at, expires_at) <= statement_timestamp() - $6::interval
				AND leased_until <= statement_timestamp() AND $5::boolean
			ORDER BY coalesce(verified_at, expires_at) LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS abandoned
		` + extraAttempts("2") + extraAttempts("4") + `UNION ALL
		` + finishedRequests("$13") + `
		) AS due ORDER BY due_at, id LIMIT $2`

	// sqlLease leases one of the requests that sqlDue returned.
	sqlLease = `UPDATE phoneproof_requests SET
			epoch = epoch + 1, version = version + 1, leased_until = statement_timestamp() + $3::interval
		WHERE project = $1 AND id = $2
		RETURNING ` + requestColumns("") + `, statement_timestamp()`

	// sqlRelease ends the leases of those epochs. It changes no version, because workers cannot see a lease.
	sqlRelease = `UPDATE phoneproof_requests AS r SET leased_until = '1970-01-01 00:00:00+00'
		FROM unnest($2::text[], $3::bigint[]) AS u(id, epoch)
		WHERE r.project = $1 AND r.id = u.id AND r.epoch = u.epoch`

	// The sweeps expire and delete in bulk what needs no other step. Claims expire the requests of test keys, which may have an outcome to
	// be played, and those with an attempt of a former event, which they keep.

	sqlSweepLapsed = `WITH due AS (
			SELECT id FROM phoneproof_requests
			WHERE project = $1 AND work = 1 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
				AND last_attempt_at IS NULL AND NOT test
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		)
		UPDATE phoneproof_requests AS r SET phase = 'EXPIRED', version = r.version + 1,
			work = CASE WHEN $4::boolean THEN 2 ELSE 3 END,
			since = CASE WHEN $4::boolean THEN statement_timestamp() ELSE greatest(
				CASE WHEN r.body_hash = '' THEN r.since ELSE r.expires_at + $3::interval END,
				CASE WHEN r.deliver <> '' THEN r.created_at + $5::interval END) END,
			next_attempt_at = CASE WHEN $4::boolean THEN statement_timestamp() END,
			attempts = 0, last_attempt_at = NULL, last_status_code = 0, last_reason = '', delivered_at = NULL, exhausted_at = NULL
		FROM due WHERE r.project = $1 AND r.id = due.id
		RETURNING r.id`

	sqlSweepFinished = `WITH due AS (
			` + finishedRequests("$4") + ` LIMIT $2
		)
		DELETE FROM phoneproof_requests WHERE project = $1 AND id IN (SELECT id FROM due)
		RETURNING id, phone, hints`

	sqlSweepKeys = `DELETE FROM phoneproof_key_admissions WHERE project = $1 AND until <= statement_timestamp()`

	sqlSweepGroups = `DELETE FROM phoneproof_group_admissions WHERE project = $1 AND until <= statement_timestamp()`

	// The lease of a project without a cluster.

	sqlReadLease = `SELECT record, version FROM phoneproof_leases WHERE project = $1`

	sqlCreateLease = `INSERT INTO phoneproof_leases (project, record, version) VALUES ($1, $2, 1)
		ON CONFLICT (project) DO NOTHING`

	sqlUpdateLease = `UPDATE phoneproof_leases SET record = $2, version = version + 1 WHERE project = $1 AND version = $3`

	// sqlServer reads the time, how commits wait, and whether there is a synchronous standby.
	sqlServer = `SELECT statement_timestamp(), coalesce(current_setting('synchronous_commit', true), ''),
		coalesce(current_setting('synchronous_standby_names', true), '') <> ''`

	sqlVersion = `SELECT version()`

	// sqlStandby finds out whether a commit of ours waits for a synchronous standby for longer than clients wait for answers. The clock is
	// the server's own.
	sqlStandby = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND usename = session_user
		AND wait_event = 'SyncRep' AND query_start < pg_catalog.clock_timestamp() - '3 seconds'::interval)`

	// sqlCommitNothing writes a lock of a row to the log, if the server has a synchronous standby. Others read only.
	sqlCommitNothing = `SELECT version_id FROM phoneproof_migrations
		WHERE current_setting('synchronous_standby_names', true) <> '' LIMIT 1 FOR KEY SHARE`

	// sqlEndWithClient is for PostgreSQL 14 and later, on Linux.
	sqlEndWithClient = `SET client_connection_check_interval = '1s'`
	// sqlEndWhenIdle is longer than batchTimeout: a transaction that is idle so long has lost its replica, and may hold rows of others.
	sqlEndWhenIdle = `SET idle_in_transaction_session_timeout = '5s'`

	// sqlTune is for PostgreSQL itself, as its version shows. Rows are rewritten a few times and then deleted, so pages need
	// free space and dead rows must be vacuumed early.
	sqlTune = `ALTER TABLE phoneproof_requests SET
		(fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)`
)
