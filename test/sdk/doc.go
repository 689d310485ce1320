// Package sdk tests the client libraries below sdk from their packed artefacts: one table of scenarios is played with a driver in
// each language, against a running `phoneproof dev` behind a front that misbehaves, and each scenario must notice a defect of a library.
// `make sdk` packs them and runs this; what compares the libraries with api/openapi.yaml needs neither, and is part of `make test`.
package sdk
