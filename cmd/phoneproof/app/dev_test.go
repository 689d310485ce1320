package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/test/ports"
)

// devProcess is a dev that runs until the test ends.
type devProcess struct {
	*WithT

	t              *testing.T
	out            *gbytes.Buffer
	api, page, key string
	// stop ends dev and returns its error.
	stop func() error
}

// startDev starts dev on ports that are free.
func startDev(t *testing.T, args ...string) *devProcess {
	t.Helper()
	return startDevWith(t, server.Dependencies{RealLinks: true}, args...)
}

// startDevWith is startDev with another clock, for example, and with users' pages that lead to the simulated phones.
func startDevWith(t *testing.T, dependencies server.Dependencies, args ...string) *devProcess {
	t.Helper()
	d := &devProcess{WithT: NewWithT(t), t: t, out: gbytes.NewBuffer()}
	ctx, stop := context.WithCancel(t.Context())
	cmd := newCommand(dependencies)
	cmd.SetOut(d.out)
	cmd.SetErr(d.out)
	cmd.SetArgs(append([]string{
		"dev", "--bind-address", ports.Address(t), "--simulator-bind-address", ports.Address(t), "--health-bind-address", ports.Address(t),
	}, args...))
	begun, ended := time.Now(), make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	d.stop = sync.OnceValue(func() error {
		stop()
		return <-ended
	})
	t.Cleanup(func() {
		// A connection that was opened for a call and not needed holds the end up for five seconds.
		http.DefaultClient.CloseIdleConnections()
		d.Expect(d.stop()).To(Succeed())
	})
	d.Eventually(d.out).WithTimeout(30 * time.Second).Should(gbytes.Say("Try it:"))
	d.api, d.page, d.key = d.printed("API"), strings.TrimSuffix(d.printed("Page"), "/"), d.printed("API key")
	d.Eventually(func() (int, error) {
		status, _, err := d.exchange(http.MethodGet, d.api+"/openapi.json", nil)
		return status, err
	}).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
	t.Logf("dev answers after %s", time.Since(begun))
	return d
}

// printed returns what dev printed after a name.
func (d *devProcess) printed(name string) string {
	d.t.Helper()
	out := string(d.out.Contents())
	found := regexp.MustCompile(`(?m)^  ` + name + ` +(\S+)`).FindStringSubmatch(out)
	d.Expect(found).To(HaveLen(2), "%s in %s", name, out)
	return found[1]
}

func (d *devProcess) exchange(method, url string, body any) (int, map[string]any, error) {
	var payload io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		payload = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(d.t.Context(), method, url, payload)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(url, d.api) {
		request.Header.Set("Authorization", "Bearer "+d.key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil && response.StatusCode != http.StatusNoContent {
		return 0, nil, err
	}
	return response.StatusCode, answer, nil
}

// call expects a status and returns the answer.
func (d *devProcess) call(status int, method, url string, body any) map[string]any {
	d.t.Helper()
	got, answer, err := d.exchange(method, url, body)
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(got).To(Equal(status), "%s %s: %v", method, url, answer)
	return answer
}

// init starts a verification and returns its id and link.
func (d *devProcess) init(number, method string) (id, link string) {
	d.t.Helper()
	answer := d.call(http.StatusOK, http.MethodPost, d.api+"/api/verify/init", map[string]string{
		"phoneNumber": number, "method": method, "subject": "user-1",
	})
	link, ok := answer["waLink"].(string)
	if !ok {
		link = answer["tgLink"].(string)
	}
	return answer["requestId"].(string), link
}

// status waits for a request's status to be final, or for a while.
func (d *devProcess) status(id, wait string) map[string]any {
	d.t.Helper()
	return d.call(http.StatusOK, http.MethodGet, d.api+"/api/verify/status?id="+id+"&wait="+wait, nil)
}

// event waits for the event of a request and returns it as the receiver has it.
func (d *devProcess) event(id string) map[string]any {
	d.t.Helper()
	var found map[string]any
	d.Eventually(func() any {
		for _, one := range d.call(http.StatusOK, http.MethodGet, d.page+"/receiver/deliveries", nil)["deliveries"].([]any) {
			if strings.Contains(one.(map[string]any)["body"].(string), id) {
				found = one.(map[string]any)
			}
		}
		return found
	}).WithTimeout(30 * time.Second).ShouldNot(BeNil())
	return found
}

func TestDev_verifiesThroughBothMessengers(t *testing.T) {
	d := startDev(t)
	for name, user := range map[string]struct {
		number, method string
		share          bool
		actual         string
	}{
		"ordinary":                {"+4915112345678", "WHATSAPP", false, "+4915112345678"},
		"Mexican, with the old 1": {"+525512345678", "WHATSAPP", false, "+5215512345678"},
		"Brazilian, short":        {"+5531987654321", "WHATSAPP", false, "+553187654321"},
		"hidden number":           {"+972502345678", "WHATSAPP", true, "+972502345678"},
		"Telegram":                {"+4915112345678", "TELEGRAM", true, "+4915112345678"},
	} {
		t.Run(name, func(t *testing.T) {
			id, link := d.init(user.number, user.method)
			path := d.page + "/sim/users/" + user.number
			d.call(http.StatusAccepted, http.MethodPost, path+"/send", map[string]string{"link": link})
			if user.share {
				d.call(http.StatusAccepted, http.MethodPost, path+"/share-contact", map[string]string{"wait": "30s"})
			}
			d.Expect(d.status(id, "30s")).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("actualPhoneNumber", user.actual)))
			d.Expect(d.event(id)).To(And(HaveKeyWithValue("signature", "valid"), HaveKeyWithValue("standardSignature", "valid"),
				HaveKeyWithValue("status", BeEquivalentTo(http.StatusNoContent))))
		})
	}
}

