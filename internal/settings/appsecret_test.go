package settings

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Two app secrets in the form of Meta's.
const (
	oneApp     = "0123456789abcdef0123456789abcdef"
	anotherApp = "00000000000000000000000000000001"
)

// TestSecrets_appSecret: what a stranger could guess, or what others know, verifies nothing.
func TestSecrets_appSecret(t *testing.T) {
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte(oneApp))
	for name, tc := range map[string]struct {
		value string
		other map[string]string // values of other secrets
		want  Reason
	}{
		"in its form":                  {oneApp, nil, ""},
		"one digit differs":            {anotherApp, nil, ""},
		"trailing newline":             {oneApp + "\n", nil, ""},
		"two newlines":                 {oneApp + "\n\n", nil, ReasonNotAppSecret},
		"blank before":                 {" " + oneApp, nil, ReasonNotAppSecret},
		"x":                            {"x", nil, ReasonNotAppSecret},
		"a word":                       {"changeme", nil, ReasonNotAppSecret},
		"a port":                       {"5432", nil, ReasonNotAppSecret},
		"31 digits":                    {oneApp[1:], nil, ReasonNotAppSecret},
		"33 digits":                    {oneApp + "0", nil, ReasonNotAppSecret},
		"upper case":                   {strings.ToUpper(oneApp), nil, ReasonNotAppSecret},
		"no hex":                       {strings.Replace(oneApp, "f", "g", 1), nil, ReasonNotAppSecret},
		"all zeros":                    {strings.Repeat("0", 32), nil, ReasonNotAppSecret},
		"all f":                        {strings.Repeat("f", 32), nil, ReasonNotAppSecret},
		"placeholder":                  {"REPLACE-with-the-app-secret", nil, ReasonPlaceholder},
		"an API key":                   {oneApp, map[string]string{"monitor": oneApp}, ReasonKnownToOthers},
		"the webhook secret":           {oneApp, map[string]string{"webhook": oneApp}, ReasonKnownToOthers},
		"what follows whsec_ there":    {oneApp, map[string]string{"webhook": "whsec_" + oneApp}, ReasonKnownToOthers},
		"what is encoded there":        {oneApp, map[string]string{"webhook": encoded}, ReasonKnownToOthers},
		"the former webhook secret":    {oneApp, map[string]string{"webhook-previous": oneApp}, ReasonKnownToOthers},
		"simulated":                    {"sim_x", map[string]string{"token": "sim_x"}, ""}, // without --simulator-url see TestHook_simulatedAccountWithoutSimulator
		"simulated, real token":        {"sim_" + oneApp, nil, ReasonMixedSimulator},
		"simulated with a blank":       {"sim_ x", map[string]string{"token": "sim_x"}, ReasonNotAppSecret},
		"in its form, simulated token": {oneApp, map[string]string{"token": "sim_x"}, ReasonMixedSimulator},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := newValues()
			values["app"] = tc.value
			maps.Copy(values, tc.other)
			s := settingsOf(newProject(), values)
			g.Expect(s.WhatsApp.AppSecret.Usable()).To(Equal(tc.want == ""))
			for _, p := range s.Problems {
				g.Expect(p.Reason).To(Equal(tc.want))
			}
			if tc.want != "" {
				g.Expect(s.Problems).To(ContainElement(problem(fieldAppSecret, "app", tc.want)))
			}
		})
	}
}

// TestSecrets_appSecretReplacedByMistake: a bad value is never accepted, and the good one stays in use for one Overlap.
func TestSecrets_appSecretReplacedByMistake(t *testing.T) {
	const a, b, bad = oneApp, anotherApp, "changeme"
	for name, steps := range map[string][]step{
		"at first":            {{0, bad, ""}, {0, a, a}},
		"to the end":          {{0, a, a}, {0, bad, a}, {Overlap - 1, bad, a}, {1, bad, ""}},
		"another mistake":     {{0, a, a}, {0, bad, a}, {time.Minute, "REPLACE-me", a}},
		"solved":              {{0, a, a}, {0, bad, a}, {time.Minute, b, b + " " + a}},
		"deleted, a decision": {{0, a, a}, {0, "-", ""}, {0, bad, ""}},
		"simulated":           {{0, a, a}, {0, "sim_x", "sim_x"}, {0, bad, "sim_x"}},
	} {
		t.Run(name, func(t *testing.T) { checkSteps(t, use{fieldAppSecret, ref("shop", "app"), kindAppSecret}, steps) })
	}
}

// TestSecrets_appSecretKnownToOthers: the order in which two secrets get one value does not matter.
func TestSecrets_appSecretKnownToOthers(t *testing.T) {
	g := NewWithT(t)
	all := listUses(&newProject().Spec)
	values := newValues()
	first := Secrets{}.applyReadings(all, readingsOf(values), start)

	values["app"], values["monitor"] = oneApp, oneApp
	second := first.applyReadings(all, readingsOf(values), start)
	g.Expect(second.listProblems()).To(Equal([]Problem{problem(fieldAppSecret, "app", ReasonKnownToOthers)}))
	g.Expect(joinAccepted(second.secretAt(fieldAppSecret), start)).To(Equal(goodAppSecret))
	g.Expect(second.applyReadings(all, readingsOf(values), start).equal(second)).To(BeTrue())
	over := second.applyReadings(all, readingsOf(values), start.Add(Overlap))
	g.Expect(over.secretAt(fieldAppSecret).Usable()).To(BeFalse())
	g.Expect(over.findLapsed(second)).To(HaveLen(1))

	values["app"], values["monitor"] = goodAppSecret, goodAppSecret
	g.Expect(first.applyReadings(all, readingsOf(values), start).secretAt(fieldAppSecret).Usable()).To(BeFalse(), "clients know it from now on")
}
