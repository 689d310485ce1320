package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

// poolDeployment returns that of a pool as the operator makes it. It serves books.
func poolDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	rendered := render.PoolChildren(rendertest.Pool(), rendertest.Options()).Deployment
	NewWithT(t).Expect(json.Unmarshal(mustEncode(rendered), &d)).To(Succeed())
	return &d
}

func TestPolicies_ofAPool(t *testing.T) {
	g := NewWithT(t)
	f := healthyFacts()
	f.Project.Spec.Server.Pool, f.Deployment.Value = "small", poolDeployment(t)
	g.Expect(render.PodLabels(f.Project)).To(Equal(f.Deployment.Value.Spec.Template.Labels))
	targets := listAPITargets(f)
	g.Expect(targets).To(HaveLen(1))
	g.Expect(f.Deployment.Value.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(corev1.ContainerPort{
		Name: targets[0].name, ContainerPort: targets[0].port, Protocol: targets[0].protocol,
	}))

	policy(networkingv1.PolicyTypeIngress, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(8080))})(f)
	f.Policies.Value[0].Spec.PodSelector.MatchLabels = map[string]string{verifyv1.PoolLabel: "small"}
	g.Expect(evidenceOf(f, "PolicyClosesAPI")).To(Equal([]string{"no rule of deny lets " + targets[0].text + " in"}))
	policy(networkingv1.PolicyTypeIngress, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(targets[0].port))})(f)
	g.Expect(evidenceOf(f, "PolicyClosesAPI")).To(BeEmpty())
	f.Policies.Value = f.Policies.Value[:1]
	f.Project.Name = "toys"
	g.Expect(evidenceOf(f, "PolicyClosesAPI")).To(BeEmpty(), "no pod serves it")
	f.Deployment = Known[*appsv1.Deployment]{}
	g.Expect(evidenceOf(f, "PolicyClosesAPI")).To(BeEmpty(), "the port is not known")
}

func TestParseCounts_ofAPool(t *testing.T) {
	g := NewWithT(t)
	project := healthyFacts().Project
	project.Spec.Server.Pool = "small"
	counts, err := parseCounts(strings.NewReader(`# TYPE phoneproof_callback_requests_total counter
phoneproof_callback_requests_total{method="WHATSAPP",project="books",result="accepted"} 5
phoneproof_callback_requests_total{method="WHATSAPP",project="toys",result="accepted"} 70
phoneproof_callback_requests_total{method="WHATSAPP",project="toys",result="unauthorized"} 80
phoneproof_callback_requests_total{method="WHATSAPP",result="unauthorized"} 90
`), project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts).To(Equal(CallbackCounts{Accepted: 5}))
}
