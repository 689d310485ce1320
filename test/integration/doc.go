// Package integration holds the specs that start whole processes of phoneproof, against a real API server and a real
// PostgreSQL. The test binary is the program too; see TestMain.
//
// make test runs them several at a time, by `ginkgo -procs`. `go test -timeout=30m` runs them one after the other.
package integration
