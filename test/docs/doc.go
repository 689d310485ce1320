// Package docs does what a reader of the pages does first, or what proves something to them: it runs README.md, the quickstart and the
// programs of docs/examples unchanged, checks signatures as the pages say, and finds the tests that docs/security.md names.
//
// Its invariant: a block that has a rule is there once, and is run as it is. What else the pages name is checked by `pages` in
// hack/verify.sh.
package docs
