package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// secretValue returns the value that a reference leads to.
func (w *world) secretValue(ref verifyv1.SecretKeyRef) string {
	w.t.Helper()
	var secret corev1.Secret
	w.Expect(w.kube.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: ref.Name}, &secret)).To(Succeed())
	return string(secret.Data[ref.Key])
}

func TestRotate_apiKey(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.mustFail("rotate", "api-key", "shop", "backend", "--finish")).To(ContainSubstring("no entry has replaced API key backend"))
	printed := w.must("rotate", "api-key", "shop", "backend")
	keys := w.reload().Spec.APIKeys
	w.Expect(keys).To(HaveLen(2))
	w.Expect(keys[0].SecretRef).To(Equal(verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"}))
	w.Expect(keys[1].Name).To(Equal("backend-2"))
	w.Expect(keys[1].Scopes).To(Equal(keys[0].Scopes))
	value := w.secretValue(keys[1].SecretRef)
	w.Expect(settings.CheckFormat([]byte(value))).To(Succeed())
	w.Expect(value).To(HavePrefix("pp_"))
	w.Expect(printed).To(And(ContainSubstring(keys[1].SecretRef.Name), ContainSubstring("--finish"), Not(ContainSubstring(value))))

	w.Expect(w.mustFail("rotate", "api-key", "shop", "backend", "--finish")).To(And(
		ContainSubstring("pods may run that do not have the new one"), ContainSubstring("no pod has reported"), ContainSubstring("--force")))
	w.Expect(w.reload().Spec.APIKeys).To(HaveLen(2))
	w.setStatus(func(s *verifyv1.VerificationProjectStatus) {
		s.ObservedGeneration = w.reload().Generation
		s.Conditions = []metav1.Condition{{
			Type: verifyv1.ConditionSecretsReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonSecretsRead,
			ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.Now(),
		}}
	})
	w.Expect(w.mustFail("rotate", "api-key", "shop", "backend-2", "--finish", "--force")).To(ContainSubstring("no entry has replaced API key backend-2"))
	w.Expect(w.must("rotate", "api-key", "shop", "backend", "--finish")).To(ContainSubstring("refused within a second"))
	w.Expect(w.reload().Spec.APIKeys).To(HaveLen(1))
	w.Expect(w.secretValue(verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"})).To(Equal(apiKeyValue), "the Secret stays")
	w.must("rotate", "api-key", "shop", "backend-2", "--new-name=website", "--secret=shop/website")
	w.Expect(w.mustFail("rotate", "api-key", "shop", "backend-2", "--finish")).To(ContainSubstring("name it by --new-name"))
	w.must("rotate", "api-key", "shop", "backend-2", "--finish", "--force", "--new-name=website")
	keys = w.reload().Spec.APIKeys
	w.Expect(keys).To(HaveLen(1))
	w.Expect(keys[0].SecretRef).To(Equal(verifyv1.SecretKeyRef{Name: "shop", Key: "website"}))
	w.Expect(w.mustFail("rotate", "api-key", "shop", "absent")).To(ContainSubstring("has no API key absent"))
	w.Expect(w.mustFail("rotate", "api-key", "shop", "website", "--secret=shop/website")).To(ContainSubstring("is in use"))
}

// TestRotate_leavesKeysOfOthers: a Secret may hold what the project knows nothing of, such as the password of another program.
func TestRotate_leavesKeysOfOthers(t *testing.T) {
	w := newWorld(t)
	ref := verifyv1.SecretKeyRef{Name: "shop", Key: "password"}
	var secret corev1.Secret
	w.Expect(w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: ref.Name}, &secret)).To(Succeed())
	secret.Data[ref.Key] = []byte("of another program")
	w.Expect(w.kube.Update(t.Context(), &secret)).To(Succeed())
	before := w.reload()
	for _, args := range [][]string{{"api-key", "shop", "backend"}, {"webhook-secret", "shop"}} {
		refused := w.mustFail(append([]string{"rotate", "--secret=shop/password"}, args...)...)
		w.Expect(refused).To(ContainSubstring("may have the key password already"))
	}
	w.Expect(w.secretValue(ref)).To(Equal("of another program"))
	w.Expect(w.reload().Spec).To(Equal(before.Spec))
	w.must("rotate", "webhook-secret", "shop", "--secret=shop/webhook.new")
	w.Expect(w.secretValue(*w.reload().Spec.Webhook.SecretRef)).To(HavePrefix("whsec_"))
	w.Expect(w.secretValue(ref)).To(Equal("of another program"), "other keys stay")
}

// addKeyField has the CRD know a field of API keys that the plugin does not, as a later one may, until the test ends.
func (w *world) addKeyField(field string) {
	w.t.Helper()
	path := "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/apiKeys/items/properties/" + field
	change := func(ctx context.Context, patch string) {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("verificationprojects.phoneproof.dev")
		w.Expect(w.kube.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
	}
	change(w.t.Context(), `[{"op": "add", "path": "`+path+`", "value": {"type": "string"}}]`)
	w.t.Cleanup(func() { change(context.WithoutCancel(w.t.Context()), `[{"op": "remove", "path": "`+path+`"}]`) })
}

// keyField returns the values of a field of API keys by the names of these.
func (w *world) keyField(field string) map[string]string {
	w.t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind))
	w.Expect(w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(w.project), now)).To(Succeed())
	keys, _, err := unstructured.NestedSlice(now.Object, "spec", "apiKeys")
	w.Expect(err).NotTo(HaveOccurred())
	values := map[string]string{}
	for _, key := range keys {
		name, _, _ := unstructured.NestedString(key.(map[string]any), "name")
		values[name], _, _ = unstructured.NestedString(key.(map[string]any), field)
	}
	return values
}

