package settings

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// step is one read of a secret's file, and the values accepted right after it.
type step struct {
	after time.Duration // since the step before
	file  string        // "-" for a missing file, "!" for a disk error
	want  string        // the accepted values, the current one first
}

// TestSecrets_exactly_when checks the table of doc.go.
func TestSecrets_exactly_when(t *testing.T) {
	const end = 10 * time.Minute // the promise of docs/operations.md, not the constant
	for name, steps := range map[string][]step{
		"first":                        {{0, "A", "A"}},
		"unchanged":                    {{0, "A", "A"}, {time.Hour, "A", "A"}},
		"replaced, to the end":         {{0, "A", "A"}, {0, "B", "B A"}, {end - 1, "B", "B A"}, {1, "B", "B"}},
		"replaced, read once too late": {{0, "A", "A"}, {0, "B", "B A"}, {end, "B", "B"}},
		"replaced twice":               {{0, "A", "A"}, {0, "B", "B A"}, {time.Minute, "C", "C B A"}, {end - time.Minute, "C", "C B"}, {time.Minute, "C", "C"}},
		"back and forth":               {{0, "A", "A"}, {0, "B", "B A"}, {0, "A", "A B"}, {end - 1, "A", "A B"}, {1, "A", "A"}},
		"back after the end":           {{0, "A", "A"}, {0, "B", "B A"}, {end, "A", "A B"}},
		"many":                         {{0, "A", "A"}, {0, "B", "B A"}, {0, "C", "C B A"}, {0, "D", "D C B A"}, {0, "E", "E D C B A"}, {0, "F", "F E D C B"}},
		"deleted":                      {{0, "A", "A"}, {0, "-", ""}},
		"deleted in the overlap":       {{0, "A", "A"}, {0, "B", "B A"}, {0, "-", ""}},
		"deleted and back":             {{0, "A", "A"}, {0, "B", "B A"}, {0, "-", ""}, {0, "B", "B"}},
		"deleted and another":          {{0, "A", "A"}, {0, "-", ""}, {0, "B", "B"}},
		"emptied":                      {{0, "A", "A"}, {0, "", ""}, {0, "B", "B"}},
		"made unusable":                {{0, "A", "A"}, {0, "a b", ""}, {0, "B", "B"}},
		"disk fails":                   {{0, "A", "A"}, {0, "B", "B A"}, {0, "!", "B A"}, {end, "!", "B"}, {0, "B", "B"}},
		"disk fails at first":          {{0, "!", ""}, {0, "A", "A"}},
		"real, then simulated":         {{0, "A", "A"}, {0, "sim_1", "sim_1"}, {0, "sim_2", "sim_2 sim_1"}, {0, "A", "A"}},
		"newline added":                {{0, "A", "A"}, {0, "A\n", "A"}, {0, "A\r\n", "A"}},
	} {
		t.Run(name, func(t *testing.T) { checkSteps(t, use{fieldAccessToken, ref("shop", "token"), kindWhatsApp}, steps) })
	}
}

// checkSteps runs the steps with the file of one use.
func checkSteps(t *testing.T, u use, steps []step) {
	t.Helper()
	g := NewWithT(t)
	clk := clocktesting.NewFakePassiveClock(start)
	var secrets Secrets
	for i, s := range steps {
		clk.SetTime(clk.Now().Add(s.after))
		readings := readingsOf(map[string]string{u.ref.Key: s.file})
		if s.file == "!" {
			readings[u.ref] = reading{reason: ReasonUnreadable, unknown: true}
		}
		secrets = secrets.applyReadings([]use{u}, readings, clk.Now())
		g.Expect(joinAccepted(secrets.secretAt(u.field), clk.Now())).To(Equal(s.want), "step %d", i)
	}
}

func joinAccepted(s Secret, now time.Time) string {
	var values []string
	for _, v := range s.Accepted(now) {
		values = append(values, string(v))
	}
	return strings.Join(values, " ")
}

// TestSecrets_malformedAPIKey checks that a malformed key is revoked at once. Only webhook secrets get an overlap, since events
// need them.
func TestSecrets_malformedAPIKey(t *testing.T) {
	g := NewWithT(t)
	u := use{fieldAPIKey("backend"), ref("shop", "key"), kindAPIKey}
	var secrets Secrets
	for _, step := range []struct {
		file   string
		usable bool
	}{{"an-api-key-of-more-than-32-characters", true}, {"REPLACE-" + strings.Repeat("x", 32), false}} {
		secrets = secrets.applyReadings([]use{u}, readingsOf(map[string]string{u.ref.Key: step.file}), start)
		g.Expect(secrets.secretAt(u.field).Usable()).To(Equal(step.usable))
	}
}

