//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	operatorAccount = "system:serviceaccount:" + releaseNamespace + ":phoneproof-operator"
	serverAccount   = "system:serviceaccount:" + shopNamespace + ":phoneproof-shop"
)

func accessSpecs() {
	for _, account := range []struct{ name, file string }{
		{operatorAccount, "operator-can-i.txt"},
		{serverAccount, "server-can-i.txt"},
	} {
		It("has exactly the rights that "+account.file+" lists", func(ctx SpecContext) {
			list := runKubectl(ctx, "auth can-i --list --namespace "+shopNamespace+" --as "+account.name)
			var lines []string
			for _, line := range strings.Split(list, "\n")[1:] {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			slices.Sort(lines)
			compareGolden(account.file, strings.Join(slices.Compact(lines), "\n")+"\n")
		})
	}

	It("lets neither account read a Secret, start a pod's shell or act for another", func(ctx SpecContext) {
		for _, account := range []string{operatorAccount, serverAccount} {
			for _, question := range []string{
				"get secrets", "list secrets", "watch secrets", "create pods/exec", "create pods",
				"impersonate users", "escalate clusterroles", "create clusterrolebindings", "bind clusterroles/cluster-admin",
			} {
				output, err := run(ctx, "kubectl", append(strings.Fields("auth can-i "+question), "--namespace", shopNamespace, "--as", account)...)
				Expect(err).To(HaveOccurred(), "%s can %s", account, question)
				Expect(output).To(ContainSubstring("no"), "%s, %s", account, question)
			}
		}
	})

	It("admits only the named peers of a NetworkPolicy", func(ctx SpecContext) {
		patchProject(ctx, shopNamespace, `{"spec":{"networkPolicy":{}}}`)
		DeferCleanup(func(ctx SpecContext) { patchProject(ctx, shopNamespace, `{"spec":{"networkPolicy":null}}`) })
		Eventually(func() error {
			_, err := run(ctx, "kubectl", "--namespace", shopNamespace, "get", "networkpolicy/phoneproof-shop")
			return err
		}).WithContext(ctx).Should(Succeed())
		// The simulator is a pod that no policy names, so its posts to the hook must not arrive.
		r := theShop.initRequest(ctx, "WHATSAPP")
		theShop.sendMessage(ctx, r)
		reached := func() bool { return theShop.readStatus(ctx, r.ID) == "VERIFIED" }
		if arrived := waitFor(ctx, reached, time.Minute); arrived {
			Skip("NOT PROVEN: the network of this cluster (the CNI bridge plugin) does not enforce NetworkPolicies")
		}
		patchProject(ctx, shopNamespace, `{"spec":{"networkPolicy":{"ingressFrom":[{"podSelector":{"matchLabels":{"app":"simulator"}}}]}}}`)
		theShop.eventuallyVerified(ctx, r)
	})
}
