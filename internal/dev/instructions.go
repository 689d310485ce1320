package dev

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// printInstructions says where everything is and how to begin, at once. It prints no value that was given.
func (o *Options) printInstructions(out io.Writer, s *settings.Settings, f *projectFiles) {
	var b strings.Builder
	printRow := func(name, value, about string) { fmt.Fprintf(&b, "  %-15s %s  %s\n", name, value, about) }
	fmt.Fprintf(&b, "PhoneProof dev: project %s, everything in memory, every messenger simulated.\n\n", s.Project)
	printRow("Page", o.page.url()+"/", "play the phones, see the webhooks")
	printRow("API", o.api.url(), "call it with an API key")
	for _, k := range f.keys {
		printRow("API key", f.showSecret(k.SecretRef), describeKey(k))
	}
	printRow("Receiver", o.page.url()+"/receiver", o.aboutReceiver(s))
	printRow("Events", o.page.url()+"/receiver/deliveries", "what it has received")
	for _, m := range f.made {
		if strings.HasPrefix(m.field, "spec.webhook.") {
			printRow("Webhook secret", f.showSecret(m.ref), m.field)
		}
	}
	b.WriteString("\n")
	for i, m := range f.made {
		if f.given != "" && (i == 0 || m.ref != f.made[i-1].ref) {
			fmt.Fprintf(&b, "made up: %s/%s, not in %s\n", m.ref.Name, m.ref.Key, f.given)
		}
	}
	o.printTries(&b, s, f)
	o.printSnippets(&b, s, f)
	for _, warning := range o.listWarnings(s, f) {
		fmt.Fprintln(&b, "WARNING: "+warning)
	}
	_, _ = io.WriteString(out, b.String()) // without a terminal no one reads it
}

// showSecret returns a secret as a shell takes it: the value if it is made up, or else what reads it.
func (f *projectFiles) showSecret(ref verifyv1.SecretKeyRef) string {
	path, given := f.findSecret(ref)
	if !given {
		return readSecret(path)
	}
	return "$(cat '" + strings.ReplaceAll(path, "'", `'\''`) + "')"
}

func describeKey(k verifyv1.APIKey) string {
	mode := verifyv1.KeyModeLive
	if k.IsTest() {
		mode = verifyv1.KeyModeTest
	}
	return fmt.Sprintf("%s: scopes %s, mode %s", k.Name, strings.Trim(fmt.Sprint(k.EffectiveScopes()), "[]"), mode)
}

