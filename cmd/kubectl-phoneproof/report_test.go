package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// canaries are planted wherever an object, a log or a metric can hold a text. None may be in a report.
type canaries struct{ planted []string }

// plant returns a text that no report may hold.
func (c *canaries) plant() string {
	canary := fmt.Sprintf("q7x%dk", 10_000+len(c.planted))
	c.planted = append(c.planted, canary)
	return canary
}

// keep adds a text that no report may hold, and returns it.
func (c *canaries) keep(text string) string {
	c.planted = append(c.planted, text)
	return text
}

// unpack returns all that a bundle holds: names and contents.
func unpack(g *WithT, packed []byte) string {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	archive := tar.NewReader(compressed)
	var all strings.Builder
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		g.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&all, "%+v\n%s\n", header, content)
	}
}

// newPlantedWorld returns a world with canaries in everything.
func newPlantedWorld(t *testing.T, c *canaries) *world {
	t.Helper()
	w := newWorld(t, func(p *verifyv1.VerificationProject) {
		p.Annotations = map[string]string{"example.com/" + c.plant(): c.plant()}
		p.Labels = map[string]string{c.plant(): c.plant()}
		p.Spec.ProjectID, p.Spec.DisplayName = c.plant(), c.plant()
		p.Spec.BaseURL = "https://" + c.plant() + ".example.com/" + c.plant()
		p.Spec.Webhook.URL = "https://" + c.plant() + ".example.com/hooks/" + c.plant() + "?token=" + c.plant()
		p.Spec.Replies = &verifyv1.Replies{Verified: verifyv1.Reply(c.plant())}
		p.Spec.Purposes = []verifyv1.Purpose{{Name: c.plant(), Title: verifyv1.PurposeTitle(c.plant())}}
		p.Spec.Telegram.BotUsername = c.plant() + "_bot"
		p.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: verifyv1.Hostname(c.plant() + ".example.com")}
		p.Spec.Server.NodeSelector = map[string]verifyv1.LabelValue{c.plant(): verifyv1.LabelValue(c.plant())}
	})
	for _, value := range []string{apiKeyValue, "the-former-webhook-secret-0123", "7:token"} {
		c.keep(value)
		c.keep(base64.StdEncoding.EncodeToString([]byte(value)))
	}
	w.plantObjects(c)
	w.plantLog(c)
	w.serveMetrics("phoneproof_http_requests_total{route=\"" + c.plant() + "\",code=\"200\"} 12\n" +
		c.plant() + "_total 1\n# HELP x " + c.plant() + "\nphoneproof_stored_requests{state=\"pending\"} 3\n")
	return w
}

func (w *world) plantObjects(c *canaries) {
	at := metav1.Now()
	w.setStatus(func(s *verifyv1.VerificationProjectStatus) {
		s.Conditions = []metav1.Condition{{
			Type: "Ready", Status: "False", Reason: "StorageRejected", LastTransitionTime: at,
			Message: "the database rejected the password " + c.plant() + " of postgres://" + c.plant() + ":" + c.plant() + "@db/" + c.plant() + ", " + c.keep("4915112345678"),
		}}
		s.Telegram = &verifyv1.ChannelStatus{CallbackURL: "https://" + c.plant() + ".example.com/hooks/telegram"}
		s.ObservedRedeliver = c.plant() + "/" + c.plant()
	})
	pod := w.createPod()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "server", Image: c.plant() + ".example.com/" + c.plant() + ":" + c.plant(),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off " + c.plant()}},
	}}
	w.Expect(w.kube.Status().Update(w.t.Context(), pod)).To(Succeed())
	request := w.createRequest("vr"+strings.Repeat("a", 24), time.Minute, makeVerified(true))
	request.Annotations = map[string]string{"note": c.plant()}
	w.Expect(w.kube.Update(w.t.Context(), request)).To(Succeed())
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: c.plant()},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: c.keep("+14155550123"), Reference: c.plant(),
			Metadata: map[string]verifyv1.MetadataValue{c.plant(): verifyv1.MetadataValue(c.plant())},
		},
	})
	w.create(&eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "shop-", Annotations: map[string]string{"note": c.plant()}},
		EventTime:  metav1.NowMicro(), ReportingController: "phoneproof-serve", ReportingInstance: c.plant(), Action: "Redeliver",
		Reason: "RedeliveryRefused", Note: "request " + c.plant() + " cannot be changed: " + c.plant(), Type: "Warning",
		Regarding: corev1.ObjectReference{Kind: "VerificationProject", Namespace: w.namespace, Name: "shop", UID: w.project.UID},
	})
	labels := map[string]string{"app": "shop"}
	w.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproof-shop", Annotations: map[string]string{"note": c.plant()}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"note": c.plant()}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "server", Image: "ghcr.io/phoneproof/phoneproof:v1.2.3", Args: []string{c.plant()}, Env: []corev1.EnvVar{{Name: "X", Value: c.plant()}},
			}}},
		}},
	})
	w.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproof-shop", Annotations: map[string]string{"note": c.plant()}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, ExternalName: c.plant() + ".example.com"},
	})
	w.create(&networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproof-shop", Annotations: map[string]string{"note": c.plant()}},
		Spec:       networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: c.plant() + ".example.com"}}},
	})
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproof-shop"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("phoneproof-shop-0_" + c.plant())},
	})
}

