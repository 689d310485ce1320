package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

func BenchmarkBuildAndSign(b *testing.B) {
	r := verifiedRequest()
	secrets := [][]byte{[]byte(base64Secret)}
	at := time.Unix(1_795_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		e, err := NewEvent("shop/checkout", r)
		if err != nil {
			b.Fatal(err)
		}
		signEvent(http.Header{}, e, secrets, at)
	}
}

func BenchmarkSend(b *testing.B) {
	for name, c := range map[string]struct {
		start func(*httptest.Server)
		alone bool // each event comes after the connection of the one before was closed
	}{
		"HTTP1": {start: (*httptest.Server).Start}, "HTTPS2": {start: startHTTP2}, "HTTPS2Alone": {start: startHTTP2, alone: true},
	} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			c.start(server)
			defer server.Close()
			s := newSender(b, Options{})
			to := testDestination(server.URL)
			to.caBundle = bundleOf(server)
			to.signed, to.current = true, fakeSecret{current: base64Secret}
			e := testEvent()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Send(b.Context(), newEndpoint(to), e); err != nil {
					b.Fatal(err)
				}
				if c.alone {
					s.transports.closeIdle()
				}
			}
		})
	}
}

func BenchmarkGuard(b *testing.B) {
	g := NewGuard(GuardConfig{})
	target := netip.MustParseAddrPort("[2a00:1450::1]:443")
	b.ReportAllocs()
	for b.Loop() {
		if err := g.checkTarget("shop", false, target); err != nil {
			b.Fatal(err)
		}
	}
}
