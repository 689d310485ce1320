package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// conditionChecks are about what the operator and the pods report in the project's status.
func conditionChecks() []check {
	return []check{
		{
			name: "DatabaseUnreachable", problem: "the database does not answer, so clients get 503",
			remedy: "look at the database, its address in the Secret of `spec.storage.postgresql.uriSecretRef`, and the network between: `kubectl -n NAMESPACE logs deploy/phoneproof-PROJECT --all-pods | grep database`",
			find:   onStorage(verifyv1.StoragePostgreSQL, verifyv1.ReasonStorageUnreachable),
		},
		{
			name: "DatabaseRefuses", problem: "the database answers and does not serve the pods",
			remedy: "correct what the evidence names: the password or name in the Secret of `spec.storage.postgresql.uriSecretRef`, rights, a standby, a full disk",
			find:   onReasons(verifyv1.ConditionStorageReady, verifyv1.ReasonStorageRejected),
		},
		{
			name: "StoreUnreachable", problem: "the pods cannot store requests as objects, so clients get 503",
			remedy: "look at the API server, and at the pods' rights: `kubectl -n NAMESPACE get rolebinding phoneproof-PROJECT-kubernetes`",
			find:   onStorage(verifyv1.StorageKubernetes, verifyv1.ReasonStorageUnreachable),
		},
		{
			name: "StoreFull", problem: "`spec.request.maxStored` requests are stored and none may be deleted, so init answers 429",
			remedy: "repair the webhook's receiver first, then raise `spec.request.maxStored`, shorten `spec.request.retention`, or move to PostgreSQL",
			find:   onReasons(verifyv1.ConditionStorageReady, verifyv1.ReasonStorageFull),
		},
		{
			name: "ReceiverFails", problem: "the receiver of `spec.webhook.url` does not take events",
			remedy: "repair it: a 401 means that it checks another secret than `spec.webhook.secretRef`, or counts a newline at its end, a 5xx or a timeout is its own; then send those again that wait or were given up: `kubectl phoneproof -n NAMESPACE redeliver PROJECT --due --failed`",
			find:   onReasons(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonReceiverFailing),
		},
		{
			name: "ReceiverAddressRefused", problem: "the address of `spec.webhook.url` is refused",
			remedy: "correct the host, port or scheme of `spec.webhook.url`; for a private address ask the administrator for `--webhook-allow=NAMESPACE=CIDR`",
			find:   onReasons(verifyv1.ConditionWebhookHealthy, verifyv1.ReasonAddressRefused),
		},
		{
			name: "LimitsContradict", problem: "the project's limits contradict each other, so API keys can fill the store",
			remedy: "`kubectl -n NAMESPACE patch verificationproject PROJECT --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/rateLimit/perKey\"}]'`, or raise `spec.request.maxStored`",
			find:   findContradiction,
		},
		{
			name: "TestEventsOff", problem: "`spec.webhook.testURL` is set and no secret signs the events of test keys, so none is sent",
			remedy: "make a secret with `phoneproof keygen --webhook`, name it in `spec.webhook.testSecretRef`, and give it to the receiver of test events",
			find:   onBadReasons(verifyv1.ConditionTestEventsOff, metav1.ConditionTrue, verifyv1.ReasonTestSecretUnset),
		},
		{
			name: "RolloutStuck", problem: "new pods do not become ready; the former ones go on with the former settings",
			remedy: "look at the new pods: `kubectl -n NAMESPACE describe pods -l phoneproof.dev/project`, `kubectl -n NAMESPACE logs deploy/phoneproof-PROJECT --all-pods`",
			find:   onStalled(verifyv1.ReasonRolloutStuck),
		},
		{
			name: "NoPodAnswers", problem: "no pod of the project answers",
			remedy: "look at `kubectl -n NAMESPACE get deploy,pods,events`",
			find:   onReasons(verifyv1.ConditionAvailable, verifyv1.ReasonPodsUnavailable),
		},
		{
			name: "Suspended", problem: "the project is suspended: no pod runs",
			remedy: "`kubectl -n NAMESPACE patch vproj PROJECT --type=merge -p '{\"spec\":{\"suspend\":false}}'`",
			find: func(f *Facts) []evidence {
				return when(f.Project.Suspended(), "spec.suspend is true")
			},
		},
		{
			name: "NotReported", problem: "no running pod has reported on the present spec",
			remedy: "see why in the pods' logs: `kubectl -n NAMESPACE logs deploy/phoneproof-PROJECT --all-pods`",
			find: func(f *Facts) []evidence {
				c, _ := currentCondition(f, verifyv1.ConditionReady)
				if c == nil || isRecent(f, c.LastTransitionTime.Time) {
					return nil
				}
				return findBadReasons(f, verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported)
			},
		},
		{
			name: "AccountInUse", problem: "another project of the namespace has had the same messenger account for longer",
			remedy: "use another account in `spec.whatsapp.phoneNumberID` or `spec.telegram.botUsername`, or remove it from the other project: `kubectl -n NAMESPACE get vproj -o custom-columns=NAME:.metadata.name,ACCOUNTS:.status.claims[*].account`",
			find:   onStalled(verifyv1.ReasonAccountInUse),
		},
		{
			name: "HostInUse", problem: "another project already answers to a host name of this one",
			remedy: "use another host in `spec.baseURL` or `spec.expose`, or ask the administrator for `--grant-host=NAMESPACE=HOST`",
			find:   onStalled(verifyv1.ReasonHostInUse),
		},
		{
			name: "HostWaits", problem: "a host waits: the operator started without a namespace whose projects may answer to it",
			remedy: "`kubectl phoneproof doctor` names the namespace as `NamespaceUnread`; or ask the administrator for `--grant-host=NAMESPACE=HOST`",
			find: func(f *Facts) []evidence {
				return slices.DeleteFunc(findReasons(f, verifyv1.ConditionReady, verifyv1.ReasonProgressing), func(e evidence) bool {
					return !strings.Contains(e.text, ": spec.expose: the host name ")
				})
			},
		},
		{
			name: "NotPermitted", problem: "a field asks for what the cluster's administrator has not allowed",
			remedy: "change the field that the evidence names, or ask for its flag of the operator (`--allow-*`, `--grant-*`)",
			find:   onStalled(verifyv1.ReasonNotPermitted),
		},
		{
			name: "ObjectInTheWay", problem: "an object with the name of one that the project makes exists, and is not the project's",
			remedy: "delete or rename the object that the evidence names: `kubectl -n NAMESPACE get sa,svc,deploy,rolebinding,ingress,hpa,pdb,networkpolicy`",
			find:   onStalled(verifyv1.ReasonConflict),
		},
		{
			name: "ChildRejected", problem: "the API server refuses an object that the project makes",
			remedy: "change the field of `spec` that it comes from: `kubectl -n NAMESPACE edit vproj PROJECT`",
			find:   onStalled(verifyv1.ReasonChildRejected),
		},
		{
			name: "InvalidSpec", problem: "the spec was stored before a rule existed that it breaks",
			remedy: "change the field that the evidence names: `kubectl -n NAMESPACE edit vproj PROJECT`",
			find:   onStalled(verifyv1.ReasonInvalidSpec),
		},
		{
			name: "GatewayAPIMissing", problem: "`spec.expose.httpRoute` is set and the cluster has no HTTPRoute that the operator can read",
			remedy: "install the Gateway API, or use `spec.expose.ingress`",
			find:   onReasons(verifyv1.ConditionReady, verifyv1.ReasonGatewayAPIMissing),
		},
		{
			name: "Shared", problem: "a project of another namespace names the same messenger account or host",
			remedy: "ask the administrator for `--grant-account` or `--grant-host` for NAMESPACE",
			find:   onBadReasons(verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonAccountShared, verifyv1.ReasonHostShared),
		},
		{
			name: "NotRolledOut", problem: "a Secret was added to the project, and no pod that mounts it runs",
			remedy: "look at the rollout: `kubectl -n NAMESPACE rollout status deploy/phoneproof-PROJECT`",
			find: func(f *Facts) (found []evidence) {
				for _, name := range []string{verifyv1.ConditionSecretsReady, verifyv1.ConditionWebhookHealthy} {
					if c, _ := currentCondition(f, name); c != nil && !isRecent(f, c.LastTransitionTime.Time) {
						found = append(found, findBadReasons(f, name, metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout)...)
					}
				}
				return found
			},
		},
	}
}

// onStalled makes a check of what stops a project for good.
func onStalled(reason string) func(*Facts) []evidence {
	return onBadReasons(verifyv1.ConditionStalled, metav1.ConditionTrue, reason)
}

// onStorage makes a check of the store of a project with that storage.
func onStorage(storage verifyv1.StorageType, reasons ...string) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		if (f.Project.Spec.Storage.Type == verifyv1.StoragePostgreSQL) != (storage == verifyv1.StoragePostgreSQL) {
			return nil
		}
		return findReasons(f, verifyv1.ConditionStorageReady, reasons...)
	}
}

// findContradiction judges the limits itself, so that it needs no pod.
func findContradiction(f *Facts) []evidence {
	contradiction := f.Project.Spec.LimitsContradiction()
	if contradiction == "" {
		return nil
	}
	return []evidence{{text: contradiction, remedy: fmt.Sprintf("`%s`", f.Project.LimitsCommand())}}
}
