package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// healthyFacts are those of a project at which nothing is wrong, all of them read.
func healthyFacts() *Facts {
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	project := &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "books", Generation: 3, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: verifyv1.VerificationProjectSpec{
			BaseURL: "https://verify.example.com/books",
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref("api-key")}},
			Webhook: &verifyv1.Webhook{URL: "https://shop.example.com/hook", SecretRef: new(ref("webhook"))},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: "+4915112345670", PhoneNumberID: "1234567890", AccessTokenSecretRef: ref("token"), AppSecretRef: ref("secret"),
			},
			Telegram: &verifyv1.Telegram{BotUsername: "ada_books_bot", BotTokenSecretRef: ref("bot")},
		},
		Status: verifyv1.VerificationProjectStatus{ObservedGeneration: 3},
	}
	for conditionType, reason := range map[string]string{
		verifyv1.ConditionReady: verifyv1.ReasonReady, verifyv1.ConditionAvailable: verifyv1.ReasonPodsAvailable,
		verifyv1.ConditionSecretsReady: verifyv1.ReasonSecretsRead, verifyv1.ConditionStorageReady: verifyv1.ReasonStorageReachable,
		whatsAppReady: verifyv1.ReasonRegistered, telegramReady: verifyv1.ReasonRegistered,
		verifyv1.ConditionWebhookHealthy: verifyv1.ReasonNoFailures,
	} {
		setCondition(project, conditionType, metav1.ConditionTrue, reason)
	}
	ours := &Answer{Status: 200, Ours: true}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "books-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	return &Facts{
		Project: project, Now: noon, Settle: time.Minute,
		ServerOffset: knownValue(3 * time.Second), PodOffset: knownValue(-3 * time.Second),
		Deployment: knownValue(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "phoneproof-books"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2},
		}),
		Pods: knownValue([]corev1.Pod{pod, pod}), Quotas: knownValue([]corev1.ResourceQuota{}), Ranges: knownValue([]corev1.LimitRange{}),
		Policies:      knownValue([]networkingv1.NetworkPolicy{}),
		Operators:     knownValue([]appsv1.Deployment{{Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}}),
		MissingFields: knownValue[[]string](nil), Secrets: knownValue(SecretFacts{}), Callbacks: knownValue(CallbackCounts{Accepted: 9}),
		Address: knownValue(AddressFacts{
			HookPath: "/hooks/whatsapp", Description: ours, Hook: &Answer{Status: 403, Ours: true},
			Certificate: &CertificateFacts{NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour), Names: []string{"verify.example.com"}},
		}),
	}
}

// setCondition sets a condition that was judged by the present spec, long ago.
func setCondition(p *verifyv1.VerificationProject, conditionType string, status metav1.ConditionStatus, reason string) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: "because", ObservedGeneration: p.Generation,
		LastTransitionTime: metav1.NewTime(noon.Add(-30 * time.Minute)),
	})
}

// condition breaks a project by a condition.
func condition(conditionType string, status metav1.ConditionStatus, reason string) func(*Facts) {
	return func(f *Facts) { setCondition(f.Project, conditionType, status, reason) }
}

// stalled breaks a project by the condition Stalled.
func stalled(reason string) func(*Facts) {
	return condition(verifyv1.ConditionStalled, metav1.ConditionTrue, reason)
}

// address breaks what was found at the address.
func address(change func(*AddressFacts)) func(*Facts) {
	return func(f *Facts) { change(&f.Address.Value) }
}

// refusal has the API server refuse to create pods.
func refusal(message string) func(*Facts) {
	return func(f *Facts) {
		f.Deployment.Value.Status = appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message},
		}}
	}
}

// podState breaks both pods.
func podState(change func(*corev1.PodStatus)) func(*Facts) {
	return func(f *Facts) {
		for i := range f.Pods.Value {
			f.Pods.Value[i].Status = corev1.PodStatus{Phase: corev1.PodPending}
			change(&f.Pods.Value[i].Status)
		}
	}
}

func waiting(reason string) func(*Facts) {
	return podState(func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{
			RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
		}}
	})
}

func problem(p settings.Problem) func(*Facts) {
	return func(f *Facts) { f.Secrets.Value.Problems = []settings.Problem{p} }
}