// printTries prints lines for a shell: those that verify a number through each messenger and by a code, and those for limits and failures.
func (o *Options) printTries(b *strings.Builder, s *settings.Settings, f *projectFiles) {
	const sendsJSON = "-H 'Content-Type: application/json'"
	fmt.Fprint(b, "\nTry it: paste the lines below, which end with VERIFIED each time.\n")
	if f.hasPageKey() {
		fmt.Fprintf(b, "\n  API_KEY=%s\n", f.showSecret(f.keys[0].SecretRef))
	}
	onWhatsApp := s.WhatsApp != nil && s.WhatsApp.Simulated
	for _, m := range []struct {
		name, link string
		possible   bool
		method     verification.Method
	}{
		{"WhatsApp", "waLink", onWhatsApp, verification.WhatsApp},
		{"Telegram", "tgLink", s.Telegram != nil && s.Telegram.Simulated, verification.Telegram},
		{"A code that WhatsApp brings to the number", "", onWhatsApp && f.mayDeliver(s), verification.WhatsApp},
	} {
		if !m.possible || s.Method(m.method) != settings.MethodReady || !f.hasPageKey() || s.Suspended {
			continue
		}
		number := chooseUser(s)
		user := o.page.url() + "/sim/users/" + number
		body := fmt.Sprintf(`{"phoneNumber": "%s", "method": "%s", "subject": "user-1"}`, number, m.method)
		if m.link == "" {
			body = strings.TrimSuffix(body, "}") + `, "deliver": "CODE"}`
		}
		extract := func(field string) string { return `$(echo "$begun" | sed 's/.*"` + field + `":"\([^"]*\)".*/\1/')` }
		fmt.Fprintf(b, "\n%s:\n\n  begun=$(curl -sS %s/api/verify/init -H \"Authorization: Bearer $API_KEY\" %s -d '%s'); echo \"$begun\"\n",
			m.name, o.api.url(), sendsJSON, body)
		confirm := func(code string) {
			fmt.Fprintf(b, "  curl -sS %s/api/verify/confirm -H \"Authorization: Bearer $API_KEY\" %s -d %s\n", o.api.url(), sendsJSON,
				`"{\"requestId\": \"$id\", \"code\": \"`+code+`\"}"`)
		}
		if m.link == "" {
			fmt.Fprintf(b, "  id=%s\n", extract("requestId"))
			fmt.Fprintf(b, "  until code=$(curl -sS %s/chats | grep -o '[0-9]\\{8\\} is your verification code'); do sleep 1; done\n", user)
			confirm(`$(echo "$code" | tail -n 1 | cut -c1-8)`)
			continue
		}
		fmt.Fprintf(b, "  id=%s link=%s\n", extract("requestId"), extract(m.link))
		fmt.Fprintf(b, "  curl -sS %s/send %s -d \"{\\\"link\\\": \\\"$link\\\"}\"\n", user, sendsJSON)
		if m.name == "Telegram" {
			fmt.Fprintf(b, "  curl -sS %s/share-contact %s -d '{\"wait\": \"20s\"}'\n", user, sendsJSON)
		}
		if s.Level != verification.LevelSession {
			fmt.Fprintf(b, "  curl -sS \"%s/api/verify/status?id=$id&wait=20s\" -H \"Authorization: Bearer $API_KEY\"\n", o.api.url())
		} else { // the digits are in the last message of the chat that was opened last
			fmt.Fprintf(b, "  until digits=$(curl -sS %s/chats | grep -o ': [0-9]\\{6\\}[^}]*}]}]}$'); do sleep 1; done\n", user)
			confirm(`$(echo "$digits" | cut -c3-8)`)
		}
	}
	fmt.Fprintf(b, `
Reset limits and cool-downs; answer the next init with 429; answer the next call of any operation with 503:

  curl -sS -X DELETE %[1]s/sim/limits
  curl -sS %[1]s/sim/faults %[2]s -d '{"platform": "api", "method": "init", "status": 429, "retryAfter": 7}'
  curl -sS %[1]s/sim/faults %[2]s -d '{"platform": "api", "status": 503}'

`, o.page.url(), sendsJSON)
}

// printSnippets prints how a program verifies a number here, in each language of a library. It reads a key that was given from its
// environment.
func (o *Options) printSnippets(b *strings.Builder, s *settings.Settings, f *projectFiles) {
	if !f.hasPageKey() || s.Suspended || s.WhatsApp == nil || !s.WhatsApp.Simulated {
		return
	}
	if s.Level == verification.LevelSession {
		b.WriteString("In a program: docs/examples/session has websites in Go, Node and Python.\n\n")
		return
	}
	keys := [3]string{`os.Getenv("API_KEY")`, "process.env.API_KEY", `os.environ["API_KEY"]`}
	if path, given := f.findSecret(f.keys[0].SecretRef); !given {
		keys = [3]string{`"` + readSecret(path) + `"`, "'" + readSecret(path) + "'", `"` + readSecret(path) + `"`}
	}
	fmt.Fprintf(b, `In a program: docs/clients.md installs the libraries. Open the link on the page, and send the text.

Go, with import phoneproof "github.com/phoneproof/phoneproof/sdk/go":

  client, err := phoneproof.New("%[1]s", %[3]s)
  if err != nil {
    return err
  }
  started, err := client.Start(ctx, phoneproof.StartParams{PhoneNumber: "%[2]s", Subject: "user-1"})
  if err != nil {
    return err
  }
  fmt.Println(started.WALink)
  status, err := client.Wait(ctx, started.RequestID)
  if err != nil {
    return err
  }
  fmt.Println(status.Status)

TypeScript:

  import { PhoneProof } from 'PhoneProof'
  const client = new PhoneProof({ baseURL: '%[1]s', apiKey: %[4]s })
  const started = await client.start({ phoneNumber: '%[2]s', subject: 'user-1' })
  console.log(started.waLink)
  console.log((await client.wait(started.requestId)).status)

Python:

  import phoneproof
  client = phoneproof.PhoneProof("%[1]s", %[5]s)
  started = client.start("%[2]s", subject="user-1")
  print(started.wa_link)
  print(client.wait(started.request_id).status)

`, o.api.url(), chooseUser(s), keys[0], keys[1], keys[2])
}

