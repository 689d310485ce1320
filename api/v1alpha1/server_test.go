package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("Huge content", func() {
	set := func(object map[string]any, value any, path ...string) map[string]any {
		Expect(unstructured.SetNestedField(object, value, path...)).To(Succeed())
		return object
	}
	for _, field := range []string{"displayName", "webhook.caBundle", "replies.verified", "projectID"} {
		It("of 1 MiB is refused by the API server in "+field, func(ctx context.Context) {
			object := set(normalizeNumbers(readObject("testdata/full.yaml")), strings.Repeat("a", 1<<20), append([]string{"spec"}, strings.Split(field, ".")...)...)
			_, err := createOnServer(ctx, newNamespace(ctx), object)
			Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
			Expect(err.Error()).To(ContainSubstring("spec." + field + ": Too long"))
			Expect(len(err.Error())).To(BeNumerically("<", 4096), "the message repeats what it refuses")
			_, err = validateProjectInGo(object)
			Expect(err).To(MatchError(ContainSubstring("spec." + field + ": Too long")))
		})
	}
	for _, field := range []string{"apiKeys", "server.tolerations", "expose.httpRoute.hostnames", "networkPolicy.ingressFrom"} {
		It("of 10,000 entries is refused by the API server in "+field, func(ctx context.Context) {
			object, path := normalizeNumbers(readObject("testdata/full.yaml")), append([]string{"spec"}, strings.Split(field, ".")...)
			entries, _, err := unstructured.NestedSlice(object, path...)
			Expect(err).NotTo(HaveOccurred())
			_, err = createOnServer(ctx, newNamespace(ctx), set(object, slices.Repeat(entries[:1], 10000), path...))
			Expect(err).To(MatchError(ContainSubstring("spec." + field + ": Too many: 10000: must have at most")))
			_, err = validateProjectInGo(object)
			Expect(err).To(MatchError(ContainSubstring("spec." + field + ": Too many: 10000: must have at most")))
		})
	}
})

