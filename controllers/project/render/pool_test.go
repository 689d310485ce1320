package render_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

func TestPoolChildren_withoutMembers(t *testing.T) {
	NewWithT(t).Expect(render.PoolChildren(render.Pool{Name: "small"}, rendertest.Options()).List()).To(BeEmpty())
}

// The order in which projects are found must not restart pods.
func TestPoolChildren_doNotDependOnTheOrderOfTheMembers(t *testing.T) {
	g := NewWithT(t)
	pool, reversed := rendertest.Pool(), rendertest.Pool()
	slices.Reverse(reversed.Members)
	for _, p := range []render.Pool{pool, reversed} {
		p.Members[0].Project.Spec.Server = pool.Members[0].Project.Spec.Server
	}
	g.Expect(encodePool(g, reversed)).To(Equal(encodePool(g, pool)))
}

func encodePool(g Gomega, pool render.Pool) string {
	encoded, err := json.Marshal(render.PoolChildren(pool, rendertest.Options()).List())
	g.Expect(err).NotTo(HaveOccurred())
	return string(encoded)
}

// A project whose spec is refused may still be served. What the API server would refuse in it must not keep the pods of the others from
// being applied.
func TestPoolChildren_leaveOutWhatCannotBeMounted(t *testing.T) {
	g := NewWithT(t)
	pool := rendertest.Pool()
	spec := &pool.Members[2].Project.Spec
	for _, ref := range []verifyv1.SecretKeyRef{{Name: "shop", Key: "../key"}, {Name: "Shop", Key: "key"}, {Name: "", Key: "key"}, {Name: "shop", Key: ".."}} {
		spec.APIKeys = append(spec.APIKeys, verifyv1.APIKey{Name: "wrong", SecretRef: ref})
	}
	spec.Page.LogoRef.Key = "a/b"
	with := render.PoolChildren(pool, rendertest.Options()).Deployment
	spec.APIKeys, spec.Page.LogoRef = spec.APIKeys[:1], nil
	g.Expect(with).To(Equal(render.PoolChildren(pool, rendertest.Options()).Deployment))
}

// A project of a pool has what exposes it, and no pods.
func TestProject_ofAPool(t *testing.T) {
	g := NewWithT(t)
	p, o := rendertest.Pool().Members[0].Project, rendertest.Options()
	for _, c := range []struct{ port, want int32 }{{9004, 9004}, {0, 8080}} {
		o.PoolPort = c.port
		list := render.Project(p, o).List()
		g.Expect(list).To(HaveLen(1))
		service := render.Project(p, o).Service
		g.Expect(service.Spec.Ports[0].TargetPort.IntVal).To(Equal(c.want))
		g.Expect(service.Spec.Selector).To(Equal(render.PoolSelector("small")))
	}
	ports := render.PoolChildren(rendertest.Pool(), o).Deployment.Spec.Template.Spec.Containers[0].Ports
	for _, port := range ports {
		g.Expect(*port.ContainerPort).NotTo(BeEquivalentTo(8080), "the port of a Service whose project no pod serves")
	}
}

func TestPoolName_isNoProjects(t *testing.T) {
	g := NewWithT(t)
	longest := "abcdefghijklmnopqrstuvwxyz0123"
	g.Expect(validation.IsDNS1123Label(render.PoolName(longest) + "-postgresql-ns")).To(BeEmpty())
	for _, project := range []string{"small", "pool-small", "phoneproofpool-small"} {
		g.Expect(render.Name(project)).NotTo(Equal(render.PoolName("small")))
	}
}

func TestReadMemberPorts_readsWhatIsRendered(t *testing.T) {
	g := NewWithT(t)
	pool := rendertest.Pool()
	args := render.PoolChildren(pool, rendertest.Options()).Deployment.Spec.Template.Spec.Containers[0].Args
	g.Expect(render.ReadMemberPorts(args)).To(Equal(map[string]int32{"shop": 9004, "books": 9003, "bikes": 9002}))
	g.Expect(render.ReadMemberPorts(args)).To(Equal(pool.Ports()))
	g.Expect(render.ReadMemberPorts([]string{"serve", "--member=name=a", "--member=name=b,address=:x", "--member=name=c,address=:70000"})).To(BeEmpty())
	g.Expect(render.MemberPorts(nil)).To(BeEmpty())
	g.Expect(render.MemberPorts(&appsv1.Deployment{})).To(BeEmpty())
}

