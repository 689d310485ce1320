package kubernetes

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// BenchmarkStore measures each method beside "plain", a bare POST of the same object with the same client, so that a
// run says how much of the time is ours: compare the lines of one run only.
func BenchmarkStore(b *testing.B) {
	RegisterTestingT(b)
	s, project, noise := benchStore(b)
	ctx := b.Context()
	create := func() verification.Request {
		created, err := s.Create(ctx, newRequest(project), verification.Limits{
			PerKey:         verification.Rate{Requests: 1 << 30, Period: time.Minute},
			PerPhoneNumber: verification.Rate{Requests: 1 << 30, Period: 10 * time.Minute}, MaxStored: 1 << 30,
		})
		Expect(err).NotTo(HaveOccurred())
		return created.Request
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			o, err := s.newObject(newRequest(project), s.now())
			Expect(err).NotTo(HaveOccurred())
			Expect(s.api.client.Post().Namespace(s.api.namespace).Resource(resource).Body(encode(o)).Do(ctx).Error()).To(Succeed())
		}
	})
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			create()
		}
	})
	pending, final := create(), create()
	_, err := s.Update(ctx, final.ID, verifyNow)
	Expect(err).NotTo(HaveOccurred())
	b.Run("peek at final", func(b *testing.B) {
		for b.Loop() {
			_, err := s.ReadFinal(ctx, final.ID)
			Expect(err).NotTo(HaveOccurred())
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Read(ctx, pending.ID)
			Expect(err).NotTo(HaveOccurred())
		}
	})
	b.Run("get by 64", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, err := s.Read(ctx, pending.ID)
				Expect(err).NotTo(HaveOccurred())
			}
		})
	})
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Update(ctx, pending.ID, func(r *verification.Request, _ time.Time) error {
				r.Delivery.Attempts = (r.Delivery.Attempts + 1) % 1000
				return nil
			})
			Expect(err).NotTo(HaveOccurred())
		}
	})
	for range max(0, 1500-len(s.All())) {
		create()
	}
	Eventually(func() int { return len(s.All()) }).WithTimeout(time.Minute).Should(BeNumerically(">=", 1500))
	for _, others := range []bool{false, true} {
		b.Run(fmt.Sprintf("awaiting among %d objects while others write %v", len(s.All()), others), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if others {
					noise(b.Context(), i)
				} else {
					create()
				}
				_, err := s.Awaiting(ctx, hash(1))
				Expect(err).To(MatchError(verification.ErrNotFound))
			}
		})
	}
}

// benchStore returns a store with its project, and a function that writes an object of another kind.
func benchStore(b *testing.B) (*Store, string, func(context.Context, int)) {
	b.Helper()
	plane, err := controlplane.Start(controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { Expect(plane.Stop()).To(Succeed()) })
	admin, err := kubernetes.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	s, err := New(Options{Config: plane.Config, Project: "bench/shop", ProjectUID: func() types.UID { return ownerUID }})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	b.Cleanup(stop)
	go func() { _ = s.Start(running) }()
	Eventually(s.HasSynced).WithTimeout(time.Minute).Should(BeTrue())
	Eventually(func() error {
		_, err := s.Create(b.Context(), newRequest("bench/shop"), verification.Limits{})
		return err
	}).WithTimeout(time.Minute).Should(Succeed())
	return s, "bench/shop", func(ctx context.Context, i int) {
		_, err := admin.CoreV1().ConfigMaps("bench").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("noise-%d-", i)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
