package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// grant gives a user some verbs on a resource of the namespace.
func (w *world) grant(user string, verbs []string, group, resource string) {
	w.t.Helper()
	w.grantRules(user, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
}

// grantRules gives a user exactly some rules in the namespace, and waits until they count.
func (w *world) grantRules(user string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	// Discovery is granted to all users by the API server itself.
	w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: user}, Rules: rules})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// rightsCase is a command, and those of its rights that the case needs.
type rightsCase struct {
	args []string
	// needs selects rights by what they are for; those that are always needed are taken anyway.
	needs    []string
	change   func(*verifyv1.VerificationProject)
	prepare  func(*world)
	expected string
}

// idOfWorld stands for the id of a request that a case makes.
const idOfWorld = "ID"

// fillIn returns the arguments with the id in them.
func (w *world) fillIn(args []string) []string {
	filled := slices.Clone(args)
	for i := range filled {
		if filled[i] == idOfWorld {
			filled[i] = w.id
		}
	}
	return filled
}

var byAPI = []string{"with storage PostgreSQL", "with storage PostgreSQL, with --api-key"}

var rightsCases = map[string]rightsCase{
	"status":   {args: []string{"status", "shop"}, expected: "ready:"},
	"list all": {args: []string{"status"}, needs: []string{"without a name, and with -A in all namespaces"}, expected: "shop"},
	"list":     {args: []string{"requests", "list", "shop"}, needs: []string{"with storage Kubernetes"}, prepare: prepareRequests, expected: "pending"},
	"get":      {args: []string{"requests", "get", "shop", "pending"}, needs: []string{"with storage Kubernetes"}, prepare: prepareRequests, expected: "PENDING"},
	"declines": {args: []string{"requests", "declines", "shop"}, needs: []string{"with storage Kubernetes"}, prepare: prepareRequests, expected: "declined"},
	"skipped":  {args: []string{"requests", "skipped", "shop"}},
	"skipped on PostgreSQL": {
		args: []string{"requests", "skipped", "shop"}, change: onPostgreSQL, prepare: prepareManual, expected: "no server has taken it up yet",
	},
	"delete":   {args: []string{"requests", "delete", "shop", "verified"}, prepare: prepareRequests, expected: "deleted"},
	"list API": {args: []string{"requests", "list", "shop", "--api-key=backend"}, needs: byAPI, change: onPostgreSQL, prepare: prepareAPI, expected: "+49*********00"},
	"get API":  {args: []string{"requests", "get", "shop", idOfWorld, "--api-key=backend"}, needs: byAPI, change: onPostgreSQL, prepare: prepareAPI, expected: "+49*********00"},
	"verify":   {args: []string{"verify", "shop", number}, needs: []string{"with storage Kubernetes"}, prepare: func(w *world) { w.serveManual(accept) }, expected: "https://"},
	"verify API": {
		args: []string{"verify", "shop", number, "--api-key=backend"}, change: onPostgreSQL, expected: "https://",
		needs:   []string{"with storage PostgreSQL or a key", "with storage PostgreSQL or a key, with --api-key"},
		prepare: func(w *world) { w.createPod(); w.serveAPI() },
	},
	"cancel API": {
		args: []string{"cancel", "shop", idOfWorld, "--api-key=backend"}, change: onPostgreSQL, prepare: prepareAPI,
		needs: []string{"other requests", "other requests, with --api-key"}, expected: "canceled",
	},
	"redeliver": {
		args: []string{"redeliver", "shop", "exhausted"}, needs: []string{"why an event is not sent"}, expected: "is sent once more",
		prepare: func(w *world) { prepareRequests(w); w.lead() },
	},
	"redeliver failed": {
		args: []string{"redeliver", "shop", "--failed", "--wait"}, expected: "exhausted: delivered",
		needs:   []string{"why an event is not sent", "--wait, with storage Kubernetes", "--failed and --due, with storage Kubernetes"},
		prepare: func(w *world) { prepareRequests(w); w.lead() },
	},
	"rotate key":           {args: []string{"rotate", "api-key", "shop", "backend"}, needs: []string{"a new Secret"}, expected: "backend-2"},
	"rotate key in Secret": {args: []string{"rotate", "api-key", "shop", "backend", "--secret=shop/new"}, needs: []string{"--secret"}, expected: "backend-2"},
	"rotate webhook":       {args: []string{"rotate", "webhook-secret", "shop"}, needs: []string{"a new Secret"}, expected: "--finish"},
	"suspend":              {args: []string{"suspend", "shop"}, expected: "suspended"},
	"resume":               {args: []string{"resume", "shop"}, expected: "running"},
	"logs":                 {args: []string{"logs", "shop"}, needs: []string{"not with --operator"}, prepare: func(w *world) { w.createPod(); w.log = "a line\n" }, expected: "a line"},
	"metrics":              {args: []string{"metrics", "shop"}, prepare: func(w *world) { w.createPod(); w.serveMetrics("x 1\n") }, expected: "x 1"},
	"report":               {args: []string{"report", "shop", "--file=-"}},
}

