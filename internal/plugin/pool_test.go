package plugin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/plugin/status"
)

// neighbour is another project of the pool. Reports know its name as a word.
const neighbour = "books"

// inPool puts the project into a pool.
func inPool(p *verifyv1.VerificationProject) { p.Spec.Server.Pool = "small" }

// poolArgs returns the arguments of the pool's pods that serve some projects, the first of them at port 9000.
func (w *world) poolArgs(members ...string) []string {
	args := []string{"serve", "--pool=" + w.namespace + "/small"}
	for i, name := range members {
		args = append(args, fmt.Sprintf("--member=name=%s,address=:%d,store=kubernetes", name, 9000+i))
	}
	return args
}

// createPoolPod makes a ready pod of the pool that serves some projects.
func (w *world) createPoolPod(name string, members ...string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: render.PoolSelector("small")},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "mesh", Image: "example.com/mesh:v1"}, {Name: "server", Image: "example.com/phoneproof:v1.2.3", Args: w.poolArgs(members...)},
		}},
	}
	w.create(pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Expect(w.kube.Status().Update(w.t.Context(), pod)).To(Succeed())
}

// createPool makes the Deployment of the pool, its lease and two pods. The first pod was started before the project joined.
func (w *world) createPool() {
	w.t.Helper()
	w.createPoolPod("phoneproofpool-small-0", neighbour)
	w.createPoolPod("phoneproofpool-small-1", neighbour, "shop")
	labels := map[string]string{"app": "small"}
	w.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproofpool-small"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(7)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "server", Image: "example.com/phoneproof:v1.2.3", Args: w.poolArgs(neighbour, "shop")},
			}},
		}},
	})
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproofpool-small"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("phoneproofpool-small-1"), RenewTime: new(metav1.NowMicro())},
	})
}

// poolMetrics are those of a pod that serves two projects.
const poolMetrics = `# HELP phoneproof_stored_requests Stored requests.
phoneproof_stored_requests{project="books",state="pending"} 90
phoneproof_stored_requests{project="shop",state="pending"} 3
phoneproof_http_requests_total{code="200",project="books",route="/api/verify/init"} 91
phoneproof_http_requests_total{code="200",project="shop",route="{,project=\"toys\"}"} 4
go_goroutines 5
`

// The other project has the port that is the first one of the pod that does not serve this project.
func TestPool_callsAPodThatServesTheProject(t *testing.T) {
	w := newWorld(t, inPool, onPostgreSQL)
	w.createPool()
	service, store := w.serveAPI()
	w.members = map[string]string{"phoneproofpool-small-1:9001": w.api}
	ids := startMany(w, service, 2)
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o=json", "--api-key=backend"))).To(ConsistOf(ids))
	giveUp(w, store, ids[0])
	w.Expect(w.must("redeliver", "shop", ids[0], "--api-key=backend")).To(ContainSubstring("is sent once more"))
	w.Expect(w.must("verify", "shop", number, "--api-key=backend")).To(ContainSubstring("https://t.me/shop_bot?start="))
}

func TestPool_withoutAPodThatServesTheProject(t *testing.T) {
	w := newWorld(t, inPool, onPostgreSQL)
	w.createPoolPod("phoneproofpool-small-0", neighbour)
	w.createPoolPod("phoneproofpool-small-1", neighbour, "shop-2")
	w.members = map[string]string{}
	w.serveMetrics(poolMetrics)
	for _, args := range [][]string{{"requests", "list", "shop", "--api-key=backend"}, {"metrics", "shop"}} {
		w.Expect(w.mustFail(args...)).To(ContainSubstring("no pod of the project is ready"))
	}
}

// The pods of a pool go on without a project that is suspended.
func TestPool_suspended(t *testing.T) {
	w := newWorld(t, inPool, onPostgreSQL, func(p *verifyv1.VerificationProject) { p.Spec.Suspend = new(true) })
	w.createPool()
	w.Expect(w.mustFail("requests", "list", "shop", "--api-key=backend")).To(ContainSubstring("kubectl phoneproof resume shop starts it"))
	w.Expect(w.must("status", "shop")).To(ContainSubstring("suspended: the pods of the pool do not serve it"))
}

func TestPool_status(t *testing.T) {
	w := newWorld(t, inPool)
	w.Expect(w.must("status", "shop")).To(MatchRegexp(`Pool: +small\n`), "there is no Deployment yet")
	w.createPool()
	w.serveMetrics(poolMetrics)
	w.Expect(w.must("status", "shop")).To(And(
		ContainSubstring("small (projects that share its pods: 2)\n"), ContainSubstring("0 of 7 ready"), ContainSubstring("3 pending"),
		ContainSubstring("phoneproofpool-small-1, renewed"), ContainSubstring("http://phoneproof-shop."),
	))
	var report status.Report
	w.Expect(json.Unmarshal([]byte(w.must("status", "shop", "-o", "json")), &report)).To(Succeed())
	w.Expect(report.Pool).To(Equal(&status.Pool{Name: "small", Projects: 2, Joined: true}))
	w.Expect(report.StoredRequests).To(Equal(map[string]int64{"pending": 3}))
	w.Expect(report.Unknown).To(BeEmpty())
}

