// Package phoneproof is a client as users generate it. make verify-clients generates it beside a copy of this file.
package phoneproof

import _ "github.com/oapi-codegen/runtime" // used by the generated file
