package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// failure is an error that a request is answered with.
type failure struct {
	status  int
	code    string
	field   string
	message string
}

// Error returns the message.
func (f *failure) Error() string { return f.code + ": " + f.message }

func badRequest(field, message string) *failure {
	return &failure{http.StatusBadRequest, "bad_request", field, message}
}

func tooMany(limit int, what string) *failure {
	message := fmt.Sprintf("the simulator holds %d %s, and no more; POST /sim/reset forgets everything", limit, what)
	return &failure{http.StatusTooManyRequests, "too_many", "", message}
}

// answerJSON writes JSON.
func answerJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil { // of our own types: never
		status, encoded = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(encoded, '\n')) // a client that does not take it is no error of ours
}

func answerFailure(w http.ResponseWriter, f *failure) {
	answerJSON(w, f.status, map[string]any{"error": struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
	}{f.code, f.message, f.field}})
}

// decodeBody decodes the body of a request; an empty one leaves into as it is.
func decodeBody(w http.ResponseWriter, r *http.Request, into any) *failure {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return badRequest("", "the body is not the JSON that docs/simulator.md describes: "+err.Error())
	default:
		return nil
	}
}

// answerNoContent is an answer without content.
func answerNoContent(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }
