package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/boundedhttp"
)

const (
	// poolPrefix begins the names of what a pool has, so that they are those of no project's children.
	poolPrefix = "phoneproofpool-"
	// firstPoolPort and lastPoolPort bound the ports of the APIs in a pool's pods.
	firstPoolPort = 9000
	lastPoolPort  = 9999
	// maxMembers is the most projects that a pool has, as serve's --pool allows.
	maxMembers = 100
	// mostReserved bounds the ports that are kept from projects without one, so that there is always one for each.
	mostReserved = 800
	// lastPortAnnotation is set on the Deployment of a pool.
	lastPortAnnotation = "phoneproof.dev/last-port"
)

// Pool is a set of projects of a namespace that share pods. The first one's spec.server and spec.networkPolicy are those of all.
type Pool struct {
	Name    string
	Members []Member
	// LastPort is the one that was assigned last.
	LastPort int32
	// Suspended is set if no pod is to run.
	Suspended bool
}

// Member is a project of a pool.
type Member struct {
	Project *verifyv1.VerificationProject
	// Port is that of its API in the pods.
	Port int32
}

// Ports returns those of the members, by the name of the project.
func (p Pool) Ports() map[string]int32 {
	ports := map[string]int32{}
	for _, m := range p.Members {
		ports[m.Project.Name] = m.Port
	}
	return ports
}

// PoolName returns the name of what a pool has. That of its lease is the same.
func PoolName(pool string) string { return poolPrefix + pool }

// PoolSelector returns the labels that select a pool's pods and no others.
func PoolSelector(pool string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":      "phoneproof",
		"app.kubernetes.io/component": "server",
		verifyv1.ProjectLabel:         "",
		verifyv1.PoolLabel:            pool,
	}
}

// PodSelector returns the labels that select the pods that serve a project: its own, or those of its pool.
func PodSelector(p *verifyv1.VerificationProject) map[string]string {
	if pool := p.Spec.Server.Pool; pool != "" {
		return PoolSelector(pool)
	}
	return Selector(p)
}

// PodLabels returns the labels of the pods that serve a project.
func PodLabels(p *verifyv1.VerificationProject) map[string]string {
	if pool := p.Spec.Server.Pool; pool != "" {
		return poolLabels(pool)
	}
	return Labels(p)
}

// WorkloadName returns the name of the Deployment whose pods serve a project.
func WorkloadName(p *verifyv1.VerificationProject) string {
	if pool := p.Spec.Server.Pool; pool != "" {
		return PoolName(pool)
	}
	return Name(p.Name)
}

// PoolChildren returns what the projects of a pool share, built anew for each call. Without members nothing is wanted.
func PoolChildren(pool Pool, o Options) Children {
	if len(pool.Members) == 0 {
		return Children{}
	}
	return newPoolWorkload(pool).renderChildren(o)
}

// newPoolWorkload returns the workload of a pool. Every member is an owner, and none the controller: what they share is deleted with the
// last of them.
func newPoolWorkload(pool Pool) *workload {
	first := pool.Members[0].Project
	w := &workload{
		namespace: first.Namespace, name: PoolName(pool.Name), labels: poolLabels(pool.Name), selector: PoolSelector(pool.Name),
		server: &first.Spec.Server, networkPolicy: first.Spec.NetworkPolicy,
		served:      []string{"--pool=" + first.Namespace + "/" + pool.Name},
		suspended:   pool.Suspended,
		annotations: map[string]string{lastPortAnnotation: strconv.Itoa(int(pool.LastPort))},
	}
	members := slices.SortedFunc(slices.Values(pool.Members), func(a, b Member) int {
		return strings.Compare(a.Project.Name, b.Project.Name)
	})
	for _, m := range members {
		p, argument := m.Project, memberPrefix+m.Project.Name+memberAddress+strconv.Itoa(int(m.Port))+",store="+storageName(m.Project)
		if ref := logoRef(p); ref != nil && canMount(ref.Name, ref.Key) {
			l := logo{logoVolumeName + "-" + strconv.Itoa(int(m.Port)), logoDir + "/" + strconv.Itoa(int(m.Port)), ref}
			w.logos = append(w.logos, l)
			argument += ",logo-file=" + l.dir + "/" + logoFile
		}
		w.owners = append(w.owners, poolOwner(p))
		w.storages = append(w.storages, storageName(p))
		w.served = append(w.served, argument)
		w.secrets = append(w.secrets, slices.DeleteFunc(p.Spec.SecretRefs(), func(ref verifyv1.SecretKeyRef) bool {
			return !canMount(ref.Name, ref.Key)
		})...)
		w.ports = append(w.ports, port{fmt.Sprintf("api-%d", m.Port), m.Port})
	}
	return w
}