// Browsers open connections ahead of requests.
func TestDev_endsBesideAConnectionWithoutARequest(t *testing.T) {
	d := startDev(t)
	for range 10 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.page, "http://"))
		d.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
	}
	// The last of them was accepted, so that the others were.
	response, err := http.Get(d.page + "/")
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(response.Body.Close()).To(Succeed())
	d.Expect(d.stop()).To(Succeed())
}

func TestDev_answersToThisMachineOnly(t *testing.T) {
	health := ports.Address(t)
	d := startDev(t, "--health-bind-address="+health)
	for _, url := range []string{
		d.api + "/openapi.json", d.page + "/", d.page + "/sim/users", d.page + "/receiver/deliveries",
		"http://" + health + "/metrics", "http://" + health + "/problems",
	} {
		for host, want := range map[string]int{
			"rebound.example": http.StatusMisdirectedRequest, "127.0.0.1.nip.io:80": http.StatusMisdirectedRequest,
			"localhost.evil.example": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest,
			"localhost": http.StatusOK, "127.0.0.1:1234": http.StatusOK, "[::1]": http.StatusOK,
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			d.Expect(err).NotTo(HaveOccurred())
			request.Host = host
			response, err := http.DefaultClient.Do(request)
			d.Expect(err).NotTo(HaveOccurred())
			d.Expect(response.Body.Close()).To(Succeed())
			d.Expect(response.StatusCode).To(Equal(want), "%s as %s", url, host)
		}
	}
}

func TestDev_marksItsAnswersAsSimulated(t *testing.T) {
	d := startDev(t)
	response, err := http.Get(d.api + "/api/verify/status?id=vr")
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(response.Body.Close()).To(Succeed())
	d.Expect(response.Header.Get("Phoneproof-Simulated")).To(Equal("true"))
}

func TestDev_servesAProjectOfItsUser(t *testing.T) {
	dir := t.TempDir()
	project := writeProject(t, dir)
	d := startDev(t, "--project-file", project)
	d.Expect(string(d.out.Contents())).To(And(ContainSubstring("project demo/shop"), ContainSubstring("the project has no spec.webhook")))
	id, link := d.init("+4915112345678", "WHATSAPP")
	d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/send", map[string]string{"link": link})
	d.Expect(d.status(id, "30s")).To(HaveKeyWithValue("status", "VERIFIED"))
}

