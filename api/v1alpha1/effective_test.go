package v1alpha1_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestEffective_withNothingSet(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	g.Expect(p.EffectiveProjectID()).To(Equal("team/shop"))
	g.Expect(p.EffectiveDisplayName()).To(Equal("shop"))
	g.Expect(p.Suspended()).To(BeFalse())
	g.Expect(p.Spec.EffectiveTTL()).To(Equal(10 * time.Minute))
	g.Expect(p.Spec.EffectiveRetention()).To(Equal(time.Hour))
	g.Expect(p.Spec.EffectiveMaxStored()).To(Equal(1500))
	g.Expect(p.Spec.EffectivePerKey()).To(Equal(v1alpha1.Rate{Requests: 750, Period: "15m"}))
	g.Expect(p.Spec.EffectivePerPhoneNumber()).To(Equal(v1alpha1.Rate{Requests: 5, Period: "10m"}))
	g.Expect(p.Spec.EffectiveTelegramUpdates()).To(BeEmpty())
	g.Expect(p.Spec.RegistersWhatsAppWebhook()).To(BeFalse())
	g.Expect(p.Spec.EffectiveIngressHost()).To(BeEmpty())
	g.Expect(p.Spec.EffectiveBaseURL() + p.Spec.BasePath() + p.Spec.BaseHost()).To(BeEmpty())
	g.Expect((&v1alpha1.Webhook{}).EffectiveTimeout()).To(Equal(15 * time.Second))
	stored := v1alpha1.APIKey{Scopes: []v1alpha1.Scope{v1alpha1.ScopeInit, v1alpha1.ScopeStatus}, Mode: v1alpha1.KeyModeLive}
	g.Expect((&v1alpha1.APIKey{}).EffectiveScopes()).To(Equal(stored.EffectiveScopes()))
	g.Expect((&v1alpha1.APIKey{}).IsTest()).To(Equal(stored.IsTest()))
	g.Expect(p.Spec.SecretRefs()).To(BeEmpty())

	undefaulted := p.DeepCopy()
	p.Default()
	g.Expect(p.Spec.EffectiveTTL()).To(Equal(undefaulted.Spec.EffectiveTTL()))
	g.Expect(p.Spec.EffectivePerKey()).To(Equal(undefaulted.Spec.EffectivePerKey()))
	g.Expect(p.Spec.EffectivePerPhoneNumber()).To(Equal(undefaulted.Spec.EffectivePerPhoneNumber()))
	g.Expect(p.Spec.EffectiveMaxStored()).To(Equal(undefaulted.Spec.EffectiveMaxStored()))
}

func TestEffective_followsBaseURL(t *testing.T) {
	for _, c := range []struct {
		baseURL, trimmed, path, host string
		updates                      v1alpha1.TelegramUpdates
	}{
		{"https://verify.example.com", "https://verify.example.com", "", "verify.example.com", v1alpha1.TelegramUpdatesWebhook},
		{"https://verify.example.com:8443/a/b/", "https://verify.example.com:8443/a/b", "/a/b", "verify.example.com", v1alpha1.TelegramUpdatesWebhook},
		{"http://shop.team.svc/", "http://shop.team.svc", "", "shop.team.svc", v1alpha1.TelegramUpdatesPolling},
		{"", "", "", "", v1alpha1.TelegramUpdatesPolling},
	} {
		g := NewWithT(t)
		s := v1alpha1.VerificationProjectSpec{
			BaseURL: c.baseURL, Telegram: &v1alpha1.Telegram{}, WhatsApp: &v1alpha1.WhatsApp{},
			Expose: v1alpha1.Expose{Ingress: &v1alpha1.IngressSettings{}},
		}
		g.Expect([]string{s.EffectiveBaseURL(), s.BasePath(), s.BaseHost()}).To(Equal([]string{c.trimmed, c.path, c.host}))
		g.Expect(s.EffectiveTelegramUpdates()).To(Equal(c.updates))
		g.Expect(s.RegistersWhatsAppWebhook()).To(Equal(c.updates == v1alpha1.TelegramUpdatesWebhook))
		g.Expect(s.EffectiveIngressHost()).To(Equal(c.host))
		s.Telegram.Updates, s.WhatsApp.RegisterWebhook, s.Expose.Ingress.Host = v1alpha1.TelegramUpdatesPolling, new(false), "other.example.com"
		g.Expect(s.EffectiveTelegramUpdates()).To(Equal(v1alpha1.TelegramUpdatesPolling))
		g.Expect(s.RegistersWhatsAppWebhook()).To(BeFalse())
		g.Expect(s.EffectiveIngressHost()).To(Equal("other.example.com"))
	}
}