// mayDeliver reports whether the first key may have a code sent to the number of chooseUser.
func (f *projectFiles) mayDeliver(s *settings.Settings) bool {
	if s.WhatsApp.Codes == nil || !f.hasPageKey() || !slices.Contains(f.keys[0].EffectiveScopes(), verifyv1.ScopeDeliver) {
		return false
	}
	number, err := phone.FromE164(chooseUser(s))
	if err != nil {
		return false
	}
	region, _, known := phone.RegionOf(number)
	return known && s.WhatsApp.Codes.Countries[region]
}

// chooseUser returns the number of a simulated user that the project may verify: any but its own.
func chooseUser(s *settings.Settings) string {
	users := simulator.DefaultUsers()
	if number, err := phone.FromE164(users[0].Phone); err == nil && s.IsOwnNumber(number) {
		return users[1].Phone
	}
	return users[0].Phone
}

func (o *Options) aboutReceiver(s *settings.Settings) string {
	switch {
	case s.Webhook == nil:
		return "(the project has no spec.webhook)"
	case s.Webhook.URL != o.page.url()+"/receiver":
		return "(set spec.webhook.url to it to see the events here)"
	case !s.Webhook.Signed:
		return "takes the project's events, which are not signed"
	default:
		return "takes the project's events and checks their signatures"
	}
}

// listWarnings say what of the project does not work here.
func (o *Options) listWarnings(s *settings.Settings, f *projectFiles) []string {
	var all []string
	const unsimulated = "'s credentials do not begin with sim_, so it does not work here: nothing goes to real platforms from dev"
	if s.WhatsApp != nil && !s.WhatsApp.Simulated {
		all = append(all, "spec.whatsapp"+unsimulated)
	}
	if s.Telegram != nil && !s.Telegram.Simulated {
		all = append(all, "spec.telegram"+unsimulated)
	}
	if !f.hasPageKey() {
		all = append(all, "no API key of the mode Live has both scopes Init and Status, so the page cannot start verifications")
	}
	if s.Suspended {
		all = append(all, "spec.suspend is true: init answers 503 project_suspended until the file says otherwise")
	}
	if w := s.Webhook; w != nil {
		for _, target := range [][3]string{{"url", w.URL, "events"}, {"testURL", w.TestURL, "events of test keys"}} {
			to, err := url.Parse(target[1])
			if err == nil && target[1] != "" && to.Hostname() != "localhost" && !isLoopback(to.Hostname()) {
				all = append(all, "spec.webhook."+target[0]+" is not on this machine, so no "+target[2]+" are sent: simulated ones must not leave it")
			}
		}
	}
	if s.Webhook != nil && s.Webhook.TestUnsigned {
		all = append(all, "spec.webhook.testURL is set without testSecretRef, so no events of test keys are sent")
	}
	if s.Database != nil {
		all = append(all, "spec.storage is ignored: dev keeps requests in memory")
	}
	for _, p := range s.Problems {
		all = append(all, p.String())
	}
	return all
}
