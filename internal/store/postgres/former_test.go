package postgres

import (
	"context"
	"os"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// The statements of the version before hints and events, as they were. Its replicas run beside ours during a rollout, and alone
// after a rollback.
const (
	formerDue = `SELECT id FROM (
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
			SELECT id, verified_at + $6::interval AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 2 AND verified_at <= statement_timestamp() - $6::interval
				AND leased_until <= statement_timestamp() AND $5::boolean
			ORDER BY verified_at LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS abandoned
		UNION ALL
		SELECT id, due_at FROM (
			SELECT id, since + $3::interval AS due_at FROM phoneproof_requests
			WHERE project = $1 AND work = 3 AND since <= statement_timestamp() - $3::interval
				AND leased_until <= statement_timestamp()
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		) AS finished
		) AS due ORDER BY due_at, id LIMIT $2`

	formerSweepLapsed = `WITH due AS (
			SELECT id FROM phoneproof_requests
			WHERE project = $1 AND work = 1 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
			ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED
		)
		UPDATE phoneproof_requests AS r SET phase = 'EXPIRED', work = 3, version = r.version + 1,
			since = CASE WHEN r.body_hash = '' THEN r.since ELSE r.expires_at + $3::interval END
		FROM due WHERE r.project = $1 AND r.id = due.id
		RETURNING r.id`

	// formerAttended is what the version before session proof claims of pending requests with an event, if it sends none.
	formerAttended = `SELECT id FROM phoneproof_requests
		WHERE project = $1 AND work = 4 AND since <= statement_timestamp() AND leased_until <= statement_timestamp()
			AND expires_at <= statement_timestamp() - $2::interval`

	formerUpdate = `UPDATE phoneproof_requests SET
			phase = $6, verified_at = $7, actual = $8, assurance = $9, contacts = $10, attempts = $11, next_attempt_at = $12,
			last_attempt_at = $13, last_status_code = $14, last_reason = $15, delivered_at = $16, exhausted_at = $17,
			redelivered = $18, work = $19, since = $20, version = $4, leased_until = '1970-01-01 00:00:00+00'
		WHERE project = $1 AND id = $2 AND version = $3 AND clock_timestamp() < $5::timestamptz`
)

// readRollbackStatement returns what docs/upgrade.md has an admin run after a rollback.
func readRollbackStatement() string {
	GinkgoHelper()
	page, err := os.ReadFile("../../../docs/upgrade.md")
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile("`(UPDATE phoneproof_requests SET [^`]+)`").FindAllSubmatch(page, -1)
	Expect(found).To(HaveLen(1))
	return string(found[0][1])
}

var _ = Describe("A replica of the version before hints and events", func() {
	var (
		s    *Store
		conn *pgx.Conn
	)
	BeforeEach(func(ctx SpecContext) {
		uri, _ := inSchema(ctx)
		s = openStore(ctx, project, uri)
		var err error
		conn, err = pgx.Connect(ctx, uri)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(conn.Close(ctx)).To(Succeed()) })
	})
	// create stores a request in a state. It has lapsed if ttl is negative.
	create := func(ctx context.Context, i int, ttl time.Duration, m verification.Mutation) verification.Request {
		GinkgoHelper()
		in := creationOf(i)
		in.TTL, in.BodyHash = ttl, ""
		Expect(s.Create(ctx, in, verification.Limits{})).Error().NotTo(HaveOccurred())
		r, err := s.Update(ctx, in.ID, m)
		Expect(err).NotTo(HaveOccurred())
		return r
	}
	attend := func(r *verification.Request, now time.Time) error {
		r.Hints = []verification.Hint{{Kind: verification.HintOtherNumber, At: now}}
		r.Delivery.NextAttemptAt = r.ExpiresAt.Add(-time.Minute)
		return nil
	}
	claim := func(ctx context.Context, events, abandoned bool) []string {
		GinkgoHelper()
		due, err := collectIDs(conn.Query(ctx, formerDue, project, 100, 24*time.Hour, events, abandoned, verification.EventLife))
		Expect(err).NotTo(HaveOccurred())
		return due
	}
	sweep := func(ctx context.Context) []string {
		GinkgoHelper()
		expired, err := collectIDs(conn.Query(ctx, formerSweepLapsed, project, 100, verification.CodeRest))
		Expect(err).NotTo(HaveOccurred())
		return expired
	}

	It("leaves a pending request with a due event until the documented statement is run", func(ctx SpecContext) {
		lapsed := create(ctx, 1, -time.Hour, attend)
		Expect(claim(ctx, true, true)).To(BeEmpty())
		Expect(sweep(ctx)).To(BeEmpty())
		Expect(s.Read(ctx, lapsed.ID)).To(HaveField("Phase", verification.Pending), "it is never expired, nor deleted")

		lasting := create(ctx, 2, time.Hour, attend)
		_, err := conn.Exec(ctx, readRollbackStatement())
		Expect(err).NotTo(HaveOccurred())
		Expect(claim(ctx, true, true)).To(Equal([]string{lapsed.ID}))
		Expect(sweep(ctx)).To(Equal([]string{lapsed.ID}))
		Expect(s.Read(ctx, lapsed.ID)).To(HaveField("Phase", verification.Expired))
		Expect(s.Read(ctx, lasting.ID)).To(HaveField("Phase", verification.Pending))
	})

	It("expires a request without its event", func(ctx SpecContext) {
		r := create(ctx, 1, -time.Hour, func(*verification.Request, time.Time) error { return verification.ErrUnchanged })
		Expect(sweep(ctx)).To(Equal([]string{r.ID}))
		kinds := verification.NewEventKinds(verification.EventExpired)
		policy := verification.Policy{Retention: 24 * time.Hour, Events: verification.EventsOn, Kinds: kinds}
		Expect(s.Claim(ctx, policy, 100, time.Minute)).To(BeEmpty())
		Expect(s.Read(ctx, r.ID)).To(HaveField("Delivery", verification.Delivery{}))
	})

	It("claims the events of expired and declined requests, which it would not send but delete in time", func(ctx SpecContext) {
		r := create(ctx, 1, -100*time.Hour, func(r *verification.Request, now time.Time) error {
			r.Phase, r.Delivery.NextAttemptAt = verification.Expired, now
			return nil
		})
		Expect(claim(ctx, true, false)).To(Equal([]string{r.ID}))
		Expect(claim(ctx, false, true)).To(BeEmpty(), "and without a webhook leaves them for good: no verification dates them")
	})

	It("keeps hints, and drops the nonce of an echo and a due event with its next write", func(ctx SpecContext) {
		r := create(ctx, 1, time.Hour, func(r *verification.Request, now time.Time) error {
			r.Contacts = []verification.Contact{{
				Binding: "anna", BoundAt: now, Kind: verification.ContactEcho, Nonce: "00112233445566778899aabbccddeeff",
			}}
			return attend(r, now)
		})
		tag, err := conn.Exec(ctx, formerUpdate, project, r.ID, parseVersion(r.Version), newVersion(), time.Now().Add(time.Minute),
			"PENDING", nil, "", "", `[{"binding":"anna","boundAt":1,"kind":"echo"}]`, 0, r.Delivery.NextAttemptAt, nil, 0, "", nil, nil, "",
			workExpire, r.ExpiresAt.Add(verification.ExpiryGrace))
		Expect(err).NotTo(HaveOccurred())
		Expect(tag.RowsAffected()).To(BeEquivalentTo(1))
		read, err := s.Read(ctx, r.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(read.Hints).To(Equal(r.Hints))
		echo, found := read.EchoOf([]string{"anna"})
		Expect(found).To(BeTrue())
		Expect(echo.Nonce).To(BeEmpty())
		Expect(s.Claim(ctx, verification.Policy{Events: verification.EventsOn}, 100, time.Minute)).To(BeEmpty(), "it waits for its end")
	})

	// A request of LevelSession is one like any other to it.
	Context("of requests that a client must confirm", func() {
		prove := func(ctx context.Context, i int, ttl time.Duration, wanted verification.EventKinds) verification.Request {
			GinkgoHelper()
			in := creationOf(i)
			in.TTL, in.BodyHash, in.Terms = ttl, "", verification.Terms{Level: verification.LevelSession, Purpose: "sign-in"}
			Expect(s.Create(ctx, in, verification.Limits{})).Error().NotTo(HaveOccurred())
			r, err := s.Update(ctx, in.ID, func(r *verification.Request, _ time.Time) error {
				r.ProvenAt, r.Actual = r.ExpiresAt.Add(-time.Minute), r.Phone
				if wanted.Has(verification.EventAttention) {
					r.Hints = []verification.Hint{{Kind: verification.HintAwaitingConfirmation, At: r.ProvenAt}}
					r.Delivery.NextAttemptAt = r.ProvenAt
				}
				return nil
			})
			Expect(err).NotTo(HaveOccurred())
			return r
		}

		It("expires them on time by its sweep, but one with an event too early by its claim", func(ctx SpecContext) {
			attention := verification.NewEventKinds(verification.EventAttention)
			late, lapsed := prove(ctx, 1, -time.Minute, 0), prove(ctx, 2, -3*time.Minute, 0)
			attended := prove(ctx, 3, -time.Minute, attention)
			Expect(claim(ctx, true, true)).To(Equal([]string{lapsed.ID}))
			Expect(sweep(ctx)).To(Equal([]string{lapsed.ID}))
			Expect(s.Read(ctx, lapsed.ID)).To(And(HaveField("Phase", verification.Expired), HaveField("ProvenAt", lapsed.ProvenAt)))
			Expect(s.Read(ctx, late.ID)).To(Equal(late))
			early, err := collectIDs(conn.Query(ctx, formerAttended, project, verification.ExpiryGrace))
			Expect(err).NotTo(HaveOccurred())
			Expect(early).To(Equal([]string{attended.ID}), "it does not know of the two minutes more")
			Expect(s.Claim(ctx, verification.Policy{Retention: time.Hour}, 100, time.Minute)).To(BeEmpty())
		})

		It("keeps their terms, proof and wrong codes, and verifies by a message alone what was not proven", func(ctx SpecContext) {
			proven := prove(ctx, 1, time.Hour, 0)
			proven, err := s.Update(ctx, proven.ID, func(r *verification.Request, _ time.Time) error {
				r.WrongCodes = 3
				return nil
			})
			Expect(err).NotTo(HaveOccurred())
			in := creationOf(2)
			in.Terms.Level = verification.LevelSession
			created, err := s.Create(ctx, in, verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
			verify := func(r verification.Request) verification.Request {
				GinkgoHelper()
				tag, err := conn.Exec(ctx, formerUpdate, project, r.ID, parseVersion(r.Version), newVersion(), time.Now().Add(time.Minute),
					"VERIFIED", time.Now(), r.Phone.E164(), "", "", 0, nil, nil, 0, "", nil, nil, "", workDelete, time.Now())
				Expect(err).NotTo(HaveOccurred())
				Expect(tag.RowsAffected()).To(BeEquivalentTo(1))
				verified, err := s.Read(ctx, r.ID)
				Expect(err).NotTo(HaveOccurred())
				return verified
			}
			verified := verify(proven)
			Expect(verified).To(And(HaveField("Terms", proven.Terms), HaveField("ProvenAt", proven.ProvenAt), HaveField("WrongCodes", 3)))
			unproven := verify(created.Request)
			Expect(unproven.ShownAssurance()).To(Equal(verification.AssuranceUsual), "it shows no confirmation that never was")
		})

		It("leaves the decline of a request that it deletes until that is swept", func(ctx SpecContext) {
			r := prove(ctx, 1, time.Hour, 0)
			Expect(s.Update(ctx, r.ID, func(r *verification.Request, now time.Time) error {
				return r.DeclineProven(func(*verification.Request) bool { return true }, now, 0)
			})).Error().NotTo(HaveOccurred())
			_, err := conn.Exec(ctx, "DELETE FROM phoneproof_requests")
			Expect(err).NotTo(HaveOccurred())
			declines := func() (n int) {
				GinkgoHelper()
				Expect(conn.QueryRow(ctx, "SELECT count(*) FROM phoneproof_declines").Scan(&n)).To(Succeed())
				return n
			}
			Expect(s.sweepAdmissions(ctx)).To(Succeed())
			Expect(declines()).To(Equal(1), "its number may cool down for that long")
			_, err = conn.Exec(ctx, "UPDATE phoneproof_declines SET at = at - $1::interval", verification.MaxPeriod)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.sweepAdmissions(ctx)).To(Succeed())
			Expect(declines()).To(BeZero())
		})
	})
})
