package memory_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// benchStored is the maximum number of requests in a project of the default store. The benchmarks run with both rates on.
const benchStored = 1500

var benchLimits = verification.Limits{
	PerKey:         verification.Rate{Requests: 600, Period: time.Minute},
	PerPhoneNumber: verification.Rate{Requests: 5, Period: 10 * time.Minute},
}

func benchStore(b *testing.B, stored int) (*memory.Store, []string) {
	b.Helper()
	store := memory.NewBackend(memory.Options{}).Open("bench/project")
	ids := make([]string, stored)
	for i := range ids {
		ids[i] = "stored-" + strconv.Itoa(i)
		n := benchNew(b, i)
		n.ID = ids[i]
		if _, err := store.Create(b.Context(), n, verification.Limits{}); err != nil {
			b.Fatal(err)
		}
		if _, err := store.Update(b.Context(), ids[i], benchVerify); err != nil {
			b.Fatal(err)
		}
	}
	return store, ids
}

func benchNew(b *testing.B, i int) verification.New {
	b.Helper()
	number, err := phone.FromE164(fmt.Sprintf("+49151%08d", i%1e8))
	if err != nil {
		b.Fatal(err)
	}
	return verification.New{
		ID: strconv.Itoa(i), Phone: number, Method: verification.WhatsApp, TTL: 10 * time.Minute, KeyName: strconv.Itoa(i / 500),
	}
}

func benchVerify(r *verification.Request, now time.Time) error {
	r.Phase, r.VerifiedAt, r.Actual = verification.Verified, now, r.Phone
	return nil
}

// BenchmarkCreate fills a store, with both rates, a cap that is never reached, and no deletion.
func BenchmarkCreate(b *testing.B) {
	store, _ := benchStore(b, benchStored)
	limits := benchLimits
	limits.MaxStored = 1 << 40
	news := make([]verification.New, b.N)
	for i := range news {
		news[i] = benchNew(b, i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, n := range news {
		if _, err := store.Create(b.Context(), n, limits); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateAndDelete keeps the number of stored requests constant.
func BenchmarkCreateAndDelete(b *testing.B) {
	for _, stored := range []int{benchStored, 100 * benchStored} {
		b.Run(strconv.Itoa(stored), func(b *testing.B) {
			store, _ := benchStore(b, stored)
			n := benchNew(b, 1)
			b.ReportAllocs()
			for b.Loop() {
				created, err := store.Create(b.Context(), n, verification.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				if err = store.Delete(b.Context(), n.ID, created.Request.Version); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCreateFull evicts the oldest request for each creation.
func BenchmarkCreateFull(b *testing.B) {
	store, ids := benchStore(b, benchStored)
	limits := verification.Limits{MaxStored: len(ids)}
	n := benchNew(b, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n.ID = strconv.Itoa(i)
		if _, err := store.Create(b.Context(), n, limits); err != nil {
			b.Fatal(err)
		}
		if _, err := store.Update(b.Context(), n.ID, benchVerify); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	store, ids := benchStore(b, benchStored)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := store.Read(b.Context(), ids[i%len(ids)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	store, ids := benchStore(b, benchStored)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := store.Update(b.Context(), ids[i%len(ids)], benchVerify); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClaim(b *testing.B) {
	store, _ := benchStore(b, 10*benchStored)
	policy := verification.Policy{Events: verification.EventsOn}
	b.ReportAllocs()
	for b.Loop() {
		claims, err := store.Claim(b.Context(), policy, 10, 0)
		if err != nil || len(claims) != 10 {
			b.Fatal(len(claims), err)
		}
	}
}

// BenchmarkMixed measures the lock: ten reads per write, from every core.
func BenchmarkMixed(b *testing.B) {
	store, ids := benchStore(b, benchStored)
	ctx := context.WithoutCancel(b.Context())
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(next.Add(1))
			id := ids[i%len(ids)]
			var err error
			if i%11 == 0 {
				_, err = store.Update(ctx, id, benchVerify)
			} else {
				_, err = store.Read(ctx, id)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}
