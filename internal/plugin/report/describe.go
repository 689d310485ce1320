package report

import (
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
)

// fields is an object of a bundle. Unset fields are left out.
type fields map[string]any

// namesOf returns the names in the project that texts may hold: those of objects and keys, which are no secrets.
func namesOf(p *verifyv1.VerificationProject) []string {
	names := []string{p.Name, p.Namespace, p.Namespace + "/" + p.Name, render.Name(p.Name), leader.ProjectLease(p.Name)}
	for _, ref := range p.Spec.SecretRefs() {
		names = append(names, ref.Name, ref.Key)
	}
	for i := range p.Spec.APIKeys {
		names = append(names, p.Spec.APIKeys[i].Name)
	}
	return names
}

// describeProject takes of the spec what decides how it works, and none of its texts: no name for users, no text, title or annotation. Of
// addresses it takes scheme and form.
func describeProject(p *verifyv1.VerificationProject, s *scrubber) any {
	spec := &p.Spec
	keys := make([]fields, 0, len(spec.APIKeys))
	for i := range spec.APIKeys {
		k := &spec.APIKeys[i]
		keys = append(keys, fields{"name": k.Name, "scopes": k.EffectiveScopes(), "secretRef": k.Secret(), "expiresAt": k.ExpiresAt})
	}
	described := fields{
		"baseURL": describeURL(spec.BaseURL), "suspend": spec.Suspend, "apiKeys": keys, "hasPage": spec.Page != nil, "texts": len(spec.Texts),
		"purposes": len(spec.Purposes), "assurance": spec.Assurance, "request": spec.Request, "rateLimit": spec.RateLimit,
		"storage": spec.Storage, "replicas": spec.Server.Replicas, "resources": spec.Server.EffectiveResources(),
		"hasAutoscaling": spec.Server.Autoscaling != nil, "hasNetworkPolicy": spec.NetworkPolicy != nil,
		"hasIngress": spec.Expose.Ingress != nil, "hasHTTPRoute": spec.Expose.HTTPRoute != nil,
	}
	if spec.Replies != nil {
		described["repliesSend"] = spec.Replies.Send
	}
	if w := spec.Webhook; w != nil {
		described["webhook"] = fields{
			"url": describeURL(w.URL), "secretRef": w.SecretRef, "previousSecretRef": w.PreviousSecretRef,
			"hasTestURL": w.TestURL != "", "testSecretRef": w.TestSecretRef, "events": w.EffectiveEvents(),
			"timeout": w.Timeout, "hasCABundle": w.CABundle != "",
		}
	}
	if w := spec.WhatsApp; w != nil {
		described["whatsapp"] = fields{
			"accessTokenSecretRef": w.AccessTokenSecretRef, "appSecretRef": w.AppSecretRef, "registerWebhook": w.RegisterWebhook,
			"hiddenNumbers": w.EffectiveHiddenNumbers(), "takeOver": w.TakeOver,
		}
	}
	if t := spec.Telegram; t != nil {
		described["telegram"] = fields{
			"botTokenSecretRef": t.BotTokenSecretRef, "updates": spec.EffectiveTelegramUpdates(), "takeOver": t.TakeOver,
		}
	}
	return fields{
		"namespace": p.Namespace, "name": p.Name, "createdAt": p.CreationTimestamp, "generation": p.Generation, "spec": described,
		"observedGeneration": p.Status.ObservedGeneration, "conditions": describeConditions(p.Status.Conditions, s),
	}
}

// describeURL returns the scheme of an address and what it has: its host, path and query may name people, and hold credentials.
func describeURL(address string) string {
	parsed, err := url.Parse(address)
	if address == "" || err != nil {
		return ""
	}
	described := parsed.Scheme + "://" + hidden
	if strings.Trim(parsed.Path, "/") != "" {
		described += "/" + hidden
	}
	if parsed.RawQuery != "" {
		described += "?" + hidden
	}
	return described
}

func describeConditions(conditions []metav1.Condition, s *scrubber) []fields {
	described := make([]fields, 0, len(conditions))
	for i := range conditions {
		c := &conditions[i]
		described = append(described, fields{
			"type": s.scrub(c.Type), "status": string(c.Status), "reason": s.scrub(c.Reason), "message": s.scrub(c.Message),
			"since": c.LastTransitionTime, "observedGeneration": c.ObservedGeneration,
		})
	}
	return described
}

