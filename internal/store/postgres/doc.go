// Package postgres keeps requests in PostgreSQL, or in a database that speaks its protocol, for any number of replicas.
//
// The invariants. A call that returns without an error has committed. The database's clock decides. What a worker
// decided from a state is written by compare-and-set on the version of that state, so a write from an older state, or
// after a lost lease, writes nothing. The rates of a key are counted under that key's row, those of a number by rows
// whose numbers may not come twice; both in the transaction that inserts the request, so they are exact among replicas.
//
// Writes that wait while one is on its way go together in the next transaction (see batcher), so the cost of a commit is
// shared and a lone write waits for nobody. All SQL is in sql.go. It stays within what CockroachDB and YugabyteDB run
// too: no advisory locks, no LISTEN, no sequences, and every transaction may be repeated as a whole.
package postgres