func TestSecretAccepted_ends_without_another_read(t *testing.T) {
	g := NewWithT(t)
	s := NewSecret([]byte("A")).replacedBy([]byte("B"), start)
	g.Expect(joinAccepted(s, start.Add(Overlap-1))).To(Equal("B A"))
	g.Expect(joinAccepted(s, start.Add(Overlap))).To(Equal("B"))
}

func TestSecretAccepted_unusable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Secret{}.Accepted(start)).To(BeEmpty())
	g.Expect(Secret{}.Current()).To(BeNil())
	g.Expect(NewSecret(nil).Usable()).To(BeFalse())
	g.Expect(NewSecret([]byte{}).Usable()).To(BeFalse())
}

func TestSecrets_place_gone_or_moved(t *testing.T) {
	values := readingsOf(map[string]string{"a": "A", "b": "B"})
	token := func(key string) []use { return []use{{fieldAccessToken, ref("shop", key), kindWhatsApp}} }
	rotated := Secrets{}.applyReadings(token("a"), readingsOf(map[string]string{"a": "0"}), start).applyReadings(token("a"), values, start)
	NewWithT(t).Expect(joinAccepted(rotated.secretAt(fieldAccessToken), start)).To(Equal("A 0"))

	t.Run("gone", func(t *testing.T) {
		g := NewWithT(t)
		gone := rotated.applyReadings(nil, values, start)
		g.Expect(gone.secretAt(fieldAccessToken).Usable()).To(BeFalse())
		back := gone.applyReadings(token("a"), values, start)
		g.Expect(joinAccepted(back.secretAt(fieldAccessToken), start)).To(Equal("A"))
	})
	t.Run("refers to another key", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(joinAccepted(rotated.applyReadings(token("b"), values, start).secretAt(fieldAccessToken), start)).To(Equal("B"))
	})
	t.Run("another reference to the same key", func(t *testing.T) {
		g := NewWithT(t)
		both := append(token("a"), use{fieldDatabaseURI, ref("shop", "a"), kindDatabase})
		next := rotated.applyReadings(both, values, start)
		g.Expect(joinAccepted(next.secretAt(fieldDatabaseURI), start)).To(Equal("A"))
		g.Expect(joinAccepted(next.secretAt(fieldAccessToken), start)).To(Equal("A 0"))
	})
}