// cases break healthy facts, each so that one finding results. The evidence must hold the text.
var cases = map[string]struct {
	breakFacts func(*Facts)
	evidence   string
}{
	"HostNotFound":           {address(func(a *AddressFacts) { *a = AddressFacts{HostMissing: true} }), "no record of verify.example.com"},
	"AddressUnreachable":     {address(func(a *AddressFacts) { *a = AddressFacts{Unreachable: "no answer in time"} }), "no answer in time"},
	"CertificateExpired":     {address(func(a *AddressFacts) { a.Certificate.NotAfter = noon.Add(-time.Second) }), "ended at 2026-11-25T11:59:59Z"},
	"CertificateOfOtherName": {address(func(a *AddressFacts) { a.Certificate.OtherName = true }), "it is for verify.example.com"},
	"CertificateNotTrusted":  {address(func(a *AddressFacts) { a.Certificate.Untrusted, a.Certificate.Issuer = true, "CN=Home" }), "signed by CN=Home"},
	"PathNotForwarded": {address(func(a *AddressFacts) {
		a.Description, a.Hook, a.Root = &Answer{Status: 200, Ours: true}, &Answer{Status: 404}, nil
	}), "BASEURL/hooks/whatsapp answers 404"},
	"LoginRequired": {address(func(a *AddressFacts) {
		a.Description, a.Hook = &Answer{Status: 302, Location: "login.example.com"}, &Answer{Status: 302}
	}), "redirects (302) to login.example.com"},
	"ProxyFails":  {address(func(a *AddressFacts) { a.Description, a.Hook = &Answer{Status: 503}, &Answer{Status: 503} }), "answers 503"},
	"OtherServer": {address(func(a *AddressFacts) { a.Description, a.Hook = &Answer{Status: 200}, &Answer{Status: 200} }), "/openapi.json answers 200"},

	"ClockOfThisMachine": {func(f *Facts) { f.ServerOffset.Value = 11 * time.Second }, "this machine is 11s ahead"},
	"ClockOfPods":        {func(f *Facts) { f.PodOffset.Value = -2 * time.Minute }, "lease is 2m0s behind"},

	"SecretMissing": {problem(settings.Problem{
		Field: "spec.telegram.botTokenSecretRef", Secret: "shop", Key: "bot", Reason: settings.ReasonMissing,
	}), "Secret shop, key bot is missing"},
	"WebhookSecretMalformed": {problem(settings.Problem{
		Field: fieldWebhookSecret, Secret: "shop", Key: "webhook", Reason: settings.ReasonNotBase64,
	}), "not base64 after whsec_"},
	"SecretInvalid": {problem(settings.Problem{
		Field: "spec.whatsapp.appSecretRef", Secret: "shop", Key: "secret", Reason: settings.ReasonPlaceholder,
	}), "is a placeholder"},
	"SecretWithBlanks": {func(f *Facts) {
		const field = "spec.whatsapp.appSecretRef"
		problem(settings.Problem{Field: field, Secret: "shop", Key: "secret", Reason: settings.ReasonInvalid})(f)
		f.Secrets.Value.Blanks = []settings.SecretField{{Field: field, Ref: verifyv1.SecretKeyRef{Name: "shop", Key: "secret"}}}
	}, "spec.whatsapp.appSecretRef: Secret shop, key secret"},
	"SigningSecretUnusable": {func(f *Facts) {
		f.Secrets = Known[SecretFacts]{}
		condition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonSigningSecretMissing)(f)
	}, "because"},

	"OperatorStuck": {func(f *Facts) {
		f.OperatorPods.Value = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "phoneproof-operator-1"}}, f.Pods.Value[0]}
		own := &Facts{Pods: Known[[]corev1.Pod]{Value: f.OperatorPods.Value[:1]}}
		waiting("ErrImagePull")(own)
	}, "the image of the pods cannot be pulled: pod phoneproof-operator-1: ErrImagePull  (1 of 2 pods)"},
	"OperatorAbsent":  {func(f *Facts) { f.Project.Status.ObservedGeneration = -1 }, "was never observed"},
	"NamespaceUnread": {func(f *Facts) { f.Refused.Value = []string{"it may not list"} }, "it may not list"},
	"RolesMissing":    {func(f *Facts) { f.MissingRoles.Value = []string{"there is no Role"} }, "there is no Role"},
	"OperatorBehind":  {func(f *Facts) { f.Project.Status.ObservedGeneration = 2 }, "observedGeneration is 2, metadata.generation is 3"},
	"CRDsOlder":       {func(f *Facts) { f.MissingFields.Value = strings.Fields("a b c d e f g") }, "they lack a, b, c, d, e and 2 more"},

	"QuotaExceeded":     {refusal(`pods "x" is forbidden: exceeded quota: small, requested: pods=1`), "exceeded quota: small"},
	"LimitRangeRefuses": {refusal("maximum memory usage per Container is 32Mi, but limit is 256Mi"), "per Container is 32Mi"},
	"PodsRefused":       {refusal("violates PodSecurity"), "violates PodSecurity"},
	"ImageNotPulled":    {waiting("ImagePullBackOff"), "pod books-1: ImagePullBackOff  (2 of 2 pods)"},
	"PodsUnschedulable": {podState(func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes",
		}}
	}), "0/3 nodes"},
	"PodsCrash":      {waiting("CrashLoopBackOff"), "ended 4 times, last with the code 137, OOMKilled"},
	"PodsNotStarted": {waiting("CreateContainerConfigError"), "CreateContainerConfigError"},
	"PodsNotReady": {podState(func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
	}), "ContainersNotReady"},

	"PolicyClosesAPI":    {policy(networkingv1.PolicyTypeIngress), "no rule of deny lets TCP 8080 in"},
	"PolicyClosesEgress": {policy(networkingv1.PolicyTypeEgress, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolUDP)}), "TCP 443 out"},

	"AppSecretOfOtherApp":   {func(f *Facts) { f.Callbacks.Value = CallbackCounts{Refused: 3, Started: 1} }, "none was signed with the secret and 3 with another"},
	"AppNotSubscribed":      {condition(whatsAppReady, metav1.ConditionFalse, verifyv1.ReasonNotSubscribed), "because"},
	"AccessTokenRejected":   {condition(whatsAppReady, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected), "because"},
	"NumberOfOtherAccount":  {condition(whatsAppReady, metav1.ConditionFalse, verifyv1.ReasonAccountMismatch), "because"},
	"BotTokenRejected":      {condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected), "because"},
	"TokenOfOtherBot":       {condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonAccountMismatch), "because"},
	"CallbackTaken":         {condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonCallbackTaken), "TelegramReady is False, CallbackTaken"},
	"CallbackUnreachable":   {condition(whatsAppReady, metav1.ConditionFalse, verifyv1.ReasonCallbackUnreachable), "because"},
	"PlatformUnreachable":   {condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonPlatformUnreachable), "because"},
	"PlatformFails":         {condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonPlatformFailing), "because"},
	"CallbackNotRegistered": {asked(metav1.ConditionUnknown, verifyv1.ReasonRegistering), "(asked just now)"},
	"Silent":                {condition(verifyv1.ConditionSilent, metav1.ConditionTrue, verifyv1.ReasonNoMessages), "because"},

	"TemplateUnfit":     {condition(codesReady, metav1.ConditionFalse, verifyv1.ReasonTemplateWithoutButton), "because"},
	"TemplateUnchecked": {condition(codesReady, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked), "because"},
	"GatewayRefuses":    {condition(gatewayReady, metav1.ConditionFalse, verifyv1.ReasonSenderRejected), "because"},
	"GatewayBalanceLow": {condition(gatewayReady, metav1.ConditionFalse, verifyv1.ReasonBalanceEmpty), "because"},
	"CodesHalfUsed":     {condition(verifyv1.ConditionCodesLimited, metav1.ConditionTrue, verifyv1.ReasonCodesHalfUsed), "because"},

	"DatabaseUnreachable": {func(f *Facts) {
		f.Project.Spec.Storage.Type = verifyv1.StoragePostgreSQL
		condition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageUnreachable)(f)
	}, "because"},
	"DatabaseRefuses":        {condition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageRejected), "because"},
	"StoreUnreachable":       {condition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageUnreachable), "because"},
	"StoreFull":              {condition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageFull), "because"},
	"ReceiverFails":          {condition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonReceiverFailing), "because"},
	"ReceiverAddressRefused": {condition(verifyv1.ConditionWebhookHealthy, metav1.ConditionFalse, verifyv1.ReasonAddressRefused), "because"},
	"LimitsContradict": {func(f *Facts) {
		f.Project.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: 600, Period: "1m"}
	}, "perKey"},
	"HostWaits": {func(f *Facts) {
		condition(verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)(f)
		f.Project.Status.Conditions[len(f.Project.Status.Conditions)-1].Message = `spec.expose: the host name "a.example.com" waits`
	}, "a.example.com"},
	"TestEventsOff": {condition(verifyv1.ConditionTestEventsOff, metav1.ConditionTrue, verifyv1.ReasonTestSecretUnset), "because"},
	"RolloutStuck":  {stalled(verifyv1.ReasonRolloutStuck), "because"},
	"NoPodAnswers":  {condition(verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable), "because"},
	"Suspended":     {func(f *Facts) { f.Project.Spec.Suspend = new(true) }, "spec.suspend is true"},
	"NotReported":   {condition(verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported), "because"},
	"AccountInUse":  {stalled(verifyv1.ReasonAccountInUse), "because"},
	"HostInUse":     {stalled(verifyv1.ReasonHostInUse), "because"},
	"NotPermitted":  {stalled(verifyv1.ReasonNotPermitted), "because"}, "ObjectInTheWay": {stalled(verifyv1.ReasonConflict), "because"},
	"ChildRejected": {stalled(verifyv1.ReasonChildRejected), "because"}, "InvalidSpec": {stalled(verifyv1.ReasonInvalidSpec), "because"},
	"GatewayAPIMissing": {condition(verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonGatewayAPIMissing), "because"},
	"Shared":            {condition(verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonHostShared), "because"},
	"NotRolledOut":      {condition(verifyv1.ConditionSecretsReady, metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout), "because"},
}

