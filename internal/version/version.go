// Package version knows which build this is. The linker sets it (see LDFLAGS in the Makefile); a build without that,
// as `go run` makes it, is "dev".
package version

var (
	version = "dev"
	commit  = "unknown"
	date    = "unknown"
)

// Version returns the release or the commit it was built from, as git describe writes it.
func Version() string { return version }

// UserAgent returns what this process calls itself in requests to a platform: name, version and an address to ask at.
func UserAgent() string {
	return "phoneproof/" + version + " (+https://github.com/phoneproof/phoneproof)"
}

// String returns version, commit and the commit's date in one line.
func String() string { return version + " (commit " + commit + ", " + date + ")" }
