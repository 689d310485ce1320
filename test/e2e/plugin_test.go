//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runPlugin runs a command of the kubectl plugin on a shop's namespace. It must succeed.
func (s *shop) runPlugin(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := run(ctx, filepath.Join(root, "bin", "kubectl-phoneproof"), append(args, "--namespace="+s.namespace)...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

func pluginSpecs() {
	It("is shown and steered by the kubectl plugin with storage Kubernetes", func(ctx SpecContext) {
		theShop.allowReading(ctx)
		steerByPlugin(ctx, theShop)
	})

	It("is shown and steered by the kubectl plugin with storage PostgreSQL, through a port-forward", func(ctx SpecContext) {
		bakeryIsOpen()
		theBakery.allowReading(ctx)
		steerByPlugin(ctx, theBakery, "--api-key=backend")
	})

	It("gets a new API key and webhook secret by the kubectl plugin, and the former ones count meanwhile", func(ctx SpecContext) {
		shops := []*shop{theShop}
		if theBakery != nil {
			shops = append(shops, theBakery)
		}
		for _, s := range shops {
			s.runPlugin(ctx, "rotate", "api-key", "shop", "backend")
			s.runPlugin(ctx, "rotate", "webhook-secret", "shop")
		}
		for _, s := range shops {
			s.expectRotated(ctx)
		}
		for _, s := range shops {
			s.runPlugin(ctx, "rotate", "api-key", "shop", "backend-2", "--finish") // the other specs have the first key
			patchProject(ctx, s.namespace, `{"spec":{"webhook":{"secretRef":{"name":"shop","key":"webhook-secret"},"previousSecretRef":null}}}`)
		}
		for _, s := range shops {
			eventuallyReady(ctx, s.namespace)
			s.eventuallyServed(ctx)
		}
	})
}

// allowReading gives the API key all scopes.
func (s *shop) allowReading(ctx context.Context) {
	GinkgoHelper()
	patchProject(ctx, s.namespace, `{"spec":{"apiKeys":[{"name":"backend","secretRef":{"name":"shop","key":"api-key"},"scopes":["Init","Status","Read","Redeliver"]}]}}`)
	eventuallyReady(ctx, s.namespace)
}

// started are what verify prints.
var (
	startedID   = regexp.MustCompile(`(?m)^request (\S+)$`)
	startedLink = regexp.MustCompile(`(?m)^https://wa\.me/\S+$`)
)

// steerByPlugin does what an administrator does, from a verification to a support bundle.
func steerByPlugin(ctx context.Context, s *shop, key ...string) {
	GinkgoHelper()
	with := func(args ...string) []string { return append(args, key...) }
	var status struct {
		Ready          string           `json:"ready"`
		LeaseHolder    string           `json:"leaseHolder"`
		StoredRequests map[string]int64 `json:"storedRequests"`
		Unknown        []string         `json:"unknown"`
	}
	Expect(json.Unmarshal([]byte(s.runPlugin(ctx, "status", "shop", "-o", "json")), &status)).To(Succeed())
	Expect(status.Ready).To(Equal("True"))
	Expect(status.LeaseHolder).NotTo(BeEmpty())
	Expect(status.StoredRequests).To(HaveKey("finished"))
	Expect(status.Unknown).To(BeEmpty())

	r := request{number: newNumber()}
	printed := s.runPlugin(ctx, with("verify", "shop", r.number, "--method=whatsapp", "--reference=by-plugin")...)
	Expect(startedID.FindStringSubmatch(printed)).To(HaveLen(2), printed)
	r.ID, r.WaLink = startedID.FindStringSubmatch(printed)[1], startedLink.FindString(printed)
	Expect(s.runPlugin(ctx, with("requests", "get", "shop", r.ID)...)).To(And(ContainSubstring("PENDING"), Not(ContainSubstring(r.number))))
	s.sendMessage(ctx, r)
	Eventually(func() string { return s.runPlugin(ctx, with("requests", "get", "shop", r.ID, "-o", "json")...) }).WithContext(ctx).
		Should(And(ContainSubstring(`"status": "VERIFIED"`), ContainSubstring(`"state": "DELIVERED"`), ContainSubstring(r.number)))
	Expect(s.runPlugin(ctx, with("requests", "list", "shop", "--reference=by-plugin", "--since=1h", "--status=verified")...)).
		To(And(ContainSubstring(r.ID), Not(ContainSubstring(r.number))))
	Expect(s.runPlugin(ctx, with("requests", "declines", "shop")...)).NotTo(ContainSubstring(r.ID))

	before := len(s.listEvents(ctx, r.ID))
	Expect(s.runPlugin(ctx, with("redeliver", "shop", r.ID, "--wait")...)).To(ContainSubstring(r.ID + ": delivered"))
	Expect(s.runPlugin(ctx, "redeliver", "shop", r.ID)).To(ContainSubstring("is sent once more"), "by the annotation")
	Eventually(s.listEvents).WithContext(ctx).WithArguments(r.ID).Should(HaveLen(before + 2))
	s.runPlugin(ctx, with("redeliver", "shop", "--failed")...)

	pending := s.initRequest(ctx, "WHATSAPP")
	s.runPlugin(ctx, "cancel", "shop", pending.ID, "--api-key=backend")
	Expect(s.readStatus(ctx, pending.ID)).To(Equal("EXPIRED"))
	Expect(s.runPlugin(ctx, with("requests", "get", "shop", pending.ID)...)).To(ContainSubstring("CANCELED"))

	Expect(s.runPlugin(ctx, "logs", "shop", "--tail=5")).To(ContainSubstring("phoneproof-shop-"))
	Expect(s.runPlugin(ctx, "metrics", "shop", "--match=server_info")).To(ContainSubstring("phoneproof_server_info"))
	s.expectCleanReport(ctx, r)
}

// expectCleanReport packs a support bundle, and looks for what must not be in it.
func (s *shop) expectCleanReport(ctx context.Context, r request) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
	s.runPlugin(ctx, "report", "shop", "--file="+file)
	packed, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(packed.Close)
	compressed, err := gzip.NewReader(packed)
	Expect(err).NotTo(HaveOccurred())
	var all strings.Builder
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintln(&all, header.Name)
		_, err = io.Copy(&all, archive)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(all.String()).To(And(ContainSubstring("logs/phoneproof-shop-"), ContainSubstring("phoneproof_server_info"), ContainSubstring("type: Ready")))
	for _, secret := range []string{firstAPIKey, firstSecret, firstBotToken, databasePassword, r.number, r.number[1:]} {
		Expect(all.String()).NotTo(ContainSubstring(secret))
	}
}

// expectRotated waits until both API keys and signatures by both secrets count.
func (s *shop) expectRotated(ctx context.Context) {
	GinkgoHelper()
	project, err := readProject(ctx, s.namespace)
	Expect(err).NotTo(HaveOccurred())
	Expect(project.Spec.APIKeys).To(HaveLen(2))
	added := project.Spec.APIKeys[1]
	Expect(project.Spec.Webhook.PreviousSecretRef.Key).To(Equal("webhook-secret"))
	var secret corev1.Secret
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: added.SecretRef.Name}, &secret)).To(Succeed())
	value := string(secret.Data[added.SecretRef.Key])
	Eventually(func(g Gomega) {
		for _, key := range []string{value, firstAPIKey} {
			got, err := s.sendRequest(ctx, s.http, http.MethodGet, s.api+"/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa", key, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.code).To(Equal(http.StatusNotFound))
		}
	}).WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())
	eventuallyReady(ctx, s.namespace)
	r := s.initRequest(ctx, "WHATSAPP")
	s.sendMessage(ctx, r)
	s.eventuallyVerified(ctx, r)
	Eventually(s.listEvents).WithContext(ctx).WithArguments(r.ID).Should(ContainElement(HaveField("StandardSignature", "valid")))
}