// policy restricts the project's pods to the ports in a direction.
func policy(direction networkingv1.PolicyType, ports ...networkingv1.NetworkPolicyPort) func(*Facts) {
	return func(f *Facts) {
		p := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"}}
		p.Spec.PolicyTypes = []networkingv1.PolicyType{direction}
		if len(ports) > 0 {
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{Ports: ports}}
			p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: ports}}
		}
		f.Policies.Value = append(f.Policies.Value, p)
	}
}

// asked has Telegram answer with a condition.
func asked(status metav1.ConditionStatus, reason string) func(*Facts) {
	return func(f *Facts) {
		f.Asked = knownValue(AskedFacts{Conditions: []metav1.Condition{{Type: telegramReady, Status: status, Reason: reason}}})
	}
}

// TestExamine_findsEach breaks one thing at a time and finds that and nothing else.
func TestExamine_findsEach(t *testing.T) {
	g := NewWithT(t)
	for _, c := range allChecks() {
		g.Expect(cases).To(HaveKey(c.name), "each check has a case")
	}
	g.Expect(cases).To(HaveLen(len(allChecks())))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := healthyFacts()
			c.breakFacts(f)
			r := Examine(f)
			g.Expect(r.Findings).To(HaveLen(1))
			g.Expect(r.Healthy).To(BeFalse())
			g.Expect(r.Findings[0].Check).To(Equal(name))
			g.Expect(r.Findings[0].Evidence).To(ContainSubstring(c.evidence))
			g.Expect(r.Findings[0].Remedy).NotTo(MatchRegexp("NAMESPACE|PROJECT|SECRET|KEY="), "the names stand in it")
		})
	}
}

