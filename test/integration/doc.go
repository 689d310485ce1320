// Package integration holds the specs that start whole processes of phoneproof, against a real API server and a real
// PostgreSQL. The test binary is also the program; see TestMain.
//
// make test runs several at a time with `ginkgo -procs`; `go test -timeout=2h` runs them one after the other.
package integration