// canMount reports whether the API server accepts a volume with a key of a Secret or a ConfigMap. A project whose spec is refused may
// still be served, and must not keep the pods of the others from being applied.
func canMount(name, key string) bool {
	return len(validation.IsDNS1123Subdomain(name)) == 0 && len(validation.IsConfigMapKey(key)) == 0
}

// MaxMembers returns the most projects of a pool whose pods are those of a server: fewer than maxMembers if the memory for connections
// is too little.
func MaxMembers(server *verifyv1.Server) int {
	resources := server.EffectiveResources()
	return boundedhttp.MaxServers(memoryTarget(resources.Limits.Memory()), maxMembers)
}

func poolLabels(pool string) map[string]string {
	labels := PoolSelector(pool)
	labels["app.kubernetes.io/managed-by"] = "phoneproof-operator"
	return labels
}

func poolOwner(p *verifyv1.VerificationProject) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(verifyv1.GroupVersion.String()).WithKind(verifyv1.VerificationProjectKind).WithName(p.Name).WithUID(p.UID)
}

// The parts of a member's argument: memberPrefix, its name, memberAddress, its port, and more after a comma.
const (
	memberPrefix  = "--member=name="
	memberAddress = ",address=:"
)

// MemberPorts returns the ports of the projects that a pool's pods serve, by name; none without a Deployment, or if there are more than a
// pool can have: another program wrote them then.
func MemberPorts(d *appsv1.Deployment) map[string]int32 {
	if d == nil {
		return nil
	}
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		if ports := ReadMemberPorts(container.Args); container.Name == containerName && len(ports) <= maxMembers {
			return ports
		}
	}
	return nil
}

// ReadMemberPorts returns the ports in the arguments of serve, by the name of the project.
func ReadMemberPorts(args []string) map[string]int32 {
	ports := map[string]int32{}
	for _, arg := range args {
		member, ok := strings.CutPrefix(arg, memberPrefix)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(member, memberAddress)
		digits, _, _ := strings.Cut(rest, ",")
		if number, err := strconv.ParseUint(digits, 10, 16); err == nil {
			ports[name] = int32(number)
		}
	}
	return ports
}

// LastPort returns the port that was assigned last among those of a pool's pods.
func LastPort(d *appsv1.Deployment) int32 {
	if d == nil {
		return firstPoolPort - 1
	}
	number, err := strconv.ParseUint(d.Annotations[lastPortAnnotation], 10, 16)
	if err != nil || number < firstPoolPort || number > lastPoolPort {
		return firstPoolPort - 1 // another program wrote it
	}
	return int32(number)
}

// AssignPorts returns the ports of the projects with some names, and the last one that was assigned. A project that has a port keeps it,
// because the pods of the former template serve it there. Another one gets the next after the last: if it got the port of a project that
// left, former pods would answer its clients for that one.
func AssignPorts(names []string, present map[string]int32, last int32) (ports map[string]int32, assigned int32) {
	ports, taken := map[string]int32{}, map[int32]bool{}
	isFree := func(number int32) bool { return number >= firstPoolPort && number <= lastPoolPort && !taken[number] }
	for _, name := range slices.Sorted(slices.Values(names)) { // before the others, so that these cannot take their ports
		if number := present[name]; isFree(number) {
			taken[number], ports[name] = true, number
		}
	}
	for name, number := range present {
		if ports[name] == 0 && isFree(number) && len(taken) < mostReserved {
			taken[number] = true
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if ports[name] != 0 {
			continue
		}
		for last = nextPort(last); taken[last]; {
			last = nextPort(last)
		}
		taken[last], ports[name] = true, last
	}
	return ports, last
}

func nextPort(number int32) int32 {
	if number >= lastPoolPort {
		return firstPoolPort
	}
	return number + 1
}