func TestEffectiveRetention_followsStorage(t *testing.T) {
	g := NewWithT(t)
	s := v1alpha1.VerificationProjectSpec{Storage: v1alpha1.Storage{Type: v1alpha1.StoragePostgreSQL}}
	g.Expect(s.EffectiveRetention()).To(Equal(24 * time.Hour))
	s.Request.Retention = "90m"
	g.Expect(s.EffectiveRetention()).To(Equal(90 * time.Minute))
	s.Storage.Type = v1alpha1.StorageKubernetes
	g.Expect(s.EffectiveRetention()).To(Equal(90 * time.Minute))
}

func TestEffectiveSilentAfter_isAsLongAsRequestsAreStored(t *testing.T) {
	g := NewWithT(t)
	s := v1alpha1.VerificationProjectSpec{Telegram: &v1alpha1.Telegram{}}
	g.Expect(s.EffectiveSilentAfter()).To(BeZero())
	s.WhatsApp = &v1alpha1.WhatsApp{}
	g.Expect(s.EffectiveSilentAfter()).To(Equal(time.Hour))
	s.WhatsApp.SilentAfter = "70m"
	g.Expect(s.EffectiveSilentAfter()).To(Equal(70 * time.Minute))
	s.Request.Retention = "20m"
	g.Expect(s.EffectiveSilentAfter()).To(Equal(30 * time.Minute))
	s.WhatsApp.SilentAfter = ""
	g.Expect(s.EffectiveSilentAfter()).To(Equal(30 * time.Minute))
}

func TestEffectiveSendReplies_isAlways_unlessSet(t *testing.T) {
	g := NewWithT(t)
	s := v1alpha1.VerificationProjectSpec{}
	g.Expect(s.EffectiveSendReplies()).To(Equal(v1alpha1.SendRepliesAlways))
	s.Replies = &v1alpha1.Replies{}
	g.Expect(s.EffectiveSendReplies()).To(Equal(v1alpha1.SendRepliesAlways))
	s.Replies.Send = v1alpha1.SendRepliesNever
	g.Expect(s.EffectiveSendReplies()).To(Equal(v1alpha1.SendRepliesNever))
}

// keysFor returns n API keys that may start requests, and one that may not.
func keysFor(starting int) []v1alpha1.APIKey {
	secret := v1alpha1.SecretKeyRef{Name: "shop", Key: "api-key"}
	keys := []v1alpha1.APIKey{{Name: "status", SecretRef: secret, Scopes: []v1alpha1.Scope{v1alpha1.ScopeStatus}}}
	for i := range starting {
		keys = append(keys, v1alpha1.APIKey{Name: fmt.Sprintf("key-%d", i), SecretRef: secret})
	}
	return keys
}