// An older plugin keeps what a newer CRD has added, also in the new entry: the field may restrict what the key is for.
func TestRotate_apiKeyKeepsUnknownFields(t *testing.T) {
	w := newWorld(t, func(p *verifyv1.VerificationProject) {
		p.Spec.APIKeys[0].ExpiresAt = new(metav1.NewTime(time.Now().Add(time.Hour)))
		other := p.Spec.APIKeys[0]
		other.Name, other.SecretRef.Key = "other", "other"
		p.Spec.APIKeys = append(p.Spec.APIKeys, other)
	})
	w.addKeyField("laterField")
	w.Eventually(func() map[string]string {
		patch := `[{"op": "add", "path": "/spec/apiKeys/0/laterField", "value": "a"}, {"op": "add", "path": "/spec/apiKeys/1/laterField", "value": "b"}]`
		w.Expect(w.kube.Patch(t.Context(), w.reload(), client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
		return w.keyField("laterField")
	}).Should(Equal(map[string]string{"backend": "a", "other": "b"}))

	w.Expect(w.must("rotate", "api-key", "shop", "backend", "--dry-run")).To(And(ContainSubstring("op: copy"), ContainSubstring("value: backend-2")))
	w.must("rotate", "api-key", "shop", "backend")
	w.Expect(w.keyField("laterField")).To(Equal(map[string]string{"backend": "a", "other": "b", "backend-2": "a"}))
	w.Expect(w.reload().Spec.APIKeys[2].ExpiresAt).To(BeNil())
	w.must("rotate", "api-key", "shop", "backend", "--finish", "--force")
	w.Expect(w.keyField("laterField")).To(Equal(map[string]string{"other": "b", "backend-2": "a"}))
}

// Another one reorders the keys between the command's read and its write, so that the place of the key is another key's.
func TestRotate_apiKeyThatMovedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.must("rotate", "api-key", "shop", "backend")
	w.beforeRequest = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			now := w.reload()
			slices.Reverse(now.Spec.APIKeys)
			w.Expect(w.kube.Update(t.Context(), now)).To(Succeed())
		}
	}
	w.Expect(w.mustFail("rotate", "api-key", "shop", "backend", "--finish", "--force")).To(ContainSubstring("its spec was changed meanwhile"))
	w.Expect(w.reload().Spec.APIKeys).To(HaveLen(2))
}

