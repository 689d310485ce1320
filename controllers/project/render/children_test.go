package render_test

import (
	"testing"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

func TestProject_optional_children(t *testing.T) {
	cases := map[string]rendertest.Case{}
	for _, c := range rendertest.Cases() {
		cases[c.Name] = c
	}
	optional := func(name string) []string {
		var wanted []string
		c := render.Project(cases[name].Project, cases[name].Options)
		for kind, want := range map[string]bool{
			"HorizontalPodAutoscaler": c.HorizontalPodAutoscaler != nil, "PodDisruptionBudget": c.PodDisruptionBudget != nil,
			"Ingress": c.Ingress != nil, "HTTPRoute": c.HTTPRoute != nil, "NetworkPolicy": c.NetworkPolicy != nil,
		} {
			if want {
				wanted = append(wanted, kind)
			}
		}
		return wanted
	}
	g := NewWithT(t)
	g.Expect(optional("minimal")).To(BeEmpty())
	g.Expect(optional("autoscaling")).To(ConsistOf("HorizontalPodAutoscaler"))
	g.Expect(optional("autoscaling-suspended")).To(BeEmpty())
	g.Expect(optional("disruption-budget")).To(ConsistOf("PodDisruptionBudget"))
	g.Expect(optional("ingress")).To(ConsistOf("Ingress"))
	g.Expect(optional("httproute")).To(ConsistOf("HTTPRoute"))
	g.Expect(optional("network-policy")).To(ConsistOf("NetworkPolicy"))

	withoutAPI := cases["httproute"]
	withoutAPI.Options.HTTPRoutes = false
	cases["without the API"] = withoutAPI
	g.Expect(optional("without the API")).To(BeEmpty())
}

func TestReplicas(t *testing.T) {
	autoscaled := &verifyv1.Autoscaling{MinReplicas: new(int32(3)), MaxReplicas: 9}
	for name, c := range map[string]struct {
		server  verifyv1.Server
		suspend bool
		want    int32
	}{
		"unset":                    {verifyv1.Server{}, false, 2},
		"set":                      {verifyv1.Server{Replicas: new(int32(7))}, false, 7},
		"suspended":                {verifyv1.Server{Replicas: new(int32(7))}, true, 0},
		"autoscaled":               {verifyv1.Server{Replicas: new(int32(7)), Autoscaling: autoscaled}, false, 3},
		"autoscaled and suspended": {verifyv1.Server{Autoscaling: autoscaled}, true, 0},
		"autoscaled from":          {verifyv1.Server{Autoscaling: &verifyv1.Autoscaling{MaxReplicas: 9}}, false, 2},
	} {
		p := rendertest.Project()
		p.Spec.Server, p.Spec.Suspend = c.server, new(c.suspend)
		NewWithT(t).Expect(render.Replicas(p)).To(Equal(c.want), name)
	}
}

// Rendering must not modify a project that others read at the same time, such as the cache's.
func TestProject_leaves_the_project_alone(t *testing.T) {
	g := NewWithT(t)
	for _, c := range rendertest.Cases() {
		before := c.Project.DeepCopy()
		children := render.Project(c.Project, c.Options)
		children.Deployment.WithLabels(map[string]string{"written": "to"})
		children.Deployment.Spec.Template.Spec.WithNodeSelector(map[string]string{"written": "to"})
		g.Expect(c.Project).To(Equal(before), c.Name)
	}
}