func TestPool_statusOfAProjectThatHasNotJoined(t *testing.T) {
	w := newWorld(t, inPool, func(p *verifyv1.VerificationProject) { p.Name = "toys" })
	w.createPool()
	w.Expect(w.must("status", "toys")).To(And(
		ContainSubstring("small (projects that share its pods: 2, without this one)"), ContainSubstring("no pod of the project is ready")))
}

func TestPool_metrics(t *testing.T) {
	w := newWorld(t, inPool)
	w.createPool()
	w.serveMetrics(poolMetrics)
	w.Expect(w.must("metrics", "shop")).To(Equal(`# HELP phoneproof_stored_requests Stored requests.
phoneproof_stored_requests{project="shop",state="pending"} 3
phoneproof_http_requests_total{code="200",project="shop",route="{,project=\"toys\"}"} 4
go_goroutines 5
`))
}

// poolLog returns the log of a pod that serves two projects, in both formats: lines of this project and of the process, and of the other.
func (w *world) poolLog() (kept, dropped []string) {
	own, other := w.namespace+"/shop", w.namespace+"/"+neighbour
	return []string{
			`{"time":"2027-01-31T09:30:00Z","level":"INFO","msg":"serving","project":"` + own + `","store":"kubernetes"}`,
			`{"time":"2027-01-31T09:30:00Z","level":"INFO","msg":"text \"project\":\"x\"","project":"` + own + `"}`,
			`time=2027-01-31T09:30:00Z level=INFO msg="listen failed, project=x" project=` + own,
			`{"time":"2027-01-31T09:30:00Z","level":"WARN","msg":"lease lost"}`,
			"panic: runtime error",
		}, []string{
			`{"time":"2027-01-31T09:30:00Z","level":"INFO","msg":"draining","project":"` + other + `"}`,
			`{"time":"2027-01-31T09:30:00Z","level":"INFO","msg":"draining","project":"` + own + `-2"}`,
			`{"time":"2027-01-31T09:30:00Z","level":"INFO","msg":"draining","project":"` + other + `","error":"` + strings.Repeat("draining ", 5_000) + `"}`,
			`time=2027-01-31T09:30:00Z level=INFO msg="draining, project=` + own + `" project=` + other,
		}
}

func TestPool_logs(t *testing.T) {
	w := newWorld(t, inPool)
	w.createPoolPod("phoneproofpool-small-0", neighbour, "shop")
	kept, dropped := w.poolLog()
	w.log = strings.Join(append(dropped, kept...), "\n") + "\n"
	prefix := "phoneproofpool-small-0 "
	w.Expect(w.must("logs", "shop")).To(Equal(prefix + strings.Join(kept, "\n"+prefix) + "\n"))
	w.Expect(w.must("logs", "shop", "--match=WARN")).To(Equal(prefix + kept[3] + "\n"))
}

// What a pod of its own logs is printed whatever it names.
func TestLogs_withoutAPool(t *testing.T) {
	w := newWorld(t)
	w.createPod()
	w.log = `{"msg":"x","project":"other/books"}` + "\n"
	w.Expect(w.must("logs", "shop")).To(Equal("phoneproof-shop-0 " + w.log))
}

func TestPool_reportLeavesOutOtherProjects(t *testing.T) {
	w := newWorld(t, inPool)
	w.createPool()
	w.serveMetrics(poolMetrics)
	kept, dropped := w.poolLog()
	w.log = strings.Join(append(dropped, kept...), "\n") + "\n"
	for _, regarding := range []corev1.ObjectReference{
		{Kind: "VerificationProject", Name: neighbour}, {Kind: "Ingress", Name: "phoneproof-" + neighbour}, {Kind: "Pod", Name: "phoneproofpool-small-1"},
	} {
		regarding.Namespace = w.namespace
		w.create(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "small-"}, EventTime: metav1.NowMicro(), Action: "x", Type: "Warning",
			ReportingController: "serve", ReportingInstance: "x", Reason: "Draining", Note: "draining " + strings.ToLower(regarding.Kind), Regarding: regarding,
		})
	}
	all := unpack(w.WithT, []byte(w.must("report", "shop", "--file=-")))
	w.Expect(all).NotTo(Or(ContainSubstring(neighbour), ContainSubstring(`"draining"`), ContainSubstring(" 90"), ContainSubstring("note: draining ingress")))
	for _, useful := range []string{
		"pool: small", "wanted: 7", "name: phoneproofpool-small-0", "note: draining pod", "lease lost", "serving", "panic",
		`phoneproof_stored_requests{project="shop",state="pending"} 3`, w.namespace + "/shop",
	} {
		w.Expect(all).To(ContainSubstring(useful))
	}
}