func TestExamine_findsNothingAtAHealthyProject(t *testing.T) {
	g := NewWithT(t)
	r := Examine(healthyFacts())
	g.Expect(r).To(Equal(Report{Namespace: "shop", Name: "books", Healthy: true, Findings: []Finding{}, NotChecked: []NotChecked{}}))
	g.Expect(Examine(&Facts{Project: healthyFacts().Project, Now: noon}).Healthy).To(BeTrue(), "nothing but the project was read")
}

// TestChecks_nameARemedy checks that each remedy has a command, a field or a flag, and that names are stable words.
func TestChecks_nameARemedy(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, c := range allChecks() {
		g.Expect(c.remedy).To(MatchRegexp("`(kubectl |curl |phoneproof |timedatectl |spec\\.|--)[^`]*`"), c.name)
		g.Expect(c.name).To(MatchRegexp("^[A-Z][A-Za-z]+$"))
		g.Expect(seen).NotTo(HaveKey(c.name))
		seen[c.name] = true
	}
	g.Expect(len(seen)).To(BeNumerically(">=", 20))
}

// TestConditions_areAllFound checks that no reason of a condition that means trouble is left out.
func TestConditions_areAllFound(t *testing.T) {
	g := NewWithT(t)
	for reason, why := range unfound {
		g.Expect(why).NotTo(BeEmpty(), reason)
	}
	for _, reason := range documentedReasons(t) {
		found := false
		for conditionType, status := range reason.as {
			f := healthyFacts()
			f.Secrets, f.Callbacks = Known[SecretFacts]{}, Known[CallbackCounts]{}
			setCondition(f.Project, conditionType, status, reason.name)
			found = found || !Examine(f).Healthy
		}
		if _, none := unfound[reason.name]; none {
			g.Expect(found).To(BeFalse(), "%s is found: take it out of the list", reason.name)
			continue
		}
		g.Expect(found).To(BeTrue(), "no check finds %s", reason.name)
	}
}

