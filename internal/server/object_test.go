package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// changeTimeout limits the wait for a change, which only the watch can bring.
const changeTimeout = 30 * time.Second

// onChange checks state after each notification, and only then. The first may still be that of the creation.
func onChange(changes <-chan struct{}, state func() bool) func() bool {
	return func() bool {
		select {
		case <-changes:
			return state()
		default:
			return false
		}
	}
}

var _ = Describe("Object", func() {
	It("has the settings of the object when Wait returns", func(ctx SpecContext) {
		f := newWatchedProject(ctx)
		f.start()
		Expect(f.Current()).To(BeNil())
		Expect(f.UID()).To(BeEmpty())
		early, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		err := f.Wait(early)
		Expect(err).To(MatchError(errNoProject))
		Expect(err).To(MatchError(context.DeadlineExceeded))

		uid := f.create(ctx, nil)
		Expect(f.Wait(ctx)).To(Succeed())
		Expect(f.Current().Project).To(Equal(f.key.String()))
		Expect(findKeyName(f.Current(), objectKey("backend"))).To(Equal("backend"))
		Expect(f.Problems()).To(BeEmpty())
		Expect(f.UID()).To(Equal(uid))
		Expect(f.Project().Name).To(Equal(f.key.Name))
	})

	It("requests only its own object", func(ctx SpecContext) {
		f := newWatchedProject(ctx)
		f.create(ctx, nil)
		changes, cancel := f.Observe()
		defer cancel()
		f.start()
		Eventually(changes).WithTimeout(changeTimeout).Should(Receive(), "the creation")
		Expect(f.calls.all()).NotTo(BeEmpty())
		for _, call := range f.calls.all() {
			Expect(call.Method).To(Equal(http.MethodGet))
			Expect(call.URL.Path).To(Equal("/apis/phoneproof.dev/v1alpha1/namespaces/"+f.key.Namespace+"/verificationprojects"), "no discovery")
			Expect(call.URL.Query().Get("fieldSelector")).To(Equal("metadata.name=" + f.key.Name))
		}
		other := newProject()
		other.Namespace, other.Name = f.key.Namespace, "other"
		Expect(admin.Create(ctx, other)).To(Succeed())
		Consistently(changes).WithTimeout(300 * time.Millisecond).ShouldNot(Receive())
	})

	It("applies a changed limit and a removed key at once", func(ctx SpecContext) {
		f := serveProject(ctx)
		f.edit(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.RateLimit.PerPhoneNumber = &verifyv1.Rate{Requests: 3, Period: "1m"}
			p.Spec.APIKeys = p.Spec.APIKeys[:1]
		})
		changed := time.Now()
		Eventually(func() int { return f.Current().Limits.PerPhoneNumber.Requests }).WithTimeout(changeTimeout).Should(Equal(3))
		AddReportEntry("after", time.Since(changed).Round(time.Millisecond).String())
		Expect(findKeyName(f.Current(), objectKey("monitor"))).To(BeEmpty())
		Expect(findKeyName(f.Current(), objectKey("backend"))).To(Equal("backend"))
	})

	It("notifies of changed annotations and status, which do not change the settings", func(ctx SpecContext) {
		f := serveProject(ctx)
		before := f.Current()
		changes, cancel := f.Observe()
		defer cancel()
		f.edit(ctx, func(p *verifyv1.VerificationProject) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, verifyv1.RedeliverAnnotation, "a/1")
		})
		Eventually(onChange(changes, func() bool { return f.Project().Annotations[verifyv1.RedeliverAnnotation] == "a/1" })).
			WithTimeout(changeTimeout).Should(BeTrue())

		p := f.Project().DeepCopy()
		p.Status.ObservedRedeliver = "a/1"
		Expect(admin.Status().Update(ctx, p)).To(Succeed())
		Eventually(onChange(changes, func() bool { return f.Project().Status.ObservedRedeliver == "a/1" })).
			WithTimeout(changeTimeout).Should(BeTrue())
		Expect(f.Current()).To(BeIdenticalTo(before))
	})

	It("keeps the last settings when the object is deleted, and has no UID", func(ctx SpecContext) {
		f := serveProject(ctx)
		changes, cancel := f.Observe()
		defer cancel()
		f.remove(ctx)
		Eventually(onChange(changes, func() bool { return f.UID() == "" })).WithTimeout(changeTimeout).Should(BeTrue())
		Expect(f.Project()).To(BeNil())
		Expect(findKeyName(f.Current(), objectKey("backend"))).To(Equal("backend"))
		Expect(f.logged()).To(ContainSubstring("the project was deleted"))
	})

	It("adopts an object created in place of a deleted one, even with other immutable fields", func(ctx SpecContext) {
		f := serveProject(ctx)
		f.remove(ctx)
		uid := f.create(ctx, func(p *verifyv1.VerificationProject) { p.Spec.ProjectID = "another" })
		Eventually(f.UID).WithTimeout(changeTimeout).Should(Equal(uid))
		Expect(f.LastError()).NotTo(HaveOccurred())
		Expect(f.Current().ProjectID).To(Equal("another"))
	})

	It("keeps the last settings while the object is invalid", func(ctx SpecContext) {
		f := serveProject(ctx)
		allowAnyDisplayName(ctx)
		const line = "two\nlines"
		f.edit(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.DisplayName = line
			p.Spec.RateLimit.PerPhoneNumber = &verifyv1.Rate{Requests: 3, Period: "1m"}
		})
		Eventually(f.LastError).WithTimeout(changeTimeout).Should(MatchError(ContainSubstring("spec.displayName: ")))
		Expect(f.Current().DisplayName).To(Equal("shop"))
		Expect(f.Current().Limits.PerPhoneNumber.Requests).To(Equal(5))
		// LastError is set a moment before Project returns the object.
		Eventually(func() string { return f.Project().Spec.DisplayName }).WithTimeout(changeTimeout).
			Should(Equal(line), "conditions and events need the current object")
		Expect(f.logged()).NotTo(ContainSubstring("two"), "no value in logs")

		f.edit(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName = "One line" })
		Eventually(f.LastError).WithTimeout(changeTimeout).ShouldNot(HaveOccurred())
		Expect(f.Current().DisplayName).To(Equal("One line"))
		Expect(f.Current().Limits.PerPhoneNumber.Requests).To(Equal(3))
	})

	It("keeps its settings and can start during an outage of the API server, and catches up afterwards", func(ctx SpecContext) {
		running, late := serveProject(ctx), newWatchedProject(ctx)
		late.create(ctx, nil)
		before, uid := running.Current(), running.UID()

		Expect(plane.StopAPIServer()).To(Succeed())
		late.start()
		Consistently(func(g Gomega) {
			g.Expect(running.Current()).To(BeIdenticalTo(before))
			g.Expect(running.UID()).To(Equal(uid))
			g.Expect(late.Current()).To(BeNil())
		}).WithTimeout(2 * time.Second).Should(Succeed())
		Expect(plane.StartAPIServer()).To(Succeed())

		// client-go retries within half a minute, later after long outages.
		const again = 90 * time.Second
		running.edit(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName = "After the outage" })
		Eventually(func() string { return running.Current().DisplayName }).WithTimeout(again).Should(Equal("After the outage"))
		Expect(running.UID()).To(Equal(uid))
		Eventually(late.Current).WithTimeout(again).ShouldNot(BeNil())
	}, NodeTimeout(5*time.Minute))

	It("logs why the first object is rejected, and waits for a valid one", func(ctx SpecContext) {
		f := newWatchedProject(ctx)
		allowAnyDisplayName(ctx)
		Eventually(func() error {
			p := newProject()
			p.Namespace, p.Spec.DisplayName = f.key.Namespace, "two\nlines"
			return admin.Create(ctx, p)
		}).WithContext(ctx).WithTimeout(changeTimeout).Should(Succeed())
		f.start()
		Eventually(f.logged).WithTimeout(changeTimeout).Should(ContainSubstring("project rejected"))
		f.edit(ctx, func(p *verifyv1.VerificationProject) { p.Annotations = map[string]string{"a": "b"} })
		Eventually(f.Project).WithTimeout(changeTimeout).Should(HaveField("Annotations", HaveKey("a")))
		Expect(strings.Count(f.logged(), "project rejected")).To(Equal(1))
		Expect(f.Current()).To(BeNil())

		f.edit(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName = "One line" })
		Expect(f.Wait(ctx)).To(Succeed())
		Expect(f.Current().DisplayName).To(Equal("One line"))
	})

	It("ignores other types", func() {
		f := &object{Live: settings.NewLive(GinkgoT().TempDir(), clock.RealClock{}, GinkgoLogr)}
		f.handleUpdate("anything")
		Expect(f.Project()).To(BeNil())
	})

	It("rejects an unusable client configuration", func() {
		config := rest.CopyConfig(serverConfig)
		config.CAFile, config.CAData = "no/such/file", nil
		_, err := newObject(config, types.NamespacedName{Namespace: "books", Name: "shop"}, GinkgoT().TempDir(), nil, clock.RealClock{}, GinkgoLogr)
		Expect(err).To(MatchError(ContainSubstring("watch project books/shop: ")))
	})
})