func TestRotate_webhookSecret(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.mustFail("rotate", "webhook-secret", "shop", "--finish")).To(ContainSubstring("no rotation is under way"))
	printed := w.must("rotate", "webhook-secret", "shop")
	webhook := w.reload().Spec.Webhook
	w.Expect(*webhook.PreviousSecretRef).To(Equal(verifyv1.SecretKeyRef{Name: "shop", Key: "webhook-secret"}))
	value := w.secretValue(*webhook.SecretRef)
	w.Expect(value).To(HavePrefix("whsec_"))
	_, err := settings.WebhookKey([]byte(value))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(printed).NotTo(ContainSubstring(strings.TrimPrefix(value, "whsec_")))
	w.Expect(w.mustFail("rotate", "webhook-secret", "shop")).To(ContainSubstring("a rotation is under way"))

	w.must("rotate", "webhook-secret", "shop", "--finish")
	after := w.reload().Spec.Webhook
	w.Expect(after.PreviousSecretRef).To(BeNil())
	w.Expect(after.SecretRef).To(Equal(webhook.SecretRef))
	w.Expect(w.mustFail("rotate", "webhook-secret", "shop", "--secret="+webhook.SecretRef.Name+"/"+webhook.SecretRef.Key)).
		To(ContainSubstring("its value would be lost"))

	w = newWorld(t, func(p *verifyv1.VerificationProject) { p.Spec.Webhook.SecretRef = nil })
	w.Expect(w.must("rotate", "webhook-secret", "shop")).To(ContainSubstring("a signature, which they did not, as soon as the pods have the secret"))
	w.Expect(w.reload().Spec.Webhook.PreviousSecretRef).To(BeNil())
}

// The operator writes the status of the project between the command's read and its write.
func TestRotate_besideTheOperator(t *testing.T) {
	w := newWorld(t)
	conflicts := 2
	w.beforeRequest = func(r *http.Request) {
		if r.Method == http.MethodPatch && conflicts > 0 {
			conflicts--
			w.setStatus(func(s *verifyv1.VerificationProjectStatus) { s.ObservedGeneration++ })
		}
	}
	w.must("rotate", "webhook-secret", "shop")
	w.Expect(conflicts).To(BeZero())
	w.Expect(w.reload().Spec.Webhook.PreviousSecretRef).NotTo(BeNil())
	conflicts = 1
	w.must("rotate", "api-key", "shop", "backend")
	w.Expect(conflicts).To(BeZero())
	w.Expect(w.reload().Spec.APIKeys).To(HaveLen(2))
}

func TestRotate_besideAnotherRotation(t *testing.T) {
	w := newWorld(t)
	other := verifyv1.SecretKeyRef{Name: "shop", Key: "another"}
	w.beforeRequest = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			now := w.reload()
			now.Spec.Webhook.SecretRef = &other
			w.Expect(w.kube.Update(t.Context(), now)).To(Succeed())
		}
	}
	w.Expect(w.mustFail("rotate", "webhook-secret", "shop")).To(ContainSubstring("its spec was changed meanwhile"))
	webhook := w.reload().Spec.Webhook
	w.Expect(*webhook.SecretRef).To(Equal(other))
	w.Expect(webhook.PreviousSecretRef).To(BeNil())
}

func TestRotate_dryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	before := w.reload()
	for _, args := range [][]string{{"rotate", "api-key", "shop", "backend"}, {"rotate", "webhook-secret", "shop"}} {
		printed := w.must(append(args, "--dry-run")...)
		w.Expect(printed).To(ContainSubstring("dry run"))
	}
	w.Expect(w.reload().ResourceVersion).To(Equal(before.ResourceVersion))
	w.Expect(w.secretValue(verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"})).To(Equal(apiKeyValue))
	var list corev1.SecretList
	w.Expect(w.kube.List(t.Context(), &list, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(list.Items).To(HaveLen(1))
	w.Expect(w.must("rotate", "webhook-secret", "shop", "--dry-run")).To(ContainSubstring("previousSecretRef"))
}