func describeEvent(e *eventsv1.Event, s *scrubber) any {
	described := fields{
		"at": e.EventTime, "type": s.scrub(e.Type), "reason": s.scrub(e.Reason), "kind": s.scrub(e.Regarding.Kind), "note": s.scrub(e.Note),
		"from": s.scrub(e.ReportingController), "created": e.CreationTimestamp,
	}
	if e.Series != nil {
		described["count"], described["last"] = e.Series.Count, e.Series.LastObservedTime
	}
	return described
}

func describePod(pod *corev1.Pod, s *scrubber) any {
	containers := make([]fields, 0, len(pod.Status.ContainerStatuses))
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		container := fields{"ready": c.Ready, "restarts": c.RestartCount, "image": describeImage(c.Image, s)}
		if w := c.State.Waiting; w != nil {
			container["waiting"], container["message"] = s.scrub(w.Reason), s.scrub(w.Message)
		}
		if t := c.LastTerminationState.Terminated; t != nil {
			container["ended"], container["exitCode"], container["endedAt"] = s.scrub(t.Reason), t.ExitCode, t.FinishedAt
		}
		containers = append(containers, container)
	}
	conditions := make([]fields, 0, len(pod.Status.Conditions))
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		conditions = append(conditions, fields{
			"type": s.scrub(string(c.Type)), "status": string(c.Status), "reason": s.scrub(c.Reason), "message": s.scrub(c.Message),
		})
	}
	return fields{
		"name": pod.Name, "phase": s.scrub(string(pod.Status.Phase)), "startedAt": pod.Status.StartTime, "deletedAt": pod.DeletionTimestamp,
		"containers": containers, "conditions": conditions,
	}
}

// describeImage returns the tag of an image, which is its version. The registry may be a private one.
func describeImage(image string, s *scrubber) string {
	image, _, _ = strings.Cut(image, "@") // the digest, which may be that of a private build
	tag := image[strings.LastIndex(image, ":")+1:]
	if !slices.Contains([]string{"", image}, tag) && releases.MatchString(tag) {
		return hidden + ":" + tag
	}
	return s.scrub(image)
}

func describeDeployment(d *appsv1.Deployment, s *scrubber) any {
	conditions := make([]fields, 0, len(d.Status.Conditions))
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		conditions = append(conditions, fields{
			"type": s.scrub(string(c.Type)), "status": string(c.Status), "reason": s.scrub(c.Reason), "message": s.scrub(c.Message),
		})
	}
	images := make([]string, 0, 1)
	for i := range d.Spec.Template.Spec.Containers {
		images = append(images, describeImage(d.Spec.Template.Spec.Containers[i].Image, s))
	}
	return fields{
		"generation": d.Generation, "observedGeneration": d.Status.ObservedGeneration, "wanted": ptr.Deref(d.Spec.Replicas, 1),
		"ready": d.Status.ReadyReplicas, "updated": d.Status.UpdatedReplicas, "images": images, "conditions": conditions,
	}
}

func describeService(o *corev1.Service, s *scrubber) any {
	ports := make([]fields, 0, len(o.Spec.Ports))
	for i := range o.Spec.Ports {
		ports = append(ports, fields{"name": s.scrub(o.Spec.Ports[i].Name), "port": o.Spec.Ports[i].Port})
	}
	return fields{"type": s.scrub(string(o.Spec.Type)), "ports": ports, "loadBalancers": len(o.Status.LoadBalancer.Ingress)}
}

func describeIngress(o *networkingv1.Ingress, _ *scrubber) any {
	return fields{
		"hasClass": o.Spec.IngressClassName != nil, "rules": len(o.Spec.Rules), "tls": len(o.Spec.TLS),
		"loadBalancers": len(o.Status.LoadBalancer.Ingress),
	}
}

func describeLease(o *coordinationv1.Lease, s *scrubber) any {
	return fields{
		"holder": s.scrub(ptr.Deref(o.Spec.HolderIdentity, "")), "renewedAt": o.Spec.RenewTime, "acquiredAt": o.Spec.AcquireTime,
		"durationSeconds": o.Spec.LeaseDurationSeconds, "transitions": o.Spec.LeaseTransitions,
	}
}