// allowAnyDisplayName removes the CRD's rules for displayName until the spec ends, as in an older release.
func allowAnyDisplayName(ctx context.Context) {
	GinkgoHelper()
	setRules := func(ctx context.Context, rules apiextensionsv1.ValidationRules) (apiextensionsv1.ValidationRules, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := admin.Get(ctx, client.ObjectKey{Name: "verificationprojects.phoneproof.dev"}, crd); err != nil {
			return nil, err
		}
		properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		displayName, known := properties["displayName"]
		if !known {
			return nil, errors.New("schema has no displayName")
		}
		before := displayName.XValidations
		displayName.XValidations = rules
		properties["displayName"] = displayName
		return before, admin.Update(ctx, crd)
	}
	rules, err := setRules(ctx, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(rules).NotTo(BeEmpty())
	DeferCleanup(func(ctx SpecContext) {
		_, err := setRules(ctx, rules)
		Expect(err).NotTo(HaveOccurred())
		// The next spec must not meet the old schema.
		p := newProject()
		p.Namespace, p.Spec.DisplayName = "default", strings.Repeat("\n", 2)
		Eventually(func() error { return admin.Create(ctx, p, client.DryRunAll) }).WithContext(ctx).WithTimeout(changeTimeout).
			Should(MatchError(ContainSubstring("displayName must be one line")))
	})
}
