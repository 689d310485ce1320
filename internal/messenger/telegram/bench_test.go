package telegram

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// BenchmarkVerify takes two updates per request, as a webhook delivers them: the code, with its prompt to a Bot API that
// answers at once, and the contact.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b, true)
	number, err := phone.FromE164(claimed)
	if err != nil {
		b.Fatal(err)
	}
	secret := WebhookSecret([]byte(botToken), projectName)
	var took []time.Duration
	w.channel.log = logr.Discard()
	go func() { _ = w.channel.Start(b.Context()) }()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		initiated, err := w.service.Initiate(b.Context(), verification.Initiation{
			Phone: number, Method: verification.Telegram, KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
			IdempotencyKey: strconv.Itoa(i), HasIdempotencyKey: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		sender := int64(i + 1)
		start, contact := w.update(2*sender, sender, "/start "+initiated.Code.Grouped()), w.contactUpdate(2*sender+1, sender, claimed)
		b.StartTimer()
		for _, update := range [][]byte{start, contact} {
			began := time.Now()
			if code := w.quietly(update, secret); code != http.StatusOK {
				b.Fatal(code)
			}
			took = append(took, time.Since(began))
		}
		b.StopTimer()
		if w.phase(initiated.Request.ID) != verification.Verified {
			b.Fatal("not verified")
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs/update")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/update")
}
