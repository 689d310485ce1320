package project

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A decision on a pool", func() {
	// made returns a candidate.
	made := func(name string, edits ...func(*candidate)) candidate {
		c := candidate{project: newProject("shops", name)}
		c.project.Spec.Server.Pool = "small"
		c.project.Default()
		for _, edit := range edits {
			edit(&c)
		}
		return c
	}
	suspended := func(c *candidate) { c.project.Spec.Suspend = new(true) }
	refused := func(c *candidate) { c.action = keep }
	ended := func(c *candidate) { c.action = stop }
	larger := func(c *candidate) { c.project.Spec.Server.Replicas = new(int32(5)) }
	closed := func(c *candidate) { c.project.Spec.NetworkPolicy = &verifyv1.NetworkPolicy{} }
	serving := func(names ...string) map[string]int32 {
		ports := map[string]int32{}
		for i, name := range names {
			ports[name] = int32(9000 + i)
		}
		return ports
	}

	DescribeTable("names the members, the one that decides on their pods first, and those that conflict",
		func(candidates []candidate, served map[string]int32, members, conflicts []string, keeps bool) {
			d := decidePool("small", candidates, served)
			var names []string
			for _, p := range d.members {
				names = append(names, p.Name)
			}
			Expect(names).To(Equal(members))
			Expect(slices.Sorted(maps.Keys(d.conflicts))).To(Equal(conflicts))
			Expect(d.keep).To(Equal(keeps))
		},
		Entry("none", nil, serving("a"), nil, nil, false),
		Entry("the oldest first", []candidate{made("b"), made("a")}, serving(), []string{"b", "a"}, nil, false),
		Entry("an older one that is not served yet after one that is", []candidate{made("a"), made("b")}, serving("b"), []string{"b", "a"}, nil, false),
		Entry("without a younger one that wants other pods", []candidate{made("a"), made("b", larger), made("c", closed)}, serving(), []string{"a"}, []string{"b", "c"}, false),
		Entry("without an older one that wants other pods than those that run", []candidate{made("a", larger), made("b")}, serving("b"), []string{"b"}, []string{"a"}, false),
		Entry("with a member that has begun to want other pods", []candidate{made("a"), made("b", larger)}, serving("a", "b"), []string{"a", "b"}, []string{"b"}, false),
		Entry("by the oldest member, whatever it wants now", []candidate{made("a", larger), made("b")}, serving("a", "b"), []string{"a", "b"}, []string{"b"}, false),
		Entry("without a refused project", []candidate{made("a", refused), made("b")}, serving(), []string{"b"}, nil, false),
		Entry("with a member that is refused now, which does not decide", []candidate{made("a", refused), made("b")}, serving("a", "b"), []string{"b", "a"}, nil, false),
		Entry("without one that must not run", []candidate{made("a", ended), made("b")}, serving("a", "b"), []string{"b"}, nil, false),
		Entry("by a suspended member: its suspension changes no pods", []candidate{made("a", suspended, larger), made("b")}, serving("a", "b"), []string{"a", "b"}, []string{"b"}, false),
		Entry("with one that is suspended and refused", []candidate{made("a", suspended, refused), made("b")}, serving("a", "b"), []string{"b", "a"}, nil, false),
		Entry("without one that must not run, even if it is suspended", []candidate{made("a", suspended, ended), made("b")}, serving("a", "b"), []string{"b"}, nil, false),
		Entry("without a suspended project that has not joined", []candidate{made("a", suspended), made("b")}, serving("b"), []string{"b"}, nil, false),
		Entry("none if no one has joined and all are suspended", []candidate{made("a", suspended)}, serving(), nil, nil, false),
		Entry("all if all are suspended", []candidate{made("a", suspended), made("b", suspended)}, serving("a", "b"), []string{"a", "b"}, nil, false),
		Entry("as they are if all members are refused", []candidate{made("a", refused), made("b", refused, suspended)}, serving("a", "b"), nil, nil, true),
		Entry("none if all are refused and one must not run", []candidate{made("a", refused), made("b", ended)}, serving("a", "b"), nil, nil, false),
		Entry("as they are if one that must not run does not", []candidate{made("a", refused), made("b", ended)}, serving("a"), nil, nil, true),
		Entry("none if none has joined and all are refused", []candidate{made("a", refused)}, serving(), nil, nil, false),
	)

	It("runs no pods if all members are suspended", func() {
		Expect(decidePool("small", []candidate{made("a", suspended), made("b", suspended)}, serving("a", "b")).suspended).To(BeTrue())
		Expect(decidePool("small", []candidate{made("a", suspended), made("b", refused)}, serving("a", "b")).suspended).To(BeFalse())
		Expect(decidePool("small", []candidate{made("a", suspended), made("b")}, serving("a")).suspended).To(BeFalse())
	})

	It("tells the one that decides if its memory limit has no room for the members", func() {
		var candidates []candidate
		var served []string
		for i := range 30 {
			c := made(fmt.Sprintf("p%02d", i))
			c.project.Spec.Server.Resources = &verifyv1.Resources{Limits: &verifyv1.ResourceAmounts{Memory: new(resource.MustParse("64Mi"))}}
			candidates, served = append(candidates, c), append(served, c.project.Name)
		}
		d := decidePool("small", candidates, serving(served...))
		Expect(d.members).To(HaveLen(30))
		Expect(d.conflicts).To(And(HaveLen(1), HaveKeyWithValue("p00", ContainSubstring("the memory limit has room for "))))
	})

	It("names the project whose fields count", func() {
		d := decidePool("small", []candidate{made("a"), made("b", larger)}, serving())
		Expect(d.conflicts["b"]).To(Equal("spec.server and spec.networkPolicy must be those of the project a in the pool small; " +
			"make them equal, or use another pool"))
	})

	It("compares amounts, not their spelling", func() {
		memory := func(text string) func(*candidate) {
			return func(c *candidate) {
				c.project.Spec.Server.Resources = &verifyv1.Resources{Limits: &verifyv1.ResourceAmounts{Memory: new(resource.MustParse(text))}}
			}
		}
		Expect(decidePool("small", []candidate{made("a", memory("1Gi")), made("b", memory("1024Mi"))}, serving()).conflicts).To(BeEmpty())
		Expect(decidePool("small", []candidate{made("a", memory("1Gi")), made("b", memory("1G"))}, serving()).conflicts).To(HaveKey("b"))
	})

	It("takes no more projects than the pods have room for, and none for the sake of an older one", func() {
		var candidates []candidate
		for i := range 80 {
			candidates = append(candidates, made(fmt.Sprintf("p%02d", i)))
		}
		d := decidePool("small", candidates, serving())
		Expect(len(d.members)).To(BeNumerically("~", 67, 2))
		Expect(len(d.members) + len(d.conflicts)).To(Equal(80))
		Expect(d.conflicts["p79"]).To(ContainSubstring("have no room for more"))

		var served []string
		for _, c := range candidates[1 : 1+len(d.members)] {
			served = append(served, c.project.Name)
		}
		again := decidePool("small", candidates, serving(served...))
		Expect(again.members).To(HaveLen(len(d.members)))
		Expect(again.conflicts).To(HaveKey("p00"))
	})
})
