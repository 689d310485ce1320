package ledger

import "time"

// The files of the codes.
const (
	CodeFile = "codes.jsonl"
	TryFile  = "tries.jsonl"
)

// CodeAnswer is how the platform answers a code.
type CodeAnswer string

// The answers of the platform. Only CodeRefusedTemplate does not depend on the number.
const (
	CodeAccepted        CodeAnswer = "accepted"
	CodeLost            CodeAnswer = "lost"             // accepted, and the answer never comes
	CodeKilled          CodeAnswer = "killed"           // accepted, and the sender is killed before the answer
	CodeRefusedNumber   CodeAnswer = "refused-number"   // 131026, or PHONE_NUMBER_NOT_FOUND
	CodeRefusedTemplate CodeAnswer = "refused-template" // 132001, or ACCESS_TOKEN_INVALID
)

// Accepted reports whether the platform delivers the code to the number.
func (a CodeAnswer) Accepted() bool {
	return a == CodeAccepted || a == CodeLost || a == CodeKilled
}

// Code is a code that arrived at the platform. It is on disk before the platform answers.
type Code struct {
	At time.Time `json:"at"`
	// Request is what it was sent for, by the reference in the call.
	Request string `json:"request"`
	Number  string `json:"number"`
	Digits  string `json:"digits"`
	// Stored reports whether the store had the request when the code arrived, read from it at that moment.
	Stored bool       `json:"stored"`
	Answer CodeAnswer `json:"answer"`
}

// Try is a call of init for a code, and its answer.
type Try struct {
	Asked time.Time `json:"asked"`
	At    time.Time `json:"at"`
	// Key is the Idempotency-Key, and Replica the address of the API.
	Key     string `json:"key"`
	Replica string `json:"replica"`
	// Answer is the HTTP status, 0 if none came.
	Answer int `json:"answer"`
}
