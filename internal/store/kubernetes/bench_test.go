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
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// BenchmarkStore measures each method beside "plain", a bare POST of the same object with the same client, so that a
// run says how much of the time is ours: compare the lines of one run only.
func BenchmarkStore(b *testing.B) {
	RegisterTestingT(b)
	s, project, _, noise := benchStore(b)
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
			Expect(s.api.client.Post().Namespace(s.api.namespace).Resource(resourceName).Body(encodeJSON(o)).Do(ctx).Error()).To(Succeed())
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
	b.Run("read final", func(b *testing.B) {
		for b.Loop() {
			_, err := s.ReadFinal(ctx, final.ID)
			Expect(err).NotTo(HaveOccurred())
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Read(ctx, pending.ID)
			Expect(err).NotTo(HaveOccurred())
		}
	})
	b.Run("read by 64", func(b *testing.B) {
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
				_, err := s.Awaiting(ctx, bindingOf(1))
				Expect(err).To(MatchError(verification.ErrNotFound))
			}
		})
	}
}

// BenchmarkContacts measures what docs/adr/0025 decides: a sender who is bound in the status of the request, found by the informer
// and a revision, beside one who is bound by an object of its own, which a ConfigMap stands for. Each row is one user: bound once,
// found once.
func BenchmarkContacts(b *testing.B) {
	RegisterTestingT(b)
	s, project, admin, noise := benchStore(b)
	bindings := admin.CoreV1().ConfigMaps("bench")
	ctx, senders := b.Context(), 0
	begin := func() (verification.Request, string) {
		senders++
		created, err := s.Create(ctx, newRequest(project), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		return created.Request, fmt.Sprintf("%064x", senders)
	}
	for _, others := range []bool{false, true} {
		b.Run(fmt.Sprintf("status/others=%v", others), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				request, sender := begin()
				b.StartTimer()
				_, err := s.Update(ctx, request.ID, bindTo(sender))
				Expect(err).NotTo(HaveOccurred())
				if others {
					b.StopTimer()
					noise(ctx, i)
					b.StartTimer()
				}
				Expect(s.Awaiting(ctx, sender)).To(HaveField("ID", request.ID))
			}
		})
		b.Run(fmt.Sprintf("object/others=%v", others), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				request, sender := begin()
				b.StartTimer()
				current, err := s.api.getObject(ctx, request.ID) // to bind only to a request that is open now
				Expect(err).NotTo(HaveOccurred())
				_, err = bindings.Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: sender, OwnerReferences: []metav1.OwnerReference{{
						APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationRequestKind, Name: current.Name, UID: current.UID,
					}}},
					Data: map[string]string{"request": request.ID, "boundAt": time.Now().UTC().Format(time.RFC3339Nano)},
				}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				if others {
					b.StopTimer()
					noise(ctx, i)
					b.StartTimer()
				}
				bound, err := bindings.Get(ctx, sender, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				_, err = s.api.getObject(ctx, bound.Data["request"])
				Expect(err).NotTo(HaveOccurred())
				// The end of the request: the garbage collector deletes what it owns.
				Expect(bindings.Delete(ctx, sender, metav1.DeleteOptions{})).To(Succeed())
			}
		})
	}
}

// benchStore returns a store with its project, a client of the control plane without a limit, and a function that writes an object of
// another kind.
func benchStore(b *testing.B) (*Store, string, kubernetes.Interface, func(context.Context, int)) {
	b.Helper()
	plane, err := controlplane.Start(controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { Expect(plane.Stop()).To(Succeed()) })
	unlimited := rest.CopyConfig(plane.Config)
	unlimited.QPS = -1
	admin, err := kubernetes.NewForConfig(unlimited)
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
	return s, "bench/shop", admin, func(ctx context.Context, i int) {
		_, err := admin.CoreV1().ConfigMaps("bench").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("noise-%d-", i)},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