// TestSecrets_problems checks that a problem is reported with its key and without the value.
func TestSecrets_problems(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value, field string
		want              Reason
	}{
		"missing":                         {"app", "-", fieldAppSecret, ReasonMissing},
		"empty":                           {"app", "", fieldAppSecret, ReasonEmpty},
		"newline":                         {"app", "\n", fieldAppSecret, ReasonEmpty},
		"two newlines":                    {"token", goodToken + "\n\n", fieldAccessToken, ReasonInvalid},
		"space":                           {"token", goodToken + " ", fieldAccessToken, ReasonInvalid},
		"1 MiB":                           {"token", strings.Repeat("x", 1<<20), fieldAccessToken, ReasonTooLong},
		"longest":                         {"token", strings.Repeat("x", maxSecret) + "\r\n", "", ""},
		"one too long":                    {"token", strings.Repeat("x", maxSecret+1), fieldAccessToken, ReasonTooLong},
		"API key, newline":                {"backend", apiKey("") + "\n", "", ""},
		"API key, Windows newline":        {"backend", apiKey("") + "\r\n", "", ""},
		"API key, placeholder":            {"backend", "REPLACE-" + strings.Repeat("x", 32), fieldAPIKey("backend"), ReasonPlaceholder},
		"bot token, placeholder":          {"bot", "REPLACE-with-the-token-from-BotFather", fieldBotToken, ReasonPlaceholder},
		"API key, 31 characters":          {"backend", strings.Repeat("x", 31), fieldAPIKey("backend"), ReasonTooShort},
		"API key, 31 and newline":         {"backend", strings.Repeat("x", 31) + "\n", fieldAPIKey("backend"), ReasonTooShort},
		"API key, 32 characters":          {"backend", strings.Repeat("x", 32), "", ""},
		"API key, 4 KiB":                  {"backend", strings.Repeat("x", maxAPIKey), "", ""},
		"API key, over 4 KiB":             {"backend", strings.Repeat("x", maxAPIKey+1), fieldAPIKey("backend"), ReasonTooLong},
		"API key, space":                  {"backend", apiKey(" "), fieldAPIKey("backend"), ReasonInvalid},
		"API key, Unicode":                {"backend", apiKey("é"), fieldAPIKey("backend"), ReasonInvalid},
		"API key, NUL":                    {"backend", apiKey("\x00"), fieldAPIKey("backend"), ReasonInvalid},
		"API key, wrong checksum":         {"backend", "pp_" + strings.Repeat("0", 49), fieldAPIKey("backend"), ReasonInvalid},
		"API key, repeated":               {"monitor", apiKey("backend"), fieldAPIKey("monitor"), ReasonRepeated},
		"API key, repeated with newline":  {"monitor", apiKey("backend") + "\n", fieldAPIKey("monitor"), ReasonRepeated},
		"bot token":                       {"bot", "1:a-B_9", "", ""},
		"bot token, simulated":            {"bot", "sim_1:abc", "", ""},
		"bot token, simulated with space": {"bot", "sim_1 abc", fieldBotToken, ReasonInvalid},
		"bot token, no digits":            {"bot", "x:abc", fieldBotToken, ReasonInvalid},
		"bot token, path":                 {"bot", "1:a/../b", fieldBotToken, ReasonInvalid},
		"bot token, query":                {"bot", "1:a?b", fieldBotToken, ReasonInvalid},
		"bot token, newline inside":       {"bot", "1:a\nb", fieldBotToken, ReasonInvalid},
		"bot token, two newlines":         {"bot", "1:a\n\n", fieldBotToken, ReasonInvalid},
		"access token, newline inside":    {"token", "a\nb", fieldAccessToken, ReasonInvalid},
		"webhook secret, any bytes":       {"webhook", "\x00\xff ä" + strings.Repeat("\n", 20), "", ""},
		"webhook secret, 23 bytes":        {"webhook", strings.Repeat("x", 23), fieldWebhookSecret, ReasonWebhookSecretTooShort},
		"webhook secret, 23 and newline":  {"webhook", strings.Repeat("x", 23) + "\n", fieldWebhookSecret, ReasonWebhookSecretTooShort},
		"webhook secret, 24 bytes":        {"webhook", strings.Repeat("x", 24), "", ""},
		"webhook secret, base64 of 23":    {"webhook", "whsec_" + strings.Repeat("A", 31) + "=", fieldWebhookSecret, ReasonWebhookSecretTooShort},
		"webhook secret, base64 of 24":    {"webhook", "whsec_" + strings.Repeat("A", 32), "", ""},
		"webhook secret, base64 of 100":   {"webhook", "whsec_" + strings.Repeat("A", 134) + "==", "", ""},
		"webhook secret, prefix alone":    {"webhook", "whsec_", fieldWebhookSecret, ReasonWebhookSecretTooShort},
		"webhook secret, no base64":       {"webhook", "whsec_!!!", fieldWebhookSecret, ReasonNotBase64},
		"webhook secret, no padding":      {"webhook", "whsec_" + strings.Repeat("A", 31), fieldWebhookSecret, ReasonNotBase64},
		"webhook secret, base64url":       {"webhook", "whsec_" + strings.Repeat("A", 31) + "_", fieldWebhookSecret, ReasonNotBase64},
		"webhook secret, broken line":     {"webhook", "whsec_" + strings.Repeat("A", 32) + "\n" + strings.Repeat("A", 4), fieldWebhookSecret, ReasonNotBase64},
		"previous secret, short":          {"webhook-previous", "x", "", ""},
		"previous secret, no base64":      {"webhook-previous", "whsec_!!!", "", ""},
		"previous secret, placeholder":    {"webhook-previous", "REPLACE-me", fieldWebhookPrevious, ReasonPlaceholder},
		"webhook secret, missing":         {"webhook", "-", fieldWebhookSecret, ReasonMissing},
		"previous secret, empty":          {"webhook-previous", "\r\n", fieldWebhookPrevious, ReasonEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := newValues()
			values[tc.key] = tc.value
			s := settingsOf(newProject(), values)
			if tc.want == "" {
				g.Expect(s.Problems).To(BeEmpty())
				return
			}
			g.Expect(s.Problems).To(Equal([]Problem{problem(tc.field, tc.key, tc.want)}))
		})
	}
}