func TestQuota_withoutRoomForTheMissingPod(t *testing.T) {
	g := NewWithT(t)
	f := healthyFacts()
	d := f.Deployment.Value
	d.Status.Replicas = 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}}}
	quota := func(name corev1.ResourceName, hard, used string) corev1.ResourceQuota {
		return corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: string(name)},
			Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{name: resource.MustParse(hard)}, Used: corev1.ResourceList{name: resource.MustParse(used)},
			},
		}
	}
	f.Quotas.Value = []corev1.ResourceQuota{
		quota("limits.memory", "512Mi", "257Mi"), quota("requests.memory", "512Mi", "448Mi"), quota("pods", "1", "1"), quota("services", "1", "1"),
	}
	g.Expect(evidenceOf(f, "QuotaExceeded")).To(Equal([]string{
		"ResourceQuota limits.memory: limits.memory of 512Mi are used, and a pod needs 256Mi",
		"ResourceQuota pods: pods of 1 are used, and a pod needs 1",
	}))
	d.Status.Replicas = 2
	g.Expect(evidenceOf(f, "QuotaExceeded")).To(BeEmpty(), "no pod is missing")
}

// A namespace that came back is served after a restart, which no change of --watch-namespace brings.
func TestOperatorAbsent_leavesAnUnreadNamespaceToItsCheck(t *testing.T) {
	g, f := NewWithT(t), healthyFacts()
	cases["OperatorAbsent"].breakFacts(f)
	cases["NamespaceUnread"].breakFacts(f)
	g.Expect(evidenceOf(f, "OperatorAbsent")).To(BeEmpty())
	g.Expect(evidenceOf(f, "NamespaceUnread")).To(HaveLen(1))
}

// evidenceOf returns the evidence of one check.
func evidenceOf(f *Facts, name string) []string {
	var found []string
	for _, finding := range Examine(f).Findings {
		if finding.Check == name {
			found = append(found, finding.Evidence)
		}
	}
	return found
}

func TestPolicies_thatLetThePortsThrough(t *testing.T) {
	tcp := corev1.ProtocolTCP
	for name, c := range map[string]struct {
		port networkingv1.NetworkPolicyPort
		open bool
	}{
		"the number":           {networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(8080))}, true},
		"the name":             {networkingv1.NetworkPolicyPort{Protocol: &tcp, Port: new(intstr.FromString("http"))}, true},
		"a range":              {networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(8000)), EndPort: new(int32(9000))}, true},
		"another range":        {networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(8000)), EndPort: new(int32(8079))}, false},
		"another number":       {networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(8081))}, false},
		"another name":         {networkingv1.NetworkPolicyPort{Port: new(intstr.FromString("health"))}, false},
		"another protocol":     {networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(8080))}, false},
		"all of that protocol": {networkingv1.NetworkPolicyPort{Protocol: &tcp}, true},
	} {
		f := healthyFacts()
		policy(networkingv1.PolicyTypeIngress)(f)
		policy(networkingv1.PolicyTypeIngress, c.port)(f)
		NewWithT(t).Expect(evidenceOf(f, "PolicyClosesAPI")).To(HaveLen(map[bool]int{true: 0, false: 1}[c.open]), name)
	}
	f := healthyFacts()
	policy(networkingv1.PolicyTypeIngress)(f)
	f.Policies.Value[0].Spec.PodSelector.MatchLabels = map[string]string{verifyv1.ProjectLabel: "another"}
	NewWithT(t).Expect(Examine(f).Findings).To(BeEmpty(), "a policy of other pods")
}

