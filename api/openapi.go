// Package api holds the HTTP contract, openapi.yaml, as it is written. The Kubernetes kinds are in its sub-folders.
//
// This file stands beside the document because go:embed reaches no parent folder, and the document stands here, not
// with its server, because it is the contract of the whole product. The package holds nothing else and imports nothing.
package api

import _ "embed" // for openapi.yaml

// OpenAPI is openapi.yaml. It must not be changed.
//
//go:embed openapi.yaml
var OpenAPI []byte