// TestDev_registersCallbacksWithTheSimulatorOnly serves a project that lives at a public address: its callbacks are
// registered, with the handshake, and lead here.
func TestDev_registersCallbacksWithTheSimulatorOnly(t *testing.T) {
	dir := t.TempDir()
	project := writeProject(t, dir)
	content, err := os.ReadFile(project)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", strings.Replace(string(content), "registerWebhook: false", "registerWebhook: true", 1)+
		"  baseURL: https://verify.example.com/phones\n  telegram: {botUsername: shop_bot, botTokenSecretRef: {name: shop-tg, key: token}}\n")
	d := startDev(t, "--project-file", project)
	d.Eventually(func() any { return d.call(http.StatusOK, http.MethodGet, d.page+"/sim/accounts", nil) }).
		WithTimeout(30 * time.Second).Should(And(
		HaveKeyWithValue("whatsapp", ConsistOf(HaveKeyWithValue("override", "https://verify.example.com/phones/hooks/whatsapp"))),
		HaveKeyWithValue("telegram", ConsistOf(HaveKeyWithValue("webhook", "https://verify.example.com/phones/hooks/telegram"))),
	))
	d.api += "/phones"
	for method, share := range map[string]bool{"WHATSAPP": false, "TELEGRAM": true} {
		id, link := d.init("+4915112345678", method)
		d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/send", map[string]string{"link": link})
		if share {
			d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/share-contact", map[string]string{"wait": "30s"})
		}
		d.Expect(d.status(id, "30s")).To(HaveKeyWithValue("status", "VERIFIED"), method)
	}
}

func TestDev_sendsNothingToRealPlatformsOrReceivers(t *testing.T) {
	dir := t.TempDir()
	project := writeProject(t, dir)
	content, err := os.ReadFile(project)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", string(content)+"  baseURL: https://verify.example.com\n  webhook: {url: https://shop.example.com/hook}\n")
	key, err := command(t, "keygen")
	g.Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "shop-backend/api-key", key)
	writeSecret(t, dir, "shop-wa/access-token", "EAAG0123456789")
	writeSecret(t, dir, "shop-wa/app-secret", "0123456789abcdef0123456789abcdef")
	d := startDev(t, "--project-file", project, "--secrets-dir", dir)
	d.Expect(string(d.out.Contents())).To(And(
		ContainSubstring("credentials do not begin with sim_"), ContainSubstring("spec.webhook.url is not on this machine"),
		ContainSubstring("$(cat '"+filepath.Join(dir, "shop-backend", "api-key")+"')"), Not(ContainSubstring(strings.TrimSpace(key))),
	))
	accounts := d.call(http.StatusOK, http.MethodGet, d.page+"/sim/accounts", nil)
	d.Expect(accounts["whatsapp"]).To(BeEmpty(), "the simulator does not play a real account")
}

func TestDev_writesNoMadeUpSecretElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	g := NewWithT(t)
	g.Expect(os.Mkdir(filepath.Join(dir, "tmp"), 0o700)).To(Succeed())
	project := writeProject(t, dir)
	content, err := os.ReadFile(project)
	g.Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", strings.Replace(string(content), "{name: shop-backend,", "{name: ../../../escaped,", 1))
	_, err = command(t, "dev", "--project-file", project)
	g.Expect(err).To(MatchError(ContainSubstring("name must be the name of a Secret")))
	entries, err := os.ReadDir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(2), "the project and the folder for temporary files")
	entries, err = os.ReadDir(filepath.Join(dir, "tmp"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(BeEmpty(), "nothing is left behind")
}

// pasteLines pastes the printed lines below a heading, up to another one, into a shell, and returns what it prints.
func (d *devProcess) pasteLines(begin, end string) string {
	d.t.Helper()
	_, lines, found := strings.Cut(string(d.out.Contents()), "\n"+begin)
	d.Expect(found).To(BeTrue(), "%s", d.out.Contents())
	lines, _, _ = strings.Cut(lines, "\n"+end)
	output, err := exec.Command("bash", "-e", "-c", strings.Join(regexp.MustCompile(`(?m)^  .*`).FindAllString(lines, -1), "\n")).CombinedOutput()
	d.Expect(err).NotTo(HaveOccurred(), "%s", output)
	return string(output)
}

const (
	printedTries    = "Try it: "
	printedFaults   = "Reset limits and cool-downs; "
	printedSnippets = "In a program: "
)

// givenKey is an API key that a user gives.
const givenKey = "given-0123456789012345678901234567890123456789"

// writePart writes a project and a part of its secrets.
func writePart(t *testing.T, dir string) []string {
	t.Helper()
	project, err := os.ReadFile(writeProject(t, dir))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", strings.Replace(string(project), "  whatsapp:", `  - name: support
    scopes: [Read, Redeliver]
    secretRef: {name: shop-backend, key: support}
  - name: ci
    mode: Test
    secretRef: {name: shop-backend, key: ci}
  rateLimit:
    perSubject: {requests: 10, period: 1h}
  webhook:
    url: http://127.0.0.1:1/hook
    secretRef: {name: shop, key: webhook}
  telegram: {botUsername: shop_bot, botTokenSecretRef: {name: shop-tg, key: token}}
  whatsapp:`, 1))
	writeSecret(t, dir, "it's given/shop-backend/api-key", givenKey)
	writeSecret(t, dir, "it's given/shop-wa/access-token", "sim_4915112345670:given")
	return []string{"--project-file", filepath.Join(dir, "project.yaml"), "--secrets-dir", filepath.Join(dir, "it's given")}
}

// TestDev_printsLinesThatVerify for each messenger, by keys that are made up and by one that is given; and by a code where the project
// sends some.
func TestDev_printsLinesThatVerify(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed, so no line is pasted")
	}
	for name, args := range map[string][]string{
		"made up": nil, "given": writePart(t, t.TempDir()), "session": {"--project-file", "../../../docs/examples/session/project.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDev(t, args...)
			output := d.pasteLines(printedTries, printedFaults)
			verified := map[string]int{"made up": 3, "given": 2, "session": 2}[name]
			d.Expect(strings.Count(output, `{"status":"VERIFIED"`)).To(Equal(verified), output)
			d.Expect(strings.Contains(output, `"via":"CODE"`)).To(Equal(verified == 3), output)
			d.Expect(string(d.out.Contents())).NotTo(Or(ContainSubstring(givenKey), ContainSubstring(":given")))
		})
	}
}

func TestDev_makesUpSecretsThatAreNotGiven(t *testing.T) {
	dir := t.TempDir()
	args := writePart(t, dir)
	secrets := filepath.Join(dir, "it's given")
	before := listFiles(t, secrets)
	d := startDev(t, args...)
	printed := string(d.out.Contents())
	for _, name := range []string{"shop-backend/support", "shop-backend/ci", "shop/webhook", "shop-wa/app-secret", "shop-tg/token"} {
		d.Expect(printed).To(ContainSubstring("\nmade up: " + name + ", not in " + secrets + "\n"))
	}
	d.Expect(printed).NotTo(Or(ContainSubstring("made up: shop-backend/api-key"), ContainSubstring("made up: shop-wa/access-token")))
	d.Expect(printed).To(MatchRegexp(`API key +\$\(cat '.*/it'\\''s given/shop-backend/api-key'\)  backend: scopes Init Status, mode Live`))
	d.Expect(printed).To(MatchRegexp(`API key +pp_\w+  support: scopes Read Redeliver, mode Live\n +API key +pp_\w+  ci: scopes Init Status, mode Test`))
	d.Expect(printed).To(MatchRegexp(`Webhook secret +whsec_\S+  spec.webhook.secretRef`))
	d.Expect(printed).To(ContainSubstring(d.page + "/receiver/deliveries"))
	d.Expect(printed).To(ContainSubstring(`os.Getenv("API_KEY")`), "snippets do not print it either")
	d.key = regexp.MustCompile(`(pp_\w+)  support`).FindStringSubmatch(printed)[1]
	d.call(http.StatusOK, http.MethodGet, d.api+"/api/verify/requests", nil)
	d.Expect(listFiles(t, secrets)).To(Equal(before), "nothing is written into the folder that was given")
	http.DefaultClient.CloseIdleConnections()
	d.Expect(d.stop()).To(Succeed())
	d.Expect(string(startDev(t, args...).out.Contents())).To(ContainSubstring(d.key), "it is the same at the next start")
}

func listFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	NewWithT(t).Expect(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})).To(Succeed())
	return names
}

// TestDev_makesUpNoHalfOfARealAccount, which would not work either way.
func TestDev_makesUpNoHalfOfARealAccount(t *testing.T) {
	dir := t.TempDir()
	args := writePart(t, dir)
	first := startDev(t, args...)
	first.Expect(string(first.out.Contents())).To(ContainSubstring("made up: shop-wa/app-secret"))
	writeSecret(t, dir, "it's given/shop-wa/access-token", "EAAG0123456789")
	d := startDev(t, args...)
	d.Expect(string(d.out.Contents())).To(And(ContainSubstring("spec.whatsapp's credentials do not begin with sim_"),
		ContainSubstring("key app-secret: Missing"), Not(ContainSubstring("made up: shop-wa/app-secret")), Not(ContainSubstring("MixedSimulator"))))
}

// TestDev_resetsLimitsAndAnswersFaults by the printed lines, and for calls of the site alone.
func TestDev_resetsLimitsAndAnswersFaults(t *testing.T) {
	d := startDev(t, writePart(t, t.TempDir())...)
	d.key = givenKey
	init := map[string]string{"phoneNumber": "+4915112345678", "subject": "s"}
	for range 5 {
		d.call(http.StatusOK, http.MethodPost, d.api+"/api/verify/init", init)
	}
	d.call(http.StatusTooManyRequests, http.MethodPost, d.api+"/api/verify/init", init)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed, so no line is pasted")
	}
	d.Expect(d.pasteLines(printedFaults, printedSnippets)).To(BeEmpty())
	d.call(http.StatusOK, http.MethodPost, d.page+"/backend/init", init) // the page's own call meets no fault
	answer := d.call(http.StatusTooManyRequests, http.MethodPost, d.api+"/api/verify/init", init)
	d.Expect(answer["error"]).To(HaveKeyWithValue("code", "rate_limited"))
	answer = d.call(http.StatusServiceUnavailable, http.MethodGet, d.api+"/api/verify/status?id=vr1", nil)
	d.Expect(answer["error"]).To(HaveKeyWithValue("code", "store_unavailable"))
	id := d.call(http.StatusOK, http.MethodPost, d.api+"/api/verify/init", init)["requestId"]
	d.Expect(d.call(http.StatusOK, http.MethodGet, d.page+"/sim/requests", nil)["requests"]).To(And(HaveLen(7),
		ContainElement(And(HaveKeyWithValue("requestId", id), HaveKeyWithValue("waLink", HavePrefix("https://wa.me/"))))))
}

