package settings

import (
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

func TestFromProject_everything(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.ProjectID, p.Spec.DisplayName, p.Spec.Suspend = "shop-production", "Ada's Bookshop", new(true)
	p.Spec.Webhook.Timeout, p.Spec.Webhook.CABundle = "20s", "-----BEGIN CERTIFICATE-----"
	p.Spec.WhatsApp.TakeOver, p.Spec.WhatsApp.HiddenNumbers = new(true), verifyv1.HiddenNumbersSharedContact
	p.Spec.WhatsApp.AcceptAnyText, p.Spec.WhatsApp.BusinessAccountID = new(true), "102290129340398"
	p.Spec.WhatsApp.SilentAfter = "90m"
	p.Spec.Telegram.TakeOver = new(true)
	p.Spec.Replies = &verifyv1.Replies{
		Send: verifyv1.SendRepliesOnTrouble, Verified: "v", WrongNumber: "w", Expired: "e", Unknown: "u", ShareContact: "s", NumberHidden: "n",
	}
	p.Spec.Request = verifyv1.RequestSettings{TTL: "5m", Retention: "2h", MaxStored: new(int32(7))}
	p.Spec.RateLimit = verifyv1.RateLimit{
		PerKey:         &verifyv1.Rate{Requests: 3, Period: "1h"},
		PerPhoneNumber: &verifyv1.Rate{Requests: 2, Period: "30s"},
		PerPrefix:      &verifyv1.PrefixRate{Digits: 6, Requests: 100, Period: "10m"},
		PerSubject:     &verifyv1.Rate{Requests: 20, Period: "1h"},
	}
	s := settingsOf(p, newValues())

	g.Expect(s.Project).To(Equal("books/shop"))
	g.Expect(s.ProjectID).To(Equal("shop-production"))
	g.Expect(s.DisplayName).To(Equal("Ada's Bookshop"))
	g.Expect(s.BaseURL).To(Equal("https://verify.example.com/shop"))
	g.Expect(s.PathPrefix).To(Equal("/shop"))
	g.Expect(s.Suspended).To(BeTrue())
	g.Expect(s.TTL).To(Equal(5 * time.Minute))
	g.Expect(s.Retention).To(Equal(2 * time.Hour))
	g.Expect(s.Limits).To(Equal(verification.Limits{
		PerKey:         verification.Rate{Requests: 3, Period: time.Hour},
		PerPhoneNumber: verification.Rate{Requests: 2, Period: 30 * time.Second},
		PerPrefix:      verification.PrefixRate{Rate: verification.Rate{Requests: 100, Period: 10 * time.Minute}, Digits: 6},
		PerSubject:     verification.Rate{Requests: 20, Period: time.Hour},
		MaxStored:      7,
	}))
	g.Expect(s.Replies).To(Equal(Replies{SendOnTrouble}))
	own := s.TextsIn("")
	g.Expect([]string{own.Verified, own.WrongNumber, own.Expired, own.Unknown, own.ShareContact, own.NumberHidden}).
		To(Equal([]string{"v", "w", "e", "u", "s", "n"}))
	g.Expect(s.Problems).To(BeEmpty())
	g.Expect(s.Simulated).To(BeFalse())
	g.Expect(s.Database).To(BeNil())

	g.Expect(*s.WhatsApp).To(Equal(WhatsApp{
		PhoneNumber: "+15550100123", PhoneNumberID: "106540352242922", BusinessAccountID: "102290129340398",
		AccessToken: NewSecret([]byte(goodToken)), AppSecret: NewSecret([]byte(goodAppSecret)),
		RegisterWebhook: true, TakeOver: true, HiddenNumbers: HiddenShared, AcceptAnyText: true, SilentAfter: 90 * time.Minute,
	}))
	g.Expect(*s.Telegram).To(Equal(Telegram{
		BotUsername: "ada_books_bot", BotToken: NewSecret([]byte(goodBotToken)), TakeOver: true,
	}))
	g.Expect(*s.Webhook).To(Equal(Webhook{
		URL: "https://shop.example.com/hook", Signed: true,
		Secret: NewSecret([]byte(goodWebhook)), PreviousSecret: NewSecret([]byte(goodPrevious)),
		Timeout: 20 * time.Second, Events: verification.NewEventKinds(verification.EventSuccess), CABundle: []byte("-----BEGIN CERTIFICATE-----"),
	}))
	g.Expect(s.Method(verification.WhatsApp)).To(Equal(MethodReady))
	g.Expect(s.Method(verification.Telegram)).To(Equal(MethodReady))
	g.Expect(s.EventPolicy()).To(Equal(verification.EventsOn))
}

func TestFromProject_smallest(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	g.Expect(settingsOf(p, newValues()).WhatsApp.SilentAfter).To(Equal(time.Hour))
	p.Spec.BaseURL, p.Spec.Webhook, p.Spec.WhatsApp = "", nil, nil
	s := settingsOf(p, newValues())

	g.Expect(s.ProjectID).To(Equal("books/shop"))
	g.Expect(s.DisplayName).To(Equal("shop"))
	g.Expect(s.BaseURL + s.PathPrefix).To(BeEmpty())
	g.Expect(s.WhatsApp).To(BeNil())
	g.Expect(s.Webhook).To(BeNil())
	g.Expect(s.Telegram.Polling).To(BeTrue())
	g.Expect(s.TTL).To(Equal(10 * time.Minute))
	g.Expect(s.Retention).To(Equal(time.Hour))
	g.Expect(s.Limits.MaxStored).To(Equal(1500))
	g.Expect(s.Limits.PerKey).To(Equal(verification.Rate{Requests: 750, Period: 15 * time.Minute}))
	g.Expect(s.LimitsContradiction).To(BeEmpty(), "the defaults fit each other")
	g.Expect(s.Method(verification.WhatsApp)).To(Equal(MethodNotConfigured))
	g.Expect(s.EventPolicy()).To(Equal(verification.EventsOff))
}

// TestFromProject_longestTTL: no project's requests live longer than the messengers count on.
func TestFromProject_longestTTL(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.Request.TTL = verifyv1.DurationOf(verification.MaxTTL)
	g.Expect(p.Validate()).To(BeEmpty())
	g.Expect(settingsOf(p, newValues()).TTL).To(Equal(verification.MaxTTL))
	p.Spec.Request.TTL = verifyv1.DurationOf(verification.MaxTTL + time.Second)
	g.Expect(p.Validate()).NotTo(BeEmpty())
}

func TestFromProject_postgresql(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.Storage = verifyv1.Storage{
		Type:       verifyv1.StoragePostgreSQL,
		PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop"}},
	}
	values := newValues()
	values["uri"] = goodDatabaseURI + "\n"
	s := settingsOf(p, values)
	g.Expect(string(s.Database.URI.Current())).To(Equal(goodDatabaseURI))
	g.Expect(s.Database.OwnCA).To(BeFalse())
	g.Expect(s.Database.CA.Usable()).To(BeFalse())
	g.Expect(s.Retention).To(Equal(24 * time.Hour))

	values["uri"] = "-"
	s = settingsOf(p, values)
	g.Expect(s.Database.URI.Usable()).To(BeFalse())
	g.Expect(s.Problems).To(ConsistOf(problem(fieldDatabaseURI, "uri", ReasonMissing)))
}

func TestFromProject_postgresql_authority(t *testing.T) {
	p := newProject()
	p.Spec.Storage = verifyv1.Storage{Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{
		URISecretRef: verifyv1.URISecretRef{Name: "shop"}, CASecretRef: &verifyv1.CASecretRef{Name: "shop"},
	}}
	authority, err := pgserver.NewAuthority(canary)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	certificate, err := authority.Certify("db")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	good := string(authority.PEM)
	for name, tc := range map[string]struct {
		value string
		want  Reason
	}{
		"good":                {good, ""},
		"two":                 {good + string(certificate.Chain), ""},
		"with comments":       {"# the authority\n" + good + "# its end\n", ""},
		"Windows line ends":   {strings.ReplaceAll(good, "\n", "\r\n"), ""},
		"missing":             {"-", ReasonMissing},
		"empty":               {"\n", ReasonEmpty},
		"no PEM":              {canary, ReasonNoCertificate},
		"a key":               {string(certificate.Key), ReasonNoCertificate},
		"PEM of nothing":      {"-----BEGIN CERTIFICATE-----\n" + canary + "\n-----END CERTIFICATE-----\n", ReasonNoCertificate},
		"cut off in the text": {good[:len(good)/2], ReasonNoCertificate},
		"too long":            {good + strings.Repeat("#", maxSecret), ReasonTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := newValues()
			values["uri"], values["ca.crt"] = goodDatabaseURI, tc.value
			s := settingsOf(p, values)
			g.Expect(s.Database.OwnCA).To(BeTrue())
			g.Expect(s.Database.URI.Usable()).To(BeTrue())
			if tc.want != "" {
				g.Expect(s.Database.CA.Usable()).To(BeFalse())
				g.Expect(s.Problems).To(Equal([]Problem{problem(fieldDatabaseCA, "ca.crt", tc.want)}))
				return
			}
			g.Expect(s.Problems).To(BeEmpty())
			g.Expect(string(s.Database.CA.Current())).To(Equal(string(trimNewline([]byte(tc.value)))))
		})
	}
}

