package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// BenchmarkServed measures init and status over a connection to a whole server, its client included.
func BenchmarkServed(b *testing.B) {
	want := map[string]int{"init": http.StatusOK, "status": http.StatusNotFound}
	for name, request := range map[string]func(i int) string{
		"init": func(i int) string {
			return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: 32\r\n\r\n{\"phoneNumber\":\"+49151%08d\"}", pathInit, keyAll, i%1e8)
		},
		"status": func(int) string {
			return "GET " + pathStatus + "?id=x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + keyAll + "\r\n\r\n"
		},
	} {
		b.Run(name, func(b *testing.B) {
			g := NewWithT(b)
			h := newHarness(b)
			conn, from := h.dial(g, "")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := io.WriteString(conn, request(i)); err != nil {
					b.Fatal(err)
				}
				response, err := http.ReadResponse(from, nil)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, response.Body)
				if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != want[name] {
					b.Fatal(response.Status, err)
				}
			}
		})
	}
}