func TestMemberPorts(t *testing.T) {
	g := NewWithT(t)
	d := &appsv1.Deployment{}
	mesh, server := corev1.Container{Name: "mesh", Args: []string{"--member=name=a,address=:9007"}}, corev1.Container{Name: "server"}
	for i := range 100 {
		server.Args = append(server.Args, fmt.Sprintf("--member=name=p%d,address=:%d", i, 9000+i))
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{mesh, server}
	g.Expect(render.MemberPorts(d)).To(And(HaveLen(100), HaveKeyWithValue("p7", int32(9007))))
	more := &d.Spec.Template.Spec.Containers[1]
	more.Args = append(more.Args, "--member=name=more,address=:9500")
	g.Expect(render.MemberPorts(d)).To(BeEmpty(), "no pool has so many: an editor of the namespace wrote them")
}

func TestLastPort(t *testing.T) {
	g := NewWithT(t)
	g.Expect(render.LastPort(nil)).To(BeEquivalentTo(8999))
	for value, want := range map[string]int32{"9000": 9000, "9999": 9999, "": 8999, "8080": 8999, "10000": 8999, "x": 8999, "-9001": 8999} {
		d := &appsv1.Deployment{}
		d.Annotations = map[string]string{"phoneproof.dev/last-port": value}
		g.Expect(render.LastPort(d)).To(Equal(want), value)
	}
	g.Expect(render.PoolChildren(rendertest.Pool(), rendertest.Options()).Deployment.Annotations).To(HaveKeyWithValue("phoneproof.dev/last-port", "9004"))
}

func TestAssignPorts(t *testing.T) {
	type ports = map[string]int32
	for name, c := range map[string]struct {
		names   []string
		present ports
		last    int32
		want    ports
		then    int32
	}{
		"the first":                             {[]string{"b", "a"}, nil, 8999, ports{"a": 9000, "b": 9001}, 9001},
		"one more":                              {[]string{"a", "b", "0"}, ports{"a": 9000, "b": 9001}, 9001, ports{"a": 9000, "b": 9001, "0": 9002}, 9002},
		"not that of one that leaves":           {[]string{"a", "c"}, ports{"a": 9000, "b": 9001}, 9001, ports{"a": 9000, "c": 9002}, 9002},
		"nor of one that left before":           {[]string{"a", "c"}, ports{"a": 9000}, 9001, ports{"a": 9000, "c": 9002}, 9002},
		"from the start after the end":          {[]string{"a", "b", "c"}, ports{"a": 9000}, 9998, ports{"a": 9000, "b": 9999, "c": 9001}, 9001},
		"a port of another program is replaced": {[]string{"a", "b"}, ports{"a": 80, "b": 9001}, 9001, ports{"a": 9002, "b": 9001}, 9002},
		"so is one that two have":               {[]string{"a", "b"}, ports{"a": 9000, "b": 9000}, 9001, ports{"a": 9000, "b": 9002}, 9002},
		"that of a member, if a Service of another one leads there": {[]string{"b"}, ports{"a": 9001, "b": 9001}, 9001, ports{"b": 9001}, 9001},
		"none": {nil, ports{"a": 9000}, 9000, ports{}, 9000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, last := render.AssignPorts(c.names, c.present, c.last)
			g.Expect(got).To(Equal(c.want))
			g.Expect(last).To(Equal(c.then))
			again, last := render.AssignPorts(c.names, got, last)
			g.Expect(again).To(Equal(got), "it stays")
			g.Expect(last).To(Equal(c.then))
		})
	}
	g := NewWithT(t)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("p%d", i))
	}
	present, last := map[string]int32(nil), int32(9950)
	forged := map[string]int32{} // by Services, which editors of the namespace can write
	for number := int32(9000); number <= 9999; number++ {
		forged[fmt.Sprintf("x%d", number)] = number
	}
	some, _ := render.AssignPorts(names, forged, 8999)
	g.Expect(slices.Compact(slices.Sorted(maps.Values(some)))).To(HaveLen(100))
	for range 50 { // as often as one leaves and another one joins, all have a port of their own
		present, last = render.AssignPorts(names, present, last)
		g.Expect(slices.Compact(slices.Sorted(maps.Values(present)))).To(HaveLen(100))
		names = append(names[1:], names[0]+"x")
	}
}

func TestMaxMembers(t *testing.T) {
	limit := func(memory string) *verifyv1.Server {
		return &verifyv1.Server{Resources: &verifyv1.Resources{Limits: &verifyv1.ResourceAmounts{Memory: new(resource.MustParse(memory))}}}
	}
	g := NewWithT(t)
	g.Expect(render.MaxMembers(limit("1Gi"))).To(Equal(100))
	g.Expect(render.MaxMembers(limit("400Mi"))).To(Equal(100))
	g.Expect(render.MaxMembers(limit("64Mi"))).To(BeNumerically("~", 17, 1))
	usual := render.MaxMembers(&verifyv1.Server{})
	g.Expect(usual).To(Equal(67))
	g.Expect(render.MaxMembers(limit("256Mi"))).To(Equal(usual))
	g.Expect(render.MaxMembers(limit("1"))).To(Equal(1), "what is too little for two is enough for one")
}