func TestSecrets_mixed_simulator(t *testing.T) {
	for name, tc := range map[string]struct {
		token, app, bot string
		mixed           bool
		simulated       bool
	}{
		"all real":            {goodToken, goodAppSecret, goodBotToken, false, false},
		"all simulated":       {"sim_a", "sim_b", "sim_c", false, true},
		"bot simulated":       {goodToken, goodAppSecret, "sim_c", false, true},
		"WhatsApp simulated":  {"sim_a", "sim_b", goodBotToken, false, true},
		"token simulated":     {"sim_a", goodAppSecret, goodBotToken, true, false},
		"secret simulated":    {goodToken, "sim_b", goodBotToken, true, false},
		"mixed and simulated": {goodToken, "sim_b", "sim_c", true, true},
		"sim_ inside":         {"x_sim_a", goodAppSecret, goodBotToken, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := newValues()
			values["token"], values["app"], values["bot"] = tc.token, tc.app, tc.bot
			s := settingsOf(newProject(), values)
			g.Expect(s.Simulated).To(Equal(tc.simulated))
			g.Expect(s.WhatsApp.AccessToken.Usable()).To(Equal(!tc.mixed))
			g.Expect(s.WhatsApp.AppSecret.Usable()).To(Equal(!tc.mixed))
			g.Expect(s.WhatsApp.Simulated).To(Equal(!tc.mixed && strings.HasPrefix(tc.token, "sim_")))
			g.Expect(s.Telegram.Simulated).To(Equal(strings.HasPrefix(tc.bot, "sim_")))
			if tc.mixed {
				g.Expect(s.Problems).To(Equal([]Problem{
					problem(fieldAccessToken, "token", ReasonMixedSimulator), problem(fieldAppSecret, "app", ReasonMixedSimulator),
				}))
			} else {
				g.Expect(s.Problems).To(BeEmpty())
			}
		})
	}
}

// TestSecrets_gatewayToken must not be the bot's, and be simulated if that is: codes follow from the bot's token.
func TestSecrets_gatewayToken(t *testing.T) {
	for name, tc := range map[string]struct {
		bot, gateway string
		want         Reason
	}{
		"both real":         {goodBotToken, "AAAAgateway", ""},
		"both simulated":    {"sim_shop_bot", "sim_gateway", ""},
		"bot simulated":     {"sim_shop_bot", "AAAAgateway", ReasonMixedSimulator},
		"gateway simulated": {goodBotToken, "sim_gateway", ReasonMixedSimulator},
		"the bot's":         {goodBotToken, goodBotToken, ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, values := newProject(), newValues()
			p.Spec.Telegram.Codes = &verifyv1.GatewayCodes{GatewayTokenSecretRef: ref("shop", "gateway")}
			values["bot"], values["gateway"] = tc.bot, tc.gateway
			s := settingsOf(p, values)
			g.Expect(s.Telegram.BotToken.Usable()).To(BeTrue())
			g.Expect(s.Telegram.Codes.Token.Usable()).To(Equal(tc.want == ""))
			if tc.want != "" {
				g.Expect(s.Problems).To(Equal([]Problem{problem(fieldGatewayToken, "gateway", tc.want)}))
			}
		})
	}
}

func TestSecrets_steady_state_is_equal(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	values := newValues()
	values["monitor"], values["app"], values["bot"] = values["backend"], "sim_mixed", ""
	all := listUses(&p.Spec)
	first := Secrets{}.applyReadings(all, readingsOf(values), start)
	g.Expect(first.listProblems()).To(HaveLen(4))
	second := first.applyReadings(all, readingsOf(values), start.Add(time.Hour))
	g.Expect(second.equal(first)).To(BeTrue())
	values["bot"] = goodBotToken
	g.Expect(second.applyReadings(all, readingsOf(values), start).equal(first)).To(BeFalse())
}

func TestUses_are_what_pods_mount(t *testing.T) {
	g := NewWithT(t)
	p := newProject()
	p.Spec.Storage = verifyv1.Storage{
		Type: verifyv1.StoragePostgreSQL,
		PostgreSQL: &verifyv1.PostgreSQL{
			URISecretRef: verifyv1.URISecretRef{Name: "shop-db"}, CASecretRef: &verifyv1.CASecretRef{Name: "shop-db-ca"},
		},
	}
	var refs []verifyv1.SecretKeyRef
	for _, u := range listUses(&p.Spec) {
		refs = append(refs, u.ref)
	}
	g.Expect(refs).To(Equal(p.Spec.SecretRefs()))
}

// TestSecretShared_isKnownToAllReplicas: kubelets bring a new value to one pod after the other.
func TestSecretShared_isKnownToAllReplicas(t *testing.T) {
	g := NewWithT(t)
	s := NewSecret([]byte("A"))
	g.Expect(string(s.Shared(start))).To(Equal("A"))
	s = s.replacedBy([]byte("B"), start)
	g.Expect(string(s.Shared(start))).To(Equal("A"))
	g.Expect(string(s.Shared(start.Add(spreadTime - 1)))).To(Equal("A"))
	g.Expect(string(s.Shared(start.Add(spreadTime)))).To(Equal("B"))
	g.Expect(Secret{}.Shared(start)).To(BeEmpty())
}
