package whatsapp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// signedText is a webhook with the code of a request that waits.
type signedText struct {
	body      []byte
	signature string
}

// prepare makes n requests, and the webhook that verifies each.
func prepare(b *testing.B, f *fixture, n int) []signedText {
	b.Helper()
	all := make([]signedText, n)
	for i := range all {
		number := fmt.Sprintf("4915%09d", i)
		claimed, err := phone.ParseWhatsApp(number)
		if err != nil {
			b.Fatal(err)
		}
		made, err := f.service.Initiate(b.Context(), verification.Initiation{Phone: claimed, Method: verification.WhatsApp, TTL: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		body := webhookOf(textOf(expectedText("Ada's Books", made.Code), object{"from": number}))
		all[i] = signedText{body, sign(body, appSecret)}
	}
	f.clock.SetTime(started.Add(time.Minute))
	return all
}

// BenchmarkHook_verify is a signed text message that verifies, over the memory store, from the handler's call to its
// return.
func BenchmarkHook_verify(b *testing.B) {
	f := newOfflineFixture(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() { _ = f.hook.Start(ctx) }()
	texts := prepare(b, f, b.N)
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for _, text := range texts {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(text.body))
		r.Header.Set(signatureHeader, text.signature)
		w := httptest.NewRecorder()
		begin := time.Now()
		f.hook.ServeHTTP(w, r)
		took = append(took, time.Since(begin))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
	b.StopTimer()
	if n := f.outcomes()[messenger.OutcomeVerified]; n != b.N {
		b.Fatalf("%d of %d verified", n, b.N)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkHook_badSignature is what a stranger's request costs.
func BenchmarkHook_badSignature(b *testing.B) {
	f := newOfflineFixture(b)
	body := golden(b, "in/text")
	signature := sign(body, "another")
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
		r.Header.Set(signatureHeader, signature)
		f.hook.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// BenchmarkHook_thousand is a webhook with a thousand messages that verify nothing any more.
func BenchmarkHook_thousand(b *testing.B) {
	f := newOfflineFixture(b)
	_, body := thousand(f)
	signature := sign(body, appSecret)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
		r.Header.Set(signatureHeader, signature)
		f.hook.ServeHTTP(httptest.NewRecorder(), r)
	}
}