// plantLog makes a log whose lines hold numbers, codes and secrets in every form that comes to mind.
func (w *world) plantLog(c *canaries) {
	grouped := c.keep("151 987 654 32")
	lines := []string{
		`{"time":"2027-01-31T09:30:00.123Z","level":"ERROR","msg":"webhook delivery failed","project":"shop","requestID":"vr` + strings.Repeat("b", 24) + `","status":503,"error":"dial tcp: lookup ` + c.plant() + `.example.com: no such host"}`,
		`{"time":"2027-01-31T09:30:01Z","level":"INFO","msg":"` + c.plant() + `","` + c.plant() + `":"` + c.plant() + `"}`,
		"panic: " + c.plant() + " key=" + c.plant(),
		"number " + c.keep("+4915187654321") + " and +49 " + grouped + " and " + c.keep("0151-876-543-21") + " and (" + c.keep("0151) 876 543 22"),
		"numbers " + c.keep("151,876,543,23") + " and " + c.keep("151:876:543:24") + " and " + c.keep("4915187654325"),
		"code " + c.keep("ABCD-EFGH-JKMN-PQRS") + " digits " + c.keep("482913") + " and " + c.keep("482 914") + " and " + c.keep("482-915"),
		"Authorization: Bearer " + c.keep("pp_"+strings.Repeat("Ab1", 17)) + " whsec_" + c.keep("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
		"https://user:" + c.plant() + "@example.com/?token=" + url.QueryEscape(c.plant()) + "#" + c.plant(),
		`escaped \"` + c.plant() + `\" and \n` + c.plant() + " tab\t" + c.plant(),
		"bot token " + c.keep("110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"),
		"a long line " + strings.Repeat("x", 40_000) + c.plant(),
	}
	w.log = strings.Join(lines, "\n") + "\n"
}

func TestReport_holdsNoCanary(t *testing.T) {
	c := &canaries{}
	w := newPlantedWorld(t, c)
	printed := w.must("report", "shop", "--file=-")
	all := unpack(w.WithT, []byte(printed))
	w.Expect(len(c.planted)).To(BeNumerically(">", 60))
	for _, canary := range c.planted {
		w.Expect(all).NotTo(ContainSubstring(canary))
	}
	for _, number := range []string{"15112345678", "4155550123"} {
		w.Expect(all).NotTo(ContainSubstring(number))
	}
	// What helps is there: without this the test would pass for an empty report.
	for _, useful := range []string{
		"reason: StorageRejected", "the database rejected the password ***", "RedeliveryRefused", "webhook delivery failed", `"status":503`,
		"2027-01-31T09:30:00.123Z", "no such host", "vr" + strings.Repeat("b", 24), "phoneproof_stored_requests{state=\"pending\"} 3",
		"CrashLoopBackOff", "***:v1.2.3", "name: backend", "key: api-key", "versions.txt", "phoneproof-shop-0",
	} {
		w.Expect(all).To(ContainSubstring(useful))
	}
	w.Expect(all).NotTo(ContainSubstring("errors.txt"), "all could be read")
}

func TestReport_goesOnWithoutRights(t *testing.T) {
	c := &canaries{}
	w := newPlantedWorld(t, c)
	w.metrics, w.user = "", "reporter-"+w.namespace
	w.grant(w.user, []string{"get"}, "phoneproof.dev", "verificationprojects")
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	w.Expect(w.must("report", "shop", "--file="+file)).To(ContainSubstring("could not be read, see errors.txt"))
	packed, err := os.ReadFile(file)
	w.Expect(err).NotTo(HaveOccurred())
	all := unpack(w.WithT, packed)
	w.Expect(all).To(And(ContainSubstring("errors.txt"), ContainSubstring("events: list:"), ContainSubstring("reason: StorageRejected")))
	for _, canary := range c.planted {
		w.Expect(all).NotTo(ContainSubstring(canary))
	}
	info, err := os.Stat(file)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	w.Expect(w.mustFail("report", "shop", "--file="+file)).To(ContainSubstring("exists"), "nothing is overwritten")
}
