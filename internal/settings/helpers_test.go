package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var start = time.Date(2027, 1, 31, 9, 30, 0, 0, time.UTC)

// canary is part of every secret value of the tests but the app secret, to find leaks anywhere.
const canary = "CaNaRy"

// apiKey returns a valid API key that is unique for n.
func apiKey(n string) string { return canary + "-api-key-" + strings.Repeat("x", 32) + n }

const (
	goodToken       = "EAAB" + canary + "access"
	goodAppSecret   = "0ca9a5ec0ca9a5ec0123456789abcdef"
	goodBotToken    = "123456789:AA" + canary
	goodWebhook     = "whsec_" + canary + "abcdefghijklmnopqrstuvwxyz"
	goodPrevious    = canary + "-the-webhook-secret-before"
	goodDatabaseURI = "postgresql://shop:" + canary + "@db:5432/shop"
)

func ref(name, key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: name, Key: key} }

// newProject returns a project with every kind of secret. Its secrets are shop/<key>.
func newProject() *verifyv1.VerificationProject {
	webhook, previous := ref("shop", "webhook"), ref("shop", "webhook-previous")
	p := &verifyv1.VerificationProject{
		TypeMeta:   metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationProjectKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "books", Name: "shop"},
		Spec: verifyv1.VerificationProjectSpec{
			BaseURL: "https://verify.example.com/shop/",
			APIKeys: []verifyv1.APIKey{
				{Name: "backend", SecretRef: ref("shop", "backend")},
				{Name: "monitor", SecretRef: ref("shop", "monitor"), Scopes: []verifyv1.Scope{verifyv1.ScopeStatus}},
			},
			Webhook: &verifyv1.Webhook{URL: "https://shop.example.com/hook", SecretRef: &webhook, PreviousSecretRef: &previous},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: "+15550100123", PhoneNumberID: "106540352242922",
				AccessTokenSecretRef: ref("shop", "token"), AppSecretRef: ref("shop", "app"),
			},
			Telegram: &verifyv1.Telegram{BotUsername: "ada_books_bot", BotTokenSecretRef: ref("shop", "bot")},
		},
	}
	p.Default()
	return p
}

// newValues returns valid values for the secrets of newProject, by key.
func newValues() map[string]string {
	return map[string]string{
		"backend": apiKey("backend"), "monitor": apiKey("monitor"),
		"webhook": goodWebhook, "webhook-previous": goodPrevious,
		"token": goodToken, "app": goodAppSecret, "bot": goodBotToken,
	}
}

// readingsOf returns the readings of files with these values; "-" stands for a missing file.
func readingsOf(values map[string]string) map[verifyv1.SecretKeyRef]reading {
	readings := map[verifyv1.SecretKeyRef]reading{}
	for key, value := range values {
		if value == "-" {
			readings[ref("shop", key)] = reading{reason: ReasonMissing}
			continue
		}
		readings[ref("shop", key)] = readContent([]byte(value))
	}
	return readings
}

// settingsOf returns the settings of a project with these values, read once at start.
func settingsOf(p *verifyv1.VerificationProject, values map[string]string) *Settings {
	return FromProject(p, Secrets{}.applyReadings(listUses(&p.Spec), readingsOf(values), start))
}

func problem(field, key string, reason Reason) Problem {
	return Problem{Field: field, Secret: "shop", Key: key, Reason: reason}
}

// layOut writes secrets to DIR/shop/KEY, without a kubelet's links.
func layOut(t testing.TB, dir string, values map[string]string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Join(dir, "shop"), 0o750)).To(Succeed())
	for key, value := range values {
		g.Expect(os.WriteFile(filepath.Join(dir, "shop", key), []byte(value), 0o600)).To(Succeed())
	}
}

// projectVolume writes files to a volume the way a kubelet does: it creates a folder, renames a link to it to ..data, adds
// top-level links, and removes the old folder.
func projectVolume(t testing.TB, volume, generation string, files map[string]string) {
	t.Helper()
	g := NewWithT(t)
	folder := "..2027_01_31_" + generation
	tops := map[string]bool{}
	for name, value := range files {
		file := filepath.Join(volume, folder, name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(value), 0o600)).To(Succeed())
		tops[strings.Split(name, "/")[0]] = true
	}
	g.Expect(os.MkdirAll(filepath.Join(volume, folder), 0o750)).To(Succeed())
	old, _ := os.Readlink(filepath.Join(volume, dataLink))
	g.Expect(os.Symlink(folder, filepath.Join(volume, "..data_tmp"))).To(Succeed())
	g.Expect(os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, dataLink))).To(Succeed())
	for top := range tops {
		if _, err := os.Lstat(filepath.Join(volume, top)); err != nil {
			g.Expect(os.Symlink(filepath.Join(dataLink, top), filepath.Join(volume, top))).To(Succeed())
		}
	}
	links, err := filepath.Glob(filepath.Join(volume, "[^.]*"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		if !tops[filepath.Base(link)] {
			g.Expect(os.Remove(link)).To(Succeed())
		}
	}
	if old != "" {
		g.Expect(os.RemoveAll(filepath.Join(volume, old))).To(Succeed())
	}
}

// prefixShop returns the values by file name, shop/KEY.
func prefixShop(values map[string]string) map[string]string {
	files := map[string]string{}
	for key, value := range values {
		files["shop/"+key] = value
	}
	return files
}