func TestDev_readsSuspendFromTheFileAgain(t *testing.T) {
	dir := t.TempDir()
	args := writePart(t, dir)
	d := startDev(t, args...)
	d.key = givenKey
	project, err := os.ReadFile(args[1])
	d.Expect(err).NotTo(HaveOccurred())
	for _, suspend := range []string{"true", "false"} {
		writeSecret(t, dir, "project.yaml", string(project)+"  suspend: "+suspend+"\n")
		d.Eventually(func() (int, error) {
			d.call(http.StatusNoContent, http.MethodDelete, d.page+"/sim/limits", nil)
			status, _, err := d.exchange(http.MethodPost, d.api+"/api/verify/init", map[string]string{"phoneNumber": "+4915112345678", "subject": "s"})
			return status, err
		}).WithTimeout(patience).Should(Equal(map[string]int{"true": http.StatusServiceUnavailable, "false": http.StatusOK}[suspend]))
	}
}

func TestDev_namesTheFieldOfAMistake(t *testing.T) {
	for old, test := range map[string]struct{ mistake, want string }{
		"{name: shop-backend, key: api-key}": {"{name: shop-backend}", "spec.apiKeys[0].secretRef.key: Required value"},
		`"+4915112345670"`:                   {"+4915112345670", "spec.whatsapp.phoneNumber: must be a text, and YAML reads a number: put it in quotes"},
	} {
		dir := t.TempDir()
		path := writeProject(t, dir)
		project, err := os.ReadFile(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		writeSecret(t, dir, "project.yaml", strings.Replace(string(project), old, test.mistake, 1))
		_, err = command(t, "dev", "--project-file", path)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
	}
}

func TestDev_refuses(t *testing.T) {
	t.Run("to run in a pod", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
		_, err := command(t, "dev")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("does not run in a pod")))
	})
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an empty address":    {[]string{"--bind-address="}, "dev listens on loopback only"},
		"no port":             {[]string{"--health-bind-address=127.0.0.1:"}, "dev listens on loopback only"},
		"every address":       {[]string{"--bind-address=:8080"}, "dev listens on loopback only"},
		"an address outside":  {[]string{"--simulator-bind-address=0.0.0.0:8090"}, "dev listens on loopback only"},
		"a name":              {[]string{"--health-bind-address=localhost:8081"}, "dev listens on loopback only"},
		"secrets alone":       {[]string{"--secrets-dir=x"}, "--secrets-dir needs --project-file"},
		"a project not there": {[]string{"--project-file=missing.yaml"}, "missing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := command(t, append([]string{"dev"}, test.args...)...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