func prepareRequests(w *world) { w.createSeveral() }

// prepareManual makes a manual request.
func prepareManual(w *world) {
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "by-hand"},
		Spec:       verifyv1.VerificationRequestSpec{ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTelegram},
	})
}

func prepareAPI(w *world) {
	w.createPod()
	service, _ := w.serveAPI()
	w.id = startMany(w, service, 1)[0]
}

// A user with exactly the rights that the help names can run a command; without any one of them it is refused, and says what is missing.
func TestRights(t *testing.T) {
	for name, tc := range rightsCases {
		t.Run(name, func(t *testing.T) {
			needed := neededRights(t, &tc)
			for missing := -1; missing < len(needed); missing++ {
				if missing >= 0 && !isChecked(needed[missing]) {
					continue
				}
				var changes []func(*verifyv1.VerificationProject)
				if tc.change != nil {
					changes = append(changes, tc.change)
				}
				w := newWorld(t, changes...)
				if tc.prepare != nil {
					tc.prepare(w)
				}
				var rules []rbacv1.PolicyRule
				for i, right := range needed {
					if i != missing {
						rules = append(rules, right.Rule())
					}
				}
				w.user = fmt.Sprintf("user-%s-%d", w.namespace, missing)
				w.grantRules(w.user, rules...)
				if missing < 0 {
					w.expectAllowed(&tc)
				} else {
					w.expectRefused(&tc, needed[missing])
				}
			}
		})
	}
}

// isChecked reports whether the test's API server is asked for a right: tests replace port-forwards and logs.
func isChecked(right plugin.Right) bool {
	return !strings.Contains(right.Resource, "/") && right.Resource != plugin.ResourceEvents
}

// expectAllowed waits for the authorizer, which learns of new roles by a watch.
func (w *world) expectAllowed(tc *rightsCase) {
	w.t.Helper()
	var printed string
	w.Eventually(func() error {
		var err error
		printed, _, err = w.run(w.fillIn(tc.args)...)
		return err
	}, 30*time.Second, time.Second).Should(Succeed())
	w.Expect(printed).To(ContainSubstring(tc.expected))
}

func (w *world) expectRefused(tc *rightsCase, missing plugin.Right) {
	w.t.Helper()
	resource, _, _ := strings.Cut(missing.Resource, ".")
	w.Eventually(func() string {
		_, _, err := w.run(append(w.fillIn(tc.args), "--request-timeout=10s")...)
		if err == nil {
			return "it was allowed"
		}
		return err.Error()
	}, 30*time.Second, time.Second).Should(And(ContainSubstring("is forbidden"), ContainSubstring(resource)), "without %s", missing)
}

// neededRights returns the declared rights that a case needs.
func neededRights(t *testing.T, tc *rightsCase) []plugin.Right {
	t.Helper()
	g := NewWithT(t)
	root := newCommandIn(&plugin.Env{Streams: genericiooptions.NewTestIOStreamsDiscard()})
	cmd, _, err := root.Find(tc.args)
	g.Expect(err).NotTo(HaveOccurred())
	var needed []plugin.Right
	reasons := map[string]bool{}
	for _, right := range plugin.RightsOf(cmd) {
		if right.For == "" && len(tc.args) > 1 || slices.Contains(tc.needs, right.For) { // status without a name needs a list alone
			needed = append(needed, right)
			reasons[right.For] = true
		}
	}
	for _, reason := range tc.needs {
		g.Expect(reasons).To(HaveKey(reason), "no right is declared for it")
	}
	return needed
}

// Every command that reads or changes anything declares its rights.
func TestRights_areDeclared(t *testing.T) {
	g := NewWithT(t)
	tested := map[string]bool{}
	root := newCommandIn(&plugin.Env{Streams: genericiooptions.NewTestIOStreamsDiscard()})
	for _, tc := range rightsCases {
		cmd, _, err := root.Find(tc.args)
		g.Expect(err).NotTo(HaveOccurred())
		tested[cmd.CommandPath()] = true
	}
	for _, cmd := range runnable(root) {
		if slices.Contains([]string{"version", "completion", "help"}, cmd.Name()) || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			continue
		}
		g.Expect(plugin.RightsOf(cmd)).NotTo(BeEmpty(), cmd.CommandPath())
		// watch does not end by itself, and the doctor lists what it may not read: its own tests take rights away.
		if cmd.Name() != "watch" && cmd.Name() != "doctor" {
			g.Expect(tested).To(HaveKey(cmd.CommandPath()))
		}
		g.Expect(cmd.Long).To(ContainSubstring("Rights in the project's namespace:"), cmd.CommandPath())
		g.Expect(cmd.Example).NotTo(BeEmpty(), cmd.CommandPath())
	}
}

func runnable(cmd *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.Runnable() {
			found = append(found, sub)
		}
		found = append(found, runnable(sub)...)
	}
	return found
}