func TestExamine_preferWhatPlatformsAnswer(t *testing.T) {
	g := NewWithT(t)
	f := healthyFacts()
	condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected)(f)
	asked(metav1.ConditionTrue, verifyv1.ReasonRegistered)(f)
	g.Expect(Examine(f).Healthy).To(BeTrue(), "the status is older")
	f.Asked.Value.OtherAppSecret = true
	g.Expect(evidenceOf(f, "AppSecretOfOtherApp")).To(HaveLen(1))
	f = healthyFacts()
	condition(telegramReady, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected)(f)
	f.Project.Generation = 4
	g.Expect(evidenceOf(f, "BotTokenRejected")).To(ConsistOf(ContainSubstring("(of generation 3, the project is at 4)")))
}

// TestPods_mayTakeTheirTimeToStart looks at pods in the middle of a rollout, by a clock that is ahead of the API server's.
func TestPods_mayTakeTheirTimeToStart(t *testing.T) {
	g := NewWithT(t)
	f := healthyFacts()
	f.ServerOffset.Value = 5 * time.Second
	notReadyFor := func(d time.Duration) {
		f.Pods.Value[0].Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			LastTransitionTime: metav1.NewTime(noon.Add(-f.ServerOffset.Value - d)),
		}}
	}
	notReadyFor(f.Settle - time.Second)
	g.Expect(Examine(f).Findings).To(BeEmpty())
	notReadyFor(f.Settle)
	g.Expect(evidenceOf(f, "PodsNotReady")).To(ConsistOf(ContainSubstring("(1 of 2 pods)")))
}

// TestAppSecret_isNotJudgedByStrangers has the posts of scanners and of attackers, who can make up signatures and start nothing.
func TestAppSecret_isNotJudgedByStrangers(t *testing.T) {
	for name, counts := range map[string]CallbackCounts{
		"one made-up signature":                        {Refused: 1, Started: 9},
		"two made-up signatures":                       {Refused: 2, Started: 9},
		"many, and no user began":                      {Refused: 1_000_000},
		"many, and Meta's messages are accepted":       {Refused: 1_000_000, Accepted: 1, Started: 9},
		"posts without a signature, which count apart": {Started: 9},
	} {
		f := healthyFacts()
		f.Callbacks.Value = counts
		NewWithT(t).Expect(evidenceOf(f, "AppSecretOfOtherApp")).To(BeEmpty(), name)
	}
	f := healthyFacts()
	f.Callbacks.Value = CallbackCounts{Refused: 3, Started: 1}
	f.Asked = knownValue(AskedFacts{})
	NewWithT(t).Expect(evidenceOf(f, "AppSecretOfOtherApp")).To(BeEmpty(), "Meta knows better")
}

func TestAddress_ofAnotherPath(t *testing.T) {
	g := NewWithT(t)
	f := healthyFacts()
	f.Address.Value.Description, f.Address.Value.Hook = &Answer{Status: 404}, &Answer{Status: 404}
	f.Address.Value.Root = &Answer{Status: 200, Ours: true}
	g.Expect(evidenceOf(f, "PathNotForwarded")).To(HaveLen(2))
	g.Expect(evidenceOf(f, "OtherServer")).To(BeEmpty())

	f.Project.Spec.BaseURL, f.Address.Value.Root = "https://verify.example.com", nil
	g.Expect(evidenceOf(f, "PathNotForwarded")).To(BeEmpty(), "there is no PhoneProof at all")
	g.Expect(evidenceOf(f, "OtherServer")).To(HaveLen(1))
}

// TestPrintable_showsNothingATerminalActsOn gives the doctor the texts of a hostile cluster.
func TestPrintable_showsNothingATerminalActsOn(t *testing.T) {
	g := NewWithT(t)
	g.Expect(printable("a\x1b[2J\r\nb\u202e\u200bc\xff\x07d\u009b")).To(Equal("a?[2J??b??c\ufffd?d?"))
	g.Expect(printable(strings.Repeat("x", maxText+1))).To(HaveLen(maxText + len("...")))
	f := healthyFacts()
	setCondition(f.Project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonConflict)
	f.Project.Status.Conditions[len(f.Project.Status.Conditions)-1].Message = "\x1b]0;owned\x07"
	f.Address.Value.Description, f.Address.Value.Hook = &Answer{Status: 302, Location: "\x1b[31mevil"}, nil
	f.Pods.Why = "\x1b[1m"
	r := Examine(f)
	var out strings.Builder
	writeText(&out, &r)
	g.Expect(strings.ContainsAny(out.String(), "\x1b\x07")).To(BeFalse())
	g.Expect(r.Findings).To(HaveLen(2))
}