var _ = Describe("Updates", func() {
	patch := func(ctx context.Context, object client.Object, text string) error {
		return api.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	project := func(ctx context.Context, spec map[string]any) *v1alpha1.VerificationProject {
		answer, err := createOnServer(ctx, newNamespace(ctx), applyPatch(readObject("testdata/minimal.yaml"), spec))
		Expect(err).NotTo(HaveOccurred())
		created := decodeAs[v1alpha1.VerificationProject](answer)
		return &created
	}

	for _, e := range []struct {
		it            string
		before, after map[string]any
		refused       string
	}{
		{"refuse another projectID", map[string]any{"projectID": "one"}, map[string]any{"projectID": "two"}, "spec.projectID"},
		{"refuse setting projectID later", nil, map[string]any{"projectID": "one"}, "spec.projectID"},
		{"refuse unsetting projectID", map[string]any{"projectID": "one"}, map[string]any{"projectID": nil}, "spec.projectID"},
		{"accept the same projectID", map[string]any{"projectID": "one"}, map[string]any{"projectID": "one", "displayName": "Ada"}, ""},
		{"accept a change without projectID", nil, map[string]any{"displayName": "Ada"}, ""},
		{"accept a move to PostgreSQL", nil, map[string]any{"storage": map[string]any{
			"type": "PostgreSQL", "postgresql": map[string]any{"uriSecretRef": map[string]any{"name": "db"}}}}, ""},
	} {
		It(e.it, func(ctx context.Context) {
			old := project(ctx, e.before)
			text, err := json.Marshal(map[string]any{"spec": e.after})
			Expect(err).NotTo(HaveOccurred())
			err = patch(ctx, old.DeepCopy(), string(text))

			now, decodeErr := validateProjectInGo(applyPatch(applyPatch(readObject("testdata/minimal.yaml"), e.before), e.after))
			Expect(decodeErr).NotTo(HaveOccurred())
			inGo := now.ValidateUpdate(old)
			if e.refused == "" {
				Expect(err).NotTo(HaveOccurred())
				Expect(inGo).To(BeEmpty())
				return
			}
			for _, message := range []string{err.Error(), inGo.ToAggregate().Error()} {
				Expect(message).To(And(ContainSubstring(e.refused), ContainSubstring("immutable"), ContainSubstring("create a new VerificationProject")))
			}
		})
	}

	It("refuse any change of a request's spec, and accept its labels", func(ctx context.Context) {
		answer, err := createOnServer(ctx, newNamespace(ctx), readObject("testdata/request.yaml"))
		Expect(err).NotTo(HaveOccurred())
		old := decodeAs[v1alpha1.VerificationRequest](answer)
		for _, change := range []string{
			`{"spec":{"phoneNumber":"+15550100111"}}`, `{"spec":{"method":"WhatsApp"}}`, `{"spec":{"init":null}}`,
			`{"spec":{"projectRef":{"name":"other"}}}`, `{"spec":{"init":{"keyName":null}}}`,
			`{"spec":{"init":{"expiresAt":"2027-01-31T09:50:00.000000Z"}}}`,
		} {
			Expect(patch(ctx, old.DeepCopy(), change)).To(MatchError(ContainSubstring("spec is immutable; create another VerificationRequest")))
			now := old.DeepCopy()
			Expect(json.Unmarshal([]byte(change), now)).To(Succeed())
			if !strings.Contains(change, "null") {
				Expect(now.ValidateUpdate(&old).ToAggregate()).To(MatchError(ContainSubstring("spec is immutable")))
			}
		}
		now := old.DeepCopy()
		now.Spec.Init = nil
		Expect(now.ValidateUpdate(&old)).NotTo(BeEmpty())
		Expect(patch(ctx, old.DeepCopy(), `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())
		Expect(old.ValidateUpdate(&old)).To(BeEmpty())
	})
})

var _ = Describe("Status", func() {
	It("of a new request is Pending, whatever its author wrote", func(ctx context.Context) {
		object := readObject("testdata/request.yaml")
		object["status"] = map[string]any{"phase": "Verified", "actualPhoneNumber": "+15550100199"}
		answer, err := createOnServer(ctx, newNamespace(ctx), object)
		Expect(err).NotTo(HaveOccurred())
		created := decodeAs[v1alpha1.VerificationRequest](answer)
		Expect(created.Status).To(Equal(v1alpha1.VerificationRequestStatus{
			ObservedGeneration: v1alpha1.DefaultObservedGeneration, Phase: v1alpha1.PhasePending,
		}))
		var read v1alpha1.VerificationRequest
		Expect(api.Get(ctx, client.ObjectKeyFromObject(&created), &read)).To(Succeed())
		Expect(read.Status).To(Equal(created.Status))
	})

	It("is written through its own subresource, and found by field selectors", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		for i, project := range []string{"shop", "shop", "other"} {
			object := applyPatch(readObject("testdata/request.yaml"), map[string]any{"projectRef": map[string]any{"name": project}})
			object["metadata"] = map[string]any{"name": fmt.Sprintf("vr%d", i)}
			_, err := createOnServer(ctx, namespace, object)
			Expect(err).NotTo(HaveOccurred())
		}
		names := func(selector ...string) []string {
			fields := client.MatchingFields{}
			for i := 0; i < len(selector); i += 2 {
				fields[selector[i]] = selector[i+1]
			}
			var list v1alpha1.VerificationRequestList
			Expect(api.List(ctx, &list, client.InNamespace(namespace), fields)).To(Succeed())
			var found []string
			for _, item := range list.Items {
				found = append(found, item.Name)
			}
			return found
		}
		var first v1alpha1.VerificationRequest
		Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "vr0"}, &first)).To(Succeed())
		first.Status.Phase = v1alpha1.PhaseVerified
		Expect(api.Update(ctx, first.DeepCopy())).To(Succeed())
		Expect(names("status.phase", "Pending")).To(Equal([]string{"vr0", "vr1", "vr2"}), "an ordinary update leaves the status alone")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(&first), &first)).To(Succeed())
		first.Status.Phase = v1alpha1.PhaseVerified
		Expect(api.Status().Update(ctx, &first)).To(Succeed())
		Expect(names("status.phase", "Pending")).To(Equal([]string{"vr1", "vr2"}))
		Expect(names("status.phase", "Verified", "spec.projectRef.name", "shop")).To(Equal([]string{"vr0"}))
		Expect(names("spec.projectRef.name", "other")).To(Equal([]string{"vr2"}))
	})
})

// An object that a typed client cannot decode would stop the informers of all
// projects in the cluster. So every accepted object must be decodable.
var _ = Describe("Poison", func() {
	expectHarmless := func(object map[string]any, err error, into runtime.Object, what string) {
		GinkgoHelper()
		if err != nil {
			return
		}
		content, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(content, into)).To(Succeed(), "the API server took "+what)
	}

	DescribeTable("never gets past the API server", func(ctx context.Context, file, field string, into runtime.Object, values []any) {
		namespace := newNamespace(ctx)
		for _, value := range values {
			object := normalizeNumbers(readObject(file))
			Expect(setAt(object, value, strings.Split(field, "."))).To(BeTrue(), field)
			answer, err := createOnServer(ctx, namespace, object, client.DryRunAll)
			expectHarmless(answer, err, into.DeepCopyObject(), fmt.Sprint(field, " ", value))
		}
	},
		Entry("as a time", "testdata/full.yaml", "spec.apiKeys.0.expiresAt", &v1alpha1.VerificationProject{}, times),
		Entry("as a time with microseconds", "testdata/request.yaml", "spec.init.createdAt", &v1alpha1.VerificationRequest{}, times),
		Entry("as a quantity", "testdata/full.yaml", "spec.server.resources.limits.memory", &v1alpha1.VerificationProject{}, quantities),
		Entry("as a quantity of CPU", "testdata/full.yaml", "spec.server.resources.requests.cpu", &v1alpha1.VerificationProject{}, quantities),
		Entry("as a number of ours", "testdata/full.yaml", "spec.server.replicas", &v1alpha1.VerificationProject{}, numbers),
		Entry("as a 32-bit number of an embedded type", "testdata/full.yaml",
			"spec.server.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.weight", &v1alpha1.VerificationProject{}, numbers),
		Entry("as a 64-bit number of an embedded type", "testdata/full.yaml",
			"spec.server.tolerations.0.tolerationSeconds", &v1alpha1.VerificationProject{}, numbers),
		Entry("as a spread of an embedded type", "testdata/full.yaml",
			"spec.server.topologySpreadConstraints.0.maxSkew", &v1alpha1.VerificationProject{}, numbers),
	)

	It("never gets past the API server in a status", func(ctx context.Context) {
		answer, err := createOnServer(ctx, newNamespace(ctx), readObject("testdata/request.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, value := range times {
			for field, status := range map[string]any{
				"verifiedAt": value,
				"delivery":   map[string]any{"nextAttemptAt": value},
				"contacts":   []any{map[string]any{"binding": "0123456789abcdef", "boundAt": value}},
				"conditions": []any{map[string]any{
					"type": "Verified", "status": "True", "reason": "A", "message": "", "lastTransitionTime": value}},
			} {
				sent := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(answer)}
				Expect(unstructured.SetNestedField(sent.Object, status, "status", field)).To(Succeed())
				err := api.Status().Update(ctx, sent, client.DryRunAll)
				expectHarmless(sent.Object, err, &v1alpha1.VerificationRequest{}, fmt.Sprint(field, " ", value))
			}
		}
	})
})

var _ = Describe("Poison in the status of a project", func() {
	// The token of a project's pods can write it, and every user with the role edit can create such a token.
	It("never gets past the API server", func(ctx context.Context) {
		answer, err := createOnServer(ctx, newNamespace(ctx), readObject("testdata/minimal.yaml"))
		Expect(err).NotTo(HaveOccurred())
		taken := 0
		for _, value := range times {
			sent := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(answer)}
			claims := []any{map[string]any{"account": "telegram:ada_books_bot", "since": value}}
			Expect(unstructured.SetNestedSlice(sent.Object, claims, "status", "claims")).To(Succeed())
			if api.Status().Update(ctx, sent, client.DryRunAll) != nil {
				continue
			}
			taken++
			content, err := sent.MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			Expect(json.Unmarshal(content, &v1alpha1.VerificationProject{})).To(Succeed(), "the API server took %v", value)
		}
		Expect(taken).To(BeNumerically(">", 0))
	})
})

var (
	times = []any{
		"2027-01-31T00:00:00Z", "2027-01-31t00:00:00z", "2027-01-31T00:00:00.000000z", "2027-01-31T00:00:00.000000Z",
		"2027-01-31T00:00:00,000000Z", "2027-01-31T00:00:00.000Z", "2027-01-31T00:00:00", "2027-01-31 00:00:00Z",
		"2027-02-30T00:00:00.000000Z", "2027-01-31T24:00:00.000000Z", "2027-01-31T23:59:60.000000Z", "2027-01-31T00:00:00.000000+99:99",
		"2027-01-31T00:00:00.000000+24:00", "2027-01-31T00:00:00+23:59", "0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
		"2027-01-31T00:00:00.123456789123Z", "2027-01-31", "", "now", "2027-01-31T00:00:00.000000+0100", "2027-01-31T00:00:00x000000Z",
	}
	quantities = []any{
		"1e1.5", "1e99999999999999999999", "1E99", "1e30", ".5", "5.", "+1", "-1", "", "0", "0x10", "1Ei", "9999999999999999", "1n",
		"256Mi", "1.123456789Gi", int64(1) << 62, int64(-1), 1.5, 1e300,
	}
	numbers = []any{int64(3_000_000_000), int64(-3_000_000_000), int64(1) << 62, 1e30, -1e30, 1.5, 2.0, 1e10}
)

// setAt sets the value at a path, with numbers as indexes of lists.
func setAt(at any, value any, path []string) bool {
	switch parent := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			parent[path[0]] = value
			return true
		}
		return setAt(parent[path[0]], value, path[1:])
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil || i >= len(parent) {
			return false
		}
		return setAt(parent[i], value, path[1:])
	}
	return false
}