func TestEffectivePerKey_followsStorageAndKeys(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha1.VerificationProjectSpec
		want v1alpha1.Rate
	}{
		"half of the room for a single key, for as long as a request stays": {
			v1alpha1.VerificationProjectSpec{APIKeys: keysFor(1), Request: v1alpha1.RequestSettings{TTL: "1h", MaxStored: new(int32(9001))}},
			v1alpha1.Rate{Requests: 4500, Period: "1h5m"},
		},
		"half for each of two": {v1alpha1.VerificationProjectSpec{APIKeys: keysFor(2)}, v1alpha1.Rate{Requests: 750, Period: "15m"}},
		"a third of three":     {v1alpha1.VerificationProjectSpec{APIKeys: keysFor(3)}, v1alpha1.Rate{Requests: 500, Period: "15m"}},
		"rounded down":         {v1alpha1.VerificationProjectSpec{APIKeys: keysFor(31)}, v1alpha1.Rate{Requests: 48, Period: "15m"}},
		"seconds stay": {
			v1alpha1.VerificationProjectSpec{Request: v1alpha1.RequestSettings{TTL: "65s"}}, v1alpha1.Rate{Requests: 750, Period: "6m5s"},
		},
		"whole hours": {
			v1alpha1.VerificationProjectSpec{Request: v1alpha1.RequestSettings{TTL: "55m"}}, v1alpha1.Rate{Requests: 750, Period: "1h"},
		},
		"at least one": {
			v1alpha1.VerificationProjectSpec{APIKeys: keysFor(1), Request: v1alpha1.RequestSettings{MaxStored: new(int32(1))}},
			v1alpha1.Rate{Requests: 1, Period: "15m"},
		},
		"a database has room": {
			v1alpha1.VerificationProjectSpec{APIKeys: keysFor(31), Storage: v1alpha1.Storage{Type: v1alpha1.StoragePostgreSQL}},
			v1alpha1.Rate{Requests: 600, Period: "1m"},
		},
		"what is set counts": {
			v1alpha1.VerificationProjectSpec{APIKeys: keysFor(3), RateLimit: v1alpha1.RateLimit{PerKey: &v1alpha1.Rate{Requests: 3, Period: "1h"}}},
			v1alpha1.Rate{Requests: 3, Period: "1h"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rate := c.spec.EffectivePerKey()
			g.Expect(rate).To(Equal(c.want))
			_, err := rate.Period.Parse()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.spec.LimitsContradiction()).To(BeEmpty())
		})
	}
}

func TestEffectiveResources_neverContradictWhatIsSet(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			out[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return out
	}
	amounts := func(cpu, memory string) *v1alpha1.ResourceAmounts {
		out := &v1alpha1.ResourceAmounts{}
		if cpu != "" {
			out.CPU = new(resource.MustParse(cpu))
		}
		if memory != "" {
			out.Memory = new(resource.MustParse(memory))
		}
		return out
	}
	for _, c := range []struct {
		set              *v1alpha1.Resources
		requests, limits corev1.ResourceList
	}{
		{nil, list("50m", "64Mi"), list("", "256Mi")},
		{&v1alpha1.Resources{Requests: amounts("1", "1Gi")}, list("1", "1Gi"), list("", "1Gi")},
		{&v1alpha1.Resources{Limits: amounts("20m", "32Mi")}, list("20m", "32Mi"), list("20m", "32Mi")},
		{&v1alpha1.Resources{Requests: amounts("", "100Mi"), Limits: amounts("2", "")}, list("50m", "100Mi"), list("2", "256Mi")},
	} {
		s := v1alpha1.Server{Resources: c.set}
		got := s.EffectiveResources()
		g := NewWithT(t)
		g.Expect(got.Requests).To(HaveLen(len(c.requests)))
		g.Expect(got.Limits).To(HaveLen(len(c.limits)))
		for name, want := range c.requests {
			g.Expect(want.Equal(got.Requests[name])).To(BeTrue(), "request of %s", name)
		}
		for name, want := range c.limits {
			g.Expect(want.Equal(got.Limits[name])).To(BeTrue(), "limit of %s", name)
		}
	}
}

