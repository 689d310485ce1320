//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
	"github.com/phoneproof/phoneproof/test/ports"
)

func pageSpecs() {
	It("leads a user from the page to a verified number, in a browser", func(ctx SpecContext) {
		b, err := browser.Start()
		if errors.Is(err, browser.ErrNotInstalled) {
			Skip(err.Error())
		}
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(b.Stop)

		// A page is at https, or on this machine.
		address := ports.Address(GinkgoT())
		patchProject(ctx, shopNamespace, `{"spec":{"baseURL":"http://`+address+`","page":{}}}`)
		DeferCleanup(func(ctx SpecContext) {
			patchProject(ctx, shopNamespace, `{"spec":{"baseURL":null,"page":null}}`)
			eventuallyReady(ctx, shopNamespace)
			runKubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=5m deployment/phoneproof-shop")
		})
		eventuallyReady(ctx, shopNamespace)
		runKubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=5m deployment/phoneproof-shop")
		theShop.forward(ctx, address)
		onePod := *theShop // the one that has the page learns of the changed project by itself
		onePod.api = "http://" + address

		for method, app := range map[string]string{"WHATSAPP": "WhatsApp", "TELEGRAM": "Telegram"} {
			r := onePod.eventuallyHasPage(ctx, method, onePod.api+"/v/")
			page := b.NewPage(GinkgoT())
			page.EmulatePhone()
			page.HandLinksToApps()
			page.Open(r.PageURL)
			page.AwaitText("h1", Equal("Verify your phone number"))
			page.Press("#open")
			Expect(page.AwaitApp()).To(Equal(r.WaLink + r.TgLink))
			page.AwaitText("h1", Equal("Now tap Send in "+app))
			page.Hide()
			theShop.sendMessage(ctx, r)
			page.Show()
			page.AwaitText("h1", Equal("Your number is verified"))
			Expect(theShop.mustReadStatus(ctx, r.ID)).To(Equal("VERIFIED"))
		}
	})
}

// forward leads an address of this machine to a pod of the project, until the spec ends.
func (s *shop) forward(ctx context.Context, address string) {
	GinkgoHelper()
	host, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(filepath.Join(root, "bin", "kube", "kubectl"), "--namespace", s.namespace,
		"port-forward", "--address", host, "service/phoneproof-shop", port+":80")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	Eventually(func() error {
		_, err := s.sendRequest(ctx, s.http, http.MethodGet, "http://"+address+"/openapi.json", "", nil)
		return err
	}).WithContext(ctx).Should(Succeed())
}

// eventuallyHasPage starts requests until one has its page below a prefix.
func (s *shop) eventuallyHasPage(ctx context.Context, method, prefix string) request {
	GinkgoHelper()
	var r request
	Eventually(func() string {
		r = s.initRequest(ctx, method)
		return r.PageURL
	}).WithContext(ctx).Should(HavePrefix(prefix))
	return r
}
