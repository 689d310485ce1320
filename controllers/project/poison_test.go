package project

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// poisons are contents of a spec that the schema accepts but that no child can have, or that are as large or as odd as the schema
// allows.
var poisons = map[string]string{
	"a toleration that no pod may have":  `{server: {tolerations: [{key: "a b", operator: Nonsense, effect: What, tolerationSeconds: -9007199254740991}]}}`,
	"an affinity of nonsense":            `{server: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "!", operator: "?", values: [""]}]}]}}}}}`,
	"a spread over nothing":              `{server: {topologySpreadConstraints: [{maxSkew: -5, topologyKey: "", whenUnsatisfiable: Never}]}}`,
	"the same spread twice":              `{server: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}`,
	"peers of no network":                `{networkPolicy: {ingressFrom: [{ipBlock: {cidr: "::zz/999"}}, {}], metricsFrom: [{podSelector: {matchExpressions: [{key: "", operator: In}]}}]}}`,
	"a peer with both kinds":             `{networkPolicy: {ingressFrom: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}}`,
	"a host that is too long":            `{expose: {ingress: {host: ` + strings.Repeat("a23456789.", 25) + `com}}}`,
	"a host with an odd label":           `{expose: {ingress: {host: ` + strings.Repeat("a", 64) + `.com}}}`,
	"as many annotations as it may have": `{expose: {service: {annotations: {` + annotations() + `}}}}`,
	"an address with an odd host":        `{baseURL: "https://_a.example.com/a~b/", telegram: {updates: Polling}, expose: {ingress: {}}}`,
	"names in every script":              `{displayName: "\u0410\u0434\u0430 \U0001F4DA \u05D0\u05D3\u05D4"}`,
	"long replies":                       `{replies: {verified: "` + strings.Repeat("\\U0001F4DA", 1000) + `"}}`,
	"as many keys as it may have":        `{apiKeys: [` + keys() + `]}`,
	"one more Gateway than there is":     `{expose: {httpRoute: {parentRefs: [{name: a}, {name: a}]}}}`,
	"more than a node has":               `{server: {resources: {requests: {cpu: 1024, memory: 1Ti}, limits: {cpu: 1024, memory: 1Ti}}, replicas: 50}}`,
}

func annotations() string {
	var out []string
	for i := range 16 {
		out = append(out, fmt.Sprintf(`external-dns.alpha.kubernetes.io/a%d: "%s"`, i, strings.Repeat("x", 4096)))
	}
	return strings.Join(out, ", ")
}

func keys() string {
	var out []string
	for i := range 32 {
		out = append(out, fmt.Sprintf(`{name: k%d, secretRef: {name: %s%d, key: %s}}`, i, strings.Repeat("s", 240), i, strings.Repeat("k", 253)))
	}
	return strings.Join(out, ", ")
}

var _ = Describe("A poisoned project", func() {
	It("harms no other project", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		var poisoned []*verifyv1.VerificationProject
		for name, content := range poisons {
			poisoned = append(poisoned, poison(ctx, namespace, len(poisoned), name, content))
		}
		By("accepting the longest names")
		for _, name := range []string{strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", "1.2", "0", "phoneproof-shop"} {
			poisoned = append(poisoned, create(ctx, newProject(namespace, name)))
		}

		By("reconciling another project meanwhile")
		good := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, good)

		By("reporting the problem of each in its own status")
		for _, project := range poisoned {
			now := current(ctx, project)
			Expect(now.Status.ObservedGeneration).To(Equal(now.Generation), project.Name)
			Expect(now.Status.Conditions).NotTo(BeEmpty(), project.Name)
		}

		By("writing nothing afterwards")
		settle(ctx)
		before := op.written()
		elapse(ctx, afterRejection-time.Second)
		Expect(op.written()).To(Equal(before), "no hot loop")
		change(ctx, good, func(s *spec) { s.Server.Replicas = new(int32(3)) })
		makeReady(ctx, good)
	})

	// A project that was stored before a rule existed.
	It("that no rule would accept today is refused by field, without its value", func() {
		project := newProject("shop", "shop")
		project.Default()
		project.Spec.Webhook = &verifyv1.Webhook{URL: "ftp://example.com/?token=hunter2"}
		d := decideAction(&observed{project: project}, &Permissions{})
		Expect(d.action).To(Equal(keep))
		Expect(d.blocker.reason).To(Equal(verifyv1.ReasonInvalidSpec))
		Expect(d.blocker.message).To(And(HavePrefix("spec.webhook.url: "), Not(ContainSubstring("hunter2"))))
	})
})

// poison creates a project with that content, which the API server must accept.
func poison(ctx context.Context, namespace string, i int, name, content string) *verifyv1.VerificationProject {
	GinkgoHelper()
	project := newProject(namespace, fmt.Sprintf("poison-%d", i))
	project.SetGroupVersionKind(verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind))
	var merged, extra map[string]any
	text, err := json.Marshal(project)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &merged)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(content), &extra)).To(Succeed(), name)
	merge(merged["spec"].(map[string]any), extra)
	delete(merged, "status")
	u := &unstructured.Unstructured{Object: merged}
	Expect(admin.Create(ctx, u)).To(Succeed(), name)
	project.UID = u.GetUID()
	return project
}

func merge(into, from map[string]any) {
	for key, value := range from {
		inner, ok := value.(map[string]any)
		if have, also := into[key].(map[string]any); ok && also {
			merge(have, inner)
			continue
		}
		into[key] = value
	}
}
