package render_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

// fullProject returns a project that sets every field of its spec.
func fullProject() *verifyv1.VerificationProject {
	p := rendertest.Project()
	for _, c := range rendertest.Cases() {
		fill(reflect.ValueOf(&p.Spec).Elem(), reflect.ValueOf(c.Project.DeepCopy().Spec))
		switch c.Name {
		case "secrets":
			p.Spec.APIKeys = c.Project.Spec.APIKeys
		case "postgresql":
			p.Spec.Storage = c.Project.Spec.Storage
		}
	}
	p.Spec.ProjectID, p.Spec.DisplayName, p.Spec.Replies = "shop-1", "Shop", &verifyv1.Replies{Verified: "Thanks!"}
	p.Spec.Suspend = new(false)
	return p
}

// fill sets the unset fields of a struct, and of the structs inside it.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		switch field := to.Field(i); {
		case field.IsZero():
			field.Set(from.Field(i))
		case field.Kind() == reflect.Struct:
			fill(field, from.Field(i))
		}
	}
}

// unrelated holds the changes that the pods read by themselves, by the field of the spec.
var unrelated = map[string]func(*verifyv1.VerificationProjectSpec){
	"ProjectID":   func(s *verifyv1.VerificationProjectSpec) { s.ProjectID = "other" },
	"DisplayName": func(s *verifyv1.VerificationProjectSpec) { s.DisplayName = "Other" },
	"BaseURL":     func(s *verifyv1.VerificationProjectSpec) { s.BaseURL = "https://other.example.com/path" },
	"Suspend":     func(s *verifyv1.VerificationProjectSpec) { s.Suspend = new(true) },
	"APIKeys": func(s *verifyv1.VerificationProjectSpec) {
		slices.Reverse(s.APIKeys)
		s.APIKeys[0].Name = "renamed"
		s.APIKeys[0].Scopes = []verifyv1.Scope{verifyv1.ScopeStatus}
		s.APIKeys[0].ExpiresAt = new(metav1.NewTime(time.Unix(1893456000, 0)))
		s.APIKeys = append(s.APIKeys, verifyv1.APIKey{Name: "twin", SecretRef: s.APIKeys[0].SecretRef})
	},
	"Webhook": func(s *verifyv1.VerificationProjectSpec) {
		s.Webhook.URL, s.Webhook.Timeout, s.Webhook.CABundle = "https://other.example.com", "5s", "PEM"
		s.Webhook.Events = []verifyv1.Event{verifyv1.EventExpired}
		s.Webhook.SecretRef, s.Webhook.PreviousSecretRef = s.Webhook.PreviousSecretRef, s.Webhook.SecretRef
	},
	"WhatsApp": func(s *verifyv1.VerificationProjectSpec) {
		secrets := *s.WhatsApp
		*s.WhatsApp = verifyv1.WhatsApp{
			PhoneNumber: "+15550100199", PhoneNumberID: "1", RegisterWebhook: new(false), TakeOver: new(true),
			BusinessAccountID: "2", HiddenNumbers: verifyv1.HiddenNumbersSharedContact, AcceptAnyText: new(true), AccessTokenSecretRef: secrets.AccessTokenSecretRef, AppSecretRef: secrets.AppSecretRef,
		}
	},
	"Telegram": func(s *verifyv1.VerificationProjectSpec) {
		s.Telegram.BotUsername, s.Telegram.Updates = "OtherBot", verifyv1.TelegramUpdatesPolling
	},
	"Replies": func(s *verifyv1.VerificationProjectSpec) { s.Replies = nil },
	"Texts":   func(s *verifyv1.VerificationProjectSpec) { s.Texts = append(s.Texts, verifyv1.Texts{Locale: "nl"}) },
	"Page": func(s *verifyv1.VerificationProjectSpec) {
		s.Page = &verifyv1.Page{AccentColor: "#0b6e4f", LogoRef: s.Page.LogoRef}
	},
	"Assurance": func(s *verifyv1.VerificationProjectSpec) {
		s.Assurance = &verifyv1.AssuranceSettings{Level: verifyv1.AssuranceLevelSession, DeclineCooldown: "2h"}
	},
	"Purposes": func(s *verifyv1.VerificationProjectSpec) {
		s.Purposes = append(s.Purposes, verifyv1.Purpose{Name: "sign-in", Title: "Sign in"})
	},
	"Request":   func(s *verifyv1.VerificationProjectSpec) { s.Request.TTL, s.Request.Retention = "1m", "7h" },
	"RateLimit": func(s *verifyv1.VerificationProjectSpec) { s.RateLimit.PerPhoneNumber.Requests++ },
	"Server": func(s *verifyv1.VerificationProjectSpec) {
		s.Server.Replicas = new(int32(9))
		s.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 40}
		s.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{MaxUnavailable: new(int32(3))}
	},
	"Expose": func(s *verifyv1.VerificationProjectSpec) {
		s.Expose.Service.Type = verifyv1.ServiceNodePort
		s.Expose.Ingress = &verifyv1.IngressSettings{Host: "other.example.com"}
		s.Expose.HTTPRoute = nil
	},
	"NetworkPolicy": func(s *verifyv1.VerificationProjectSpec) { s.NetworkPolicy = nil },
}

