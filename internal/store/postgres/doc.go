// Package postgres keeps requests in PostgreSQL, or in a database that speaks its protocol, for any number of replicas.
//
// The invariants. A call that returns without an error has committed. The database's clock decides. A state is written by
// compare-and-set on the version that it was derived from, so a write from an older state, or after a lost lease, writes
// nothing. Rates per key are counted under the lock of the key's row; those per number, prefix and subject by rows with
// unique places. Both happen in the transaction that inserts the request, so they are exact across replicas.
//
// Nothing that a synchronous standby lacks is shown: no statement is cancelled, and a message's request is denied only after a commit.
// A former primary still answers reads and lists, refuses by limits, and takes a message that changes nothing.
//
// Writes that wait while a transaction runs share the next one (see batcher): they share the cost of a commit, and a lone
// write does not wait. All SQL is in sql.go, and uses only what CockroachDB and YugabyteDB support too: no advisory locks,
// no LISTEN, no sequences, and every transaction can be retried as a whole.
package postgres
