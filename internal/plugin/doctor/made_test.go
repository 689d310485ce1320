package doctor

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/simulator"
)

// made breaks a healthy project for real: by servers on loopback, by objects and controllers of Kubernetes, by the simulator, and
// where only a pod or the operator sees it, by the condition that these write.
var made = map[string]func(*patient){
	"HostNotFound": func(p *patient) {
		p.options.Resolver = emptyDNS(p.t)
		p.moveTo("https://verify.shop.test")
	},
	"AddressUnreachable": func(p *patient) {
		closed := listen(p.t)
		p.Expect(closed.Close()).To(Succeed())
		p.moveTo("https://" + closed.Addr().String())
	},
	"CertificateExpired": func(p *patient) {
		p.moveTo(p.c.ca.serve(p.t, forwardTo(p.t, p.c.server, ""), p.c.ca.issue(p.t, leaf{ended: true})))
	},
	"CertificateOfOtherName": func(p *patient) {
		p.moveTo(p.c.ca.serve(p.t, forwardTo(p.t, p.c.server, ""), p.c.ca.issue(p.t, leaf{name: "other.example.com"})))
	},
	"CertificateNotTrusted": func(p *patient) {
		p.moveTo(p.c.ca.serve(p.t, forwardTo(p.t, p.c.server, ""), newAuthority(p.t).issue(p.t, leaf{})))
	},
	"PathNotForwarded": func(p *patient) { // the proxy forwards / and the project says /shop
		mux := http.NewServeMux()
		mux.Handle("/openapi.json", forwardTo(p.t, p.c.server, ""))
		p.moveTo(p.c.ca.serve(p.t, mux, p.c.ca.issue(p.t, leaf{})) + "/shop")
	},
	"LoginRequired": func(p *patient) {
		p.serve(http.RedirectHandler("https://login.example.com/start", http.StatusFound))
	},
	"ProxyFails": func(p *patient) {
		p.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no upstream", http.StatusBadGateway) }))
	},
	"OtherServer": func(p *patient) {
		p.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"info":{"title":"PhoneProof"}}`))
		}))
	},

	"ClockOfThisMachine": func(p *patient) { p.options.Now = func() time.Time { return time.Now().Add(time.Hour) } },
	"ClockOfPods": func(p *patient) {
		p.create(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: leader.ProjectLease(p.project.Name)},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("pod"), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-5 * time.Minute)))},
		})
	},

	"SecretMissing":          func(p *patient) { p.setSecret("bot", nil) },
	"WebhookSecretMalformed": func(p *patient) { p.setSecret("webhook", []byte("whsec_canary?")) },
	"SecretInvalid":          func(p *patient) { p.setSecret("api-key", []byte("canary")) },
	"SecretWithBlanks":       func(p *patient) { p.setSecret("secret", []byte(appSecret+"\n\n")) },
	"SigningSecretUnusable": func(p *patient) {
		p.config = p.newReader()
		p.setCondition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonSigningSecretMissing)
	},

	"OperatorAbsent": func(p *patient) {
		p.c.setOperatorReady(p.t, 0)
		p.t.Cleanup(func() { p.c.setOperatorReady(p.t, 1) })
	},
	"OperatorStuck": func(p *patient) {
		p.c.setOperatorPod(p.t, corev1.ContainerStatus{Name: "operator", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
		}})
	},
	"RolesMissing":    func(p *patient) { p.c.restrictOperator(p.t, p.namespace) },
	"NamespaceUnread": func(p *patient) { p.c.restrictOperator(p.t, p.namespace) },
	"OperatorBehind": func(p *patient) {
		p.project.Spec.DisplayName = "Ada's Books"
		p.Expect(p.c.admin.Update(p.t.Context(), p.project)).To(Succeed())
	},
	"CRDsOlder": func(p *patient) { p.dropField("spec", "displayName") },

	"QuotaExceeded": func(p *patient) {
		hard := corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("100Mi")}
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
		}
		p.create(quota)
		quota.Status = corev1.ResourceQuotaStatus{ // it counts from then on
			Hard: hard, Used: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("0")},
		}
		p.Expect(p.c.admin.Status().Update(p.t.Context(), quota)).To(Succeed())
		p.runDeployment(nil)
	},
	"LimitRangeRefuses": func(p *patient) {
		p.create(&corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
			}}},
		})
		p.runDeployment(nil)
	},
	"PodsRefused": func(p *patient) {
		namespace := newNamespace(p.namespace)
		p.Expect(p.c.admin.Get(p.t.Context(), client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
		p.Expect(p.c.admin.Update(p.t.Context(), namespace)).To(Succeed())
		p.runDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true })
	},
	"ImageNotPulled": func(p *patient) { p.addPod(waiting("ErrImagePull")) },
	"PodsUnschedulable": func(p *patient) {
		p.addPod(podState(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			s.Conditions[0].Message = "0/3 nodes are available"
		}))
	},
	"PodsCrash":      func(p *patient) { p.addPod(waiting("CrashLoopBackOff")) },
	"PodsNotStarted": func(p *patient) { p.addPod(waiting("CreateContainerError")) },
	"PodsNotReady": func(p *patient) {
		p.addPod(podState(func(s *corev1.PodStatus) {
			s.Phase = corev1.PodRunning
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
		}))
	},
	"PolicyClosesAPI":    func(p *patient) { p.denyAll(networkingv1.PolicyTypeIngress) },
	"PolicyClosesEgress": func(p *patient) { p.denyAll(networkingv1.PolicyTypeEgress) },

	"AppSecretOfOtherApp": func(p *patient) { p.ask().setSecret("secret", []byte("sim_4915112345670:canary-other")) },
	"AppNotSubscribed": func(p *patient) {
		p.ask().Expect(p.c.sim.AddWhatsApp(simulator.WhatsAppAccount{
			PhoneNumberID: "1234567890", Subscribed: new(false),
		})).To(Succeed())
	},
	"AccessTokenRejected": func(p *patient) {
		p.ask().Expect(p.callSimulator(http.MethodPost, "/sim/faults", `{"platform": "whatsapp", "method": "phone_number", "status": 401, "times": 9}`)).
			To(Equal(http.StatusNoContent))
	},
	"NumberOfOtherAccount": func(p *patient) {
		p.ask().edit(func(s *verifyv1.VerificationProjectSpec) { s.WhatsApp.PhoneNumber = "+4915112345699" })
	},
	"BotTokenRejected": func(p *patient) {
		const revoked = "sim_ada_books_bot:canary-revoked"
		p.ask().setSecret("bot", []byte(revoked))
		p.Expect(p.callSimulator(http.MethodPost, "/sim/revoke", `{"credential": "`+revoked+`"}`)).To(Equal(http.StatusNoContent))
	},
	"TokenOfOtherBot": func(p *patient) { p.ask().setSecret("bot", []byte("sim_other_books_bot:canary")) },
	"CallbackTaken": func(p *patient) {
		p.ask().setSecret("bot", []byte("sim_taken_books_bot:canary"))
		p.edit(func(s *verifyv1.VerificationProjectSpec) { s.Telegram.BotUsername = "taken_books_bot" })
		p.Expect(p.c.sim.AddTelegram(simulator.TelegramAccount{Username: "taken_books_bot", Callback: "https://other.example.com/hook"})).To(Succeed())
	},
	"CallbackNotRegistered": func(p *patient) {
		p.ask().edit(func(s *verifyv1.VerificationProjectSpec) { s.Telegram.Updates = verifyv1.TelegramUpdatesWebhook })
	},
	"CallbackUnreachable": byCondition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonCallbackUnreachable),
	"PlatformUnreachable": func(p *patient) {
		closed := listen(p.t)
		p.Expect(closed.Close()).To(Succeed())
		p.ask().options.SimulatorURL = "http://" + closed.Addr().String()
	},
	"PlatformFails": func(p *patient) {
		p.ask().Expect(p.callSimulator(http.MethodPost, "/sim/faults", `{"platform": "telegram", "method": "getMe", "status": 500, "times": 9}`)).
			To(Equal(http.StatusNoContent))
	},
	"Silent": byCondition(verifyv1.ConditionSilent, metav1.ConditionTrue, verifyv1.ReasonNoMessages),

	"GatewayRefuses":    byCondition(gatewayReady, metav1.ConditionFalse, verifyv1.ReasonSenderRejected),
	"GatewayBalanceLow": byCondition(gatewayReady, metav1.ConditionFalse, verifyv1.ReasonBalanceEmpty),
	"TemplateUnfit":     byCondition(codesReady, metav1.ConditionFalse, verifyv1.ReasonTemplateWrongCategory),
	"TemplateUnchecked": byCondition(codesReady, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked),
	"CodesHalfUsed":     byCondition(verifyv1.ConditionCodesLimited, metav1.ConditionTrue, verifyv1.ReasonCodesHalfUsed),

	"DatabaseUnreachable": func(p *patient) {
		p.edit(func(s *verifyv1.VerificationProjectSpec) {
			s.Storage = verifyv1.Storage{
				Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop-db", Key: "uri"}},
			}
		})
		p.setCondition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageUnreachable)
	},
	"DatabaseRefuses":        byCondition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageRejected),
	"StoreUnreachable":       byCondition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageUnreachable),
	"StoreFull":              byCondition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageFull),
	"ReceiverFails":          byCondition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonReceiverFailing),
	"ReceiverAddressRefused": byCondition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonAddressRefused),
	"LimitsContradict": func(p *patient) {
		p.edit(func(s *verifyv1.VerificationProjectSpec) {
			s.RateLimit.PerKey = &verifyv1.Rate{Requests: 600, Period: "1m"}
		})
	},
	"HostWaits": func(p *patient) {
		p.setCondition(verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		meta.FindStatusCondition(p.project.Status.Conditions, verifyv1.ConditionReady).Message = `spec.expose: the host name "a" waits`
		p.Expect(p.c.admin.Status().Update(p.t.Context(), p.project)).To(Succeed())
	},
	"TestEventsOff":     byCondition(verifyv1.ConditionTestEventsOff, metav1.ConditionTrue, verifyv1.ReasonTestSecretUnset),
	"RolloutStuck":      byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonRolloutStuck),
	"NoPodAnswers":      byCondition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable),
	"Suspended":         func(p *patient) { p.edit(func(s *verifyv1.VerificationProjectSpec) { s.Suspend = new(true) }) },
	"NotReported":       byCondition(verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported),
	"AccountInUse":      byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse),
	"HostInUse":         byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse),
	"NotPermitted":      byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted),
	"ObjectInTheWay":    byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonConflict),
	"ChildRejected":     byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonChildRejected),
	"InvalidSpec":       byCondition(verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonInvalidSpec),
	"GatewayAPIMissing": byCondition(verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonGatewayAPIMissing),
	"Shared":            byCondition(verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonAccountShared),
	"NotRolledOut": func(p *patient) { // without the right to read Secrets, too
		p.config = p.newReader()
		p.setCondition(verifyv1.ConditionSecretsReady, metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout)
	},
}

// byCondition writes what only a pod or the operator finds out.
func byCondition(conditionType string, status metav1.ConditionStatus, reason string) func(*patient) {
	return func(p *patient) { p.setCondition(conditionType, status, reason) }
}

// ask has the platforms asked.
func (p *patient) ask() *patient {
	p.options.AskPlatforms = true
	return p
}

// moveTo changes the address of the project.
func (p *patient) moveTo(address string) {
	p.t.Helper()
	p.edit(func(s *verifyv1.VerificationProjectSpec) { s.BaseURL = address })
}

// serve has another server answer at the address of the project.
func (p *patient) serve(handler http.Handler) {
	p.t.Helper()
	p.moveTo(p.c.ca.serve(p.t, handler, p.c.ca.issue(p.t, leaf{})))
}

// newReader returns a user who may read the project and nothing else.
func (p *patient) newReader() *rest.Config {
	p.t.Helper()
	config, err := p.c.plane.ServiceAccount(p.namespace, "reader")
	p.Expect(err).NotTo(HaveOccurred())
	p.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"phoneproof.dev"}, Resources: []string{"verificationprojects"}, Verbs: []string{"get", "list"}}},
	})
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: "reader"}},
	})
	awaitRights(p.t.Context(), p.WithT, config, p)
	return config
}

// dropField takes a field out of the CRD, as an older one has it, until the test ends.
func (p *patient) dropField(part, field string) {
	p.t.Helper()
	read := func() *unstructured.Unstructured {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		p.Expect(p.c.admin.Get(p.t.Context(), client.ObjectKey{Name: "verificationprojects.phoneproof.dev"}, crd)).To(Succeed())
		return crd
	}
	crd := read()
	before := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", part, "properties", field)
	p.Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
	p.Expect(p.c.admin.Update(p.t.Context(), crd)).To(Succeed())
	p.t.Cleanup(func() {
		before.SetResourceVersion("")
		before.SetManagedFields(nil)
		p.Expect(p.c.admin.Patch(context.WithoutCancel(p.t.Context()), crd, client.RawPatch("application/merge-patch+json", mustEncode(before)))).To(Succeed())
	})
}

// runDeployment creates the project's Deployment as the operator does, and has Kubernetes' own controllers work on it until it reports
// that they cannot.
func (p *patient) runDeployment(change func(*appsv1.Deployment)) {
	p.t.Helper()
	p.Expect(p.c.plane.StartControllers("deployment-controller", "replicaset-controller", "resourcequota-controller")).To(Succeed())
	p.t.Cleanup(func() {
		p.Expect(p.c.plane.StopControllers()).To(Succeed())
		p.c.setOperatorReady(p.t, 1) // they have found that it has no pods
	})
	applied := render.Deployment(p.project, render.Options{Image: "phoneproof:dev"})
	p.Expect(p.c.admin.Apply(p.t.Context(), applied, client.FieldOwner("phoneproof-operator"))).To(Succeed())
	key := client.ObjectKey{Namespace: p.namespace, Name: render.Name(p.project.Name)}
	var d appsv1.Deployment
	if change != nil {
		p.Eventually(func() error {
			p.Expect(p.c.admin.Get(p.t.Context(), key, &d)).To(Succeed())
			change(&d)
			return p.c.admin.Update(p.t.Context(), &d)
		}).WithTimeout(time.Minute).Should(Succeed())
	}
	p.Eventually(func() []appsv1.DeploymentCondition {
		p.Expect(p.c.admin.Get(p.t.Context(), key, &d)).To(Succeed())
		return d.Status.Conditions
	}).WithTimeout(2 * time.Minute).Should(ContainElement(HaveField("Type", appsv1.DeploymentReplicaFailure)))
}

// addPod creates a pod of the project, whose status the test writes as scheduler and kubelet do.
func (p *patient) addPod(change func(*Facts)) {
	p.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "phoneproof-books-1", Labels: render.Labels(p.project)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "phoneproof:dev"}}},
	}
	p.create(pod)
	f := &Facts{Pods: knownValue([]corev1.Pod{*pod})}
	change(f)
	for i := range f.Pods.Value[0].Status.ContainerStatuses {
		f.Pods.Value[0].Status.ContainerStatuses[i].Name = "server"
	}
	p.Expect(p.c.admin.Status().Update(p.t.Context(), &f.Pods.Value[0])).To(Succeed())
}

// denyAll creates the policy that many clusters begin with.
func (p *patient) denyAll(direction networkingv1.PolicyType) {
	p.t.Helper()
	p.create(&networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "default-deny"},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{direction}},
	})
}