func TestSecretRefs_haveNoDuplicates(t *testing.T) {
	g := NewWithT(t)
	project, err := v1alpha1.DecodeProject(mustRead("testdata/full.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	project.Spec.APIKeys = append(project.Spec.APIKeys, project.Spec.APIKeys[0])
	var keys []string
	for _, ref := range project.Spec.SecretRefs() {
		keys = append(keys, ref.Name+"/"+ref.Key)
	}
	g.Expect(keys).To(Equal([]string{
		"shop/api-key", "shop/login", "shop/webhook-secret", "shop/webhook-secret-old", "shop/webhook-secret-test", "shop/access-token", "shop/app-secret",
		"shop/bot-token", "shop/gateway-token", "shop-db-app/uri", "shop-db-ca/ca.crt",
	}))
}

func TestEffectiveInit_prefersTheSpec(t *testing.T) {
	g := NewWithT(t)
	r := &v1alpha1.VerificationRequest{}
	g.Expect(r.EffectiveInit()).To(BeNil())
	r.Status.Init = &v1alpha1.Init{KeyName: "status"}
	g.Expect(r.EffectiveInit().KeyName).To(Equal("status"))
	r.Spec.Init = &v1alpha1.Init{KeyName: "spec"}
	g.Expect(r.EffectiveInit().KeyName).To(Equal("spec"))
}

func TestEffective_assurance(t *testing.T) {
	for name, c := range map[string]struct {
		set      *v1alpha1.AssuranceSettings
		level    v1alpha1.AssuranceLevel
		cooldown time.Duration
	}{
		"unset":         {nil, v1alpha1.AssuranceLevelPossession, 0},
		"with nothing":  {&v1alpha1.AssuranceSettings{}, v1alpha1.AssuranceLevelPossession, time.Hour},
		"session":       {&v1alpha1.AssuranceSettings{Level: v1alpha1.AssuranceLevelSession}, v1alpha1.AssuranceLevelSession, time.Hour},
		"no cool-down":  {&v1alpha1.AssuranceSettings{DeclineCooldown: "0s"}, v1alpha1.AssuranceLevelPossession, 0},
		"its cool-down": {&v1alpha1.AssuranceSettings{DeclineCooldown: "1h30m"}, v1alpha1.AssuranceLevelPossession, 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha1.VerificationProject{Spec: v1alpha1.VerificationProjectSpec{Assurance: c.set}}
			for range 2 { // and once more with defaults
				g.Expect(p.Spec.EffectiveAssuranceLevel()).To(Equal(c.level))
				g.Expect(p.Spec.EffectiveDeclineCooldown()).To(Equal(c.cooldown))
				p.Default()
			}
			g.Expect(p.Spec.Assurance == nil).To(Equal(c.set == nil), "unset stays unset")
		})
	}
}

// What serve decided when it accepted a request is part of its spec, which never changes.
func TestValidateUpdate_keepsTheTermsOfARequest(t *testing.T) {
	old := &v1alpha1.VerificationRequest{Spec: v1alpha1.VerificationRequestSpec{Init: &v1alpha1.Init{
		Assurance: v1alpha1.AssuranceLevelSession, Purpose: "sign-in", Browser: "APP/IOS",
	}}}
	refusals := func(change func(*v1alpha1.Init)) string {
		next := old.DeepCopy()
		change(next.Spec.Init)
		return next.ValidateUpdate(old).ToAggregate().Error()
	}
	g := NewWithT(t)
	g.Expect(refusals(func(*v1alpha1.Init) {})).NotTo(ContainSubstring("spec is immutable"))
	for name, change := range map[string]func(*v1alpha1.Init){
		"assurance": func(i *v1alpha1.Init) { i.Assurance = "" }, "purpose": func(i *v1alpha1.Init) { i.Purpose = "" },
		"browser": func(i *v1alpha1.Init) { i.Browser = "APP/ANDROID" },
	} {
		g.Expect(refusals(change)).To(ContainSubstring("spec is immutable"), name)
	}
}
