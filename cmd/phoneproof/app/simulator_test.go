package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/test/ports"
)

// runCommand runs the program with arguments until the test ends.
func runCommand(t *testing.T, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	cmd := newCommand(server.Dependencies{})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
}

// TestSimulator_playsForAServeElsewhere has the two as the processes that they are in a cluster: all that the one knows of
// the other are flags and calls.
func TestSimulator_playsForAServeElsewhere(t *testing.T) {
	dir, api, page := t.TempDir(), ports.Address(t), ports.Address(t)
	g := NewWithT(t)
	project := writeProject(t, dir)
	content, err := os.ReadFile(project)
	g.Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", string(content)+"  telegram: {botUsername: shop_bot, botTokenSecretRef: {name: shop-tg, key: token}}\n")
	key, err := command(t, "keygen")
	g.Expect(err).NotTo(HaveOccurred())
	for name, value := range map[string]string{
		"shop-backend/api-key": key, "shop-wa/access-token": "sim_4915112345670:token", "shop-wa/app-secret": "sim_secret", "shop-tg/token": "sim_shop_bot:x",
	} {
		writeSecret(t, dir, name, value)
	}
	keyFile := filepath.Join(dir, "shop-backend", "api-key")
	runCommand(t, "simulator", "--bind-address", page, "--webhook-secret-file", keyFile, "--api-url", "http://"+api, "--api-key-file", keyFile,
		"--whatsapp-account", "number=+4915112345670,id=1234567890,secret=sim_secret,callback=http://"+api+"/hooks/whatsapp")
	runCommand(t, "serve", "--project-file", project, "--secrets-dir", dir, "--drain-delay=10ms", "--bind-address", api,
		"--health-bind-address", ports.Address(t), "--simulator-url", "http://"+page)

	d := &devProcess{WithT: g, t: t, api: "http://" + api, page: "http://" + page, key: strings.TrimSpace(key)}
	for _, url := range []string{d.page + "/healthz", d.api + "/openapi.json"} {
		d.Eventually(func() (int, error) {
			status, _, err := d.exchange(http.MethodGet, url, nil)
			return status, err
		}).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
	}
	for method, share := range map[string]bool{"WHATSAPP": false, "TELEGRAM": true} {
		// The page's own way to begin, with the key that the page never sees.
		answer := d.call(http.StatusOK, http.MethodPost, d.page+"/backend/init", map[string]string{"phoneNumber": "+4915112345678", "method": method})
		link, ok := answer["waLink"].(string)
		if !ok {
			link = answer["tgLink"].(string)
			d.Eventually(func() string { // the server has called the Bot API
				accounts, err := json.Marshal(d.call(http.StatusOK, http.MethodGet, d.page+"/sim/accounts", nil)["telegram"])
				d.Expect(err).NotTo(HaveOccurred())
				return string(accounts)
			}).WithTimeout(30 * time.Second).Should(ContainSubstring("shop_bot"))
		}
		d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/send", map[string]string{"link": link})
		if share {
			d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/share-contact", map[string]string{"wait": "30s"})
		}
		d.Expect(d.status(answer["requestId"].(string), "30s")).To(HaveKeyWithValue("status", "VERIFIED"), method)
	}
}

func TestSimulator_refusesWhatItCannotDo(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"half an API":        {[]string{"--api-url=http://x"}, "belong together"},
		"no such CA":         {[]string{"--ca-file=missing.pem"}, "--ca-file"},
		"an odd account":     {[]string{"--whatsapp-account=number=+4915112345670,name=x"}, `"name" is none of number, id, secret and callback`},
		"an account, no id":  {[]string{"--whatsapp-account=number=+4915112345670"}, "want digits"},
		"a real secret":      {[]string{"--whatsapp-account=id=1,secret=0123"}, "only secrets that begin with sim_"},
		"no address":         {[]string{"--bind-address=nowhere"}, "--bind-address"},
		"an empty address":   {[]string{"--bind-address="}, `--bind-address is "": want HOST:PORT or :PORT`},
		"no such log level":  {[]string{"--log-level=loud"}, "--log-level"},
		"an argument":        {[]string{"now"}, "unknown command"},
		"a CA that is empty": {[]string{"--ca-file=/dev/null"}, "holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := command(t, append([]string{"simulator"}, test.args...)...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestSimulator_refusesFilesThatDoNotExist(t *testing.T) {
	for _, flag := range []string{"--webhook-secret-file", "--ca-file"} {
		_, err := command(t, "simulator", "--bind-address=127.0.0.1:0", flag+"=missing")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(flag + ": open missing: no such file")))
	}
	_, err := command(t, "simulator", "--bind-address=127.0.0.1:0", "--api-url=http://127.0.0.1:1", "--api-key-file=missing")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--api-key-file: open missing: no such file")))
}