func TestDeployment_pods_are_not_replaced_by_unrelated_changes(t *testing.T) {
	g := NewWithT(t)
	want := encodeTemplate(fullProject(), rendertest.Options())
	for field := range reflect.TypeFor[verifyv1.VerificationProjectSpec]().Fields() {
		if field.Name == "Storage" {
			continue // its type selects the pods' store, and its Secret is mounted
		}
		g.Expect(unrelated).To(HaveKey(field.Name), "each field of the spec needs an unrelated change")
		p := fullProject()
		unrelated[field.Name](&p.Spec)
		g.Expect(reflect.DeepEqual(p.Spec, fullProject().Spec)).To(BeFalse(), field.Name+" is changed")
		g.Expect(encodeTemplate(p, rendertest.Options())).To(Equal(want), field.Name)
	}
	p := fullProject()
	p.Labels, p.Annotations = map[string]string{"team": "shop"}, map[string]string{verifyv1.RedeliverAnnotation: "vr1/2"}
	p.UID, p.Generation, p.ResourceVersion = "another", 7, "8"
	p.Status.ObservedGeneration = 7
	g.Expect(encodeTemplate(p, rendertest.Options())).To(Equal(want), "metadata and status")
}

func TestDeployment_pods_are_replaced_by_what_concerns_them(t *testing.T) {
	for name, change := range map[string]func(*verifyv1.VerificationProject, *render.Options){
		"another key of a Secret": func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.APIKeys[0].SecretRef.Key = "other" },
		"no webhook secret":       func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Webhook.PreviousSecretRef = nil },
		"storage": func(p *verifyv1.VerificationProject, _ *render.Options) {
			p.Spec.Storage = verifyv1.Storage{Type: verifyv1.StorageKubernetes}
		},
		"resources": func(p *verifyv1.VerificationProject, _ *render.Options) {
			p.Spec.Server.Resources = &verifyv1.Resources{Limits: &verifyv1.ResourceAmounts{Memory: new(resource.MustParse("1Gi"))}}
		},
		"logo":         func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Page.LogoRef.Key = "other" },
		"no logo":      func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Page.LogoRef = nil },
		"priority":     func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Server.PriorityClassName = "high" },
		"tolerations":  func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Server.Tolerations = nil },
		"image":        func(_ *verifyv1.VerificationProject, o *render.Options) { o.Image = "other" },
		"pull policy":  func(_ *verifyv1.VerificationProject, o *render.Options) { o.PullPolicy = corev1.PullNever },
		"platform URL": func(_ *verifyv1.VerificationProject, o *render.Options) { o.WhatsAppURL = "https://other" },
		"log":          func(_ *verifyv1.VerificationProject, o *render.Options) { o.LogLevel = "debug" },
	} {
		g := NewWithT(t)
		p, o := fullProject(), rendertest.Options()
		change(p, &o)
		g.Expect(encodeTemplate(p, o)).NotTo(Equal(encodeTemplate(fullProject(), rendertest.Options())), name)
	}
}

func TestDeployment_knows_only_the_rules_of_its_namespace(t *testing.T) {
	g := NewWithT(t)
	index := slices.IndexFunc(rendertest.Cases(), func(c rendertest.Case) bool { return c.Name == "webhook-rules" })
	p, o := rendertest.Project(), rendertest.Cases()[index].Options
	p.Namespace = "bank"
	var rules []string
	for _, arg := range render.Deployment(p, o).Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(arg, "--webhook-") {
			rules = append(rules, arg)
		}
	}
	g.Expect(rules).To(Equal([]string{
		"--webhook-allow=10.1.0.0/16", "--webhook-allow=bank=10.2.0.0/16", "--webhook-deny=10.1.2.0/24", "--webhook-deny=fd00:2::/32",
	}))
}

func encodeTemplate(p *verifyv1.VerificationProject, o render.Options) string {
	p.Default()
	data, err := yaml.Marshal(render.Deployment(p, o).Spec.Template)
	if err != nil {
		panic(err)
	}
	return string(data)
}