func TestFromProject_keys(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.APIKeys[0].ExpiresAt = new(metav1.NewTime(start.Add(time.Minute)))
	s := settingsOf(p, newValues())

	backend, err := s.Keys.Find(apiKey("backend"), start)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(backend.Name).To(Equal("backend"))
	g.Expect(backend.Scopes).To(Equal(ScopeInit | ScopeStatus))
	monitor, err := s.Keys.Find(apiKey("monitor"), start)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(monitor.Scopes).To(Equal(ScopeStatus))
	_, err = s.Keys.Find(apiKey("backend"), start.Add(time.Minute))
	g.Expect(err).To(MatchError(ErrKeyExpired))
}

// findKeyName returns the name of the key with the value, or "".
func findKeyName(s *Settings, value string, now time.Time) string {
	key, err := s.Keys.Find(value, now)
	if err != nil {
		return ""
	}
	return key.Name
}

func TestFromProject_rotated_keys(t *testing.T) {
	p := newProject()
	all := listUses(&p.Spec)
	rotate := func(changes ...map[string]string) *Settings {
		secrets := Secrets{}.applyReadings(all, readingsOf(newValues()), start)
		for _, c := range changes {
			values := newValues()
			maps.Copy(values, c)
			secrets = secrets.applyReadings(all, readingsOf(values), start)
		}
		return FromProject(p, secrets)
	}
	t.Run("former value with the scopes and the end of its key", func(t *testing.T) {
		g := NewWithT(t)
		s := rotate(map[string]string{"monitor": apiKey("new")})
		key, err := s.Keys.Find(apiKey("monitor"), start.Add(Overlap-1))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(key.Name).To(Equal("monitor"))
		g.Expect(key.Scopes).To(Equal(ScopeStatus))
		_, err = s.Keys.Find(apiKey("monitor"), start.Add(Overlap))
		g.Expect(err).To(MatchError(ErrKeyUnknown))
		g.Expect(findKeyName(s, apiKey("new"), start.Add(Overlap))).To(Equal("monitor"))
	})
	t.Run("a value that moves to another name belongs to it", func(t *testing.T) {
		g := NewWithT(t)
		s := rotate(map[string]string{"backend": apiKey("new"), "monitor": apiKey("backend")})
		g.Expect(findKeyName(s, apiKey("backend"), start.Add(time.Hour))).To(Equal("monitor"))
		g.Expect(s.Problems).To(BeEmpty())
	})
	t.Run("a value that two names had belongs to the one that had it last", func(t *testing.T) {
		g := NewWithT(t)
		secrets := Secrets{}.applyReadings(all, readingsOf(newValues()), start)
		values := newValues()
		values["backend"], values["monitor"] = apiKey("new"), apiKey("backend")
		secrets = secrets.applyReadings(all, readingsOf(values), start)
		values["monitor"] = apiKey("newer")
		secrets = secrets.applyReadings(all, readingsOf(values), start.Add(time.Minute))
		g.Expect(findKeyName(FromProject(p, secrets), apiKey("backend"), start.Add(Overlap))).To(Equal("monitor"))
	})
	t.Run("a repeated value takes the former ones of the second name along", func(t *testing.T) {
		g := NewWithT(t)
		s := rotate(map[string]string{"monitor": apiKey("new")}, map[string]string{"monitor": apiKey("backend")})
		g.Expect(findKeyName(s, apiKey("backend"), start)).To(Equal("backend"))
		g.Expect(findKeyName(s, apiKey("new"), start)).To(BeEmpty())
		g.Expect(findKeyName(s, apiKey("monitor"), start)).To(BeEmpty())
		g.Expect(s.Problems).To(ConsistOf(problem(fieldAPIKey("monitor"), "monitor", ReasonRepeated)))
	})
	t.Run("a key that leaves the project is refused at once", func(t *testing.T) {
		g := NewWithT(t)
		secrets := Secrets{}.applyReadings(all, readingsOf(newValues()), start)
		values := newValues()
		values["monitor"] = apiKey("new")
		secrets = secrets.applyReadings(all, readingsOf(values), start)
		without := newProject()
		without.Spec.APIKeys = without.Spec.APIKeys[:1]
		s := FromProject(without, secrets.applyReadings(listUses(&without.Spec), readingsOf(values), start))
		g.Expect(findKeyName(s, apiKey("new"), start)).To(BeEmpty())
		g.Expect(findKeyName(s, apiKey("monitor"), start)).To(BeEmpty())
		g.Expect(findKeyName(s, apiKey("backend"), start)).To(Equal("backend"))
	})
}

func TestFromProject_bad_secret_disables_just_what_needs_it(t *testing.T) {
	for name, tc := range map[string]struct {
		key                string
		whatsApp, telegram Readiness
		events             verification.EventPolicy
		backend            string
	}{
		"API key":          {"backend", MethodReady, MethodReady, verification.EventsOn, ""},
		"webhook secret":   {"webhook", MethodReady, MethodReady, verification.EventsPaused, "backend"},
		"previous secret":  {"webhook-previous", MethodReady, MethodReady, verification.EventsOn, "backend"},
		"access token":     {"token", MethodReady, MethodReady, verification.EventsOn, "backend"},
		"app secret":       {"app", MethodNotReady, MethodReady, verification.EventsOn, "backend"},
		"Telegram's token": {"bot", MethodReady, MethodNotReady, verification.EventsOn, "backend"},
	} {
		for _, bad := range []string{"-", "", "\n", "\x00"} {
			if bad == "\x00" && (tc.key == "webhook" || tc.key == "webhook-previous") {
				continue // a signing key is any bytes
			}
			t.Run(name+" "+bad, func(t *testing.T) {
				g := NewWithT(t)
				values := newValues()
				values[tc.key] = bad
				s := settingsOf(newProject(), values)
				g.Expect(s.Problems).To(HaveLen(1))
				g.Expect(s.Method(verification.WhatsApp)).To(Equal(tc.whatsApp))
				g.Expect(s.Method(verification.Telegram)).To(Equal(tc.telegram))
				g.Expect(s.EventPolicy()).To(Equal(tc.events))
				g.Expect(findKeyName(s, apiKey("backend"), start)).To(Equal(tc.backend))
				g.Expect(findKeyName(s, apiKey("monitor"), start)).To(Equal("monitor"))
			})
		}
	}
}

func TestConvertScopes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(convertScopes(nil)).To(BeZero())
	g.Expect(convertScopes([]verifyv1.Scope{verifyv1.ScopeRead})).To(Equal(ScopeRead))
	g.Expect(convertScopes([]verifyv1.Scope{verifyv1.ScopeRedeliver})).To(Equal(ScopeRedeliver))
	g.Expect(convertScopes([]verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeRead, verifyv1.ScopeRedeliver})).
		To(Equal(ScopeInit | ScopeStatus | ScopeRead | ScopeRedeliver))
}
