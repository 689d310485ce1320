package system

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// projectName is the name of every project; projects differ by namespace.
const projectName = "shop"

// The files of a project's secrets, all in the Secret of its name.
const (
	keyAPI          = "api-key"
	keyWebhook      = "webhook"
	keyAccessToken  = "access-token"
	keyApp          = "app-secret"
	keyBotToken     = "bot-token"
	keyGatewayToken = "gateway-token"
	keyURI          = "uri"
)

// unreachableURL refuses every connection, so that no request leaves the machine.
const unreachableURL = "http://127.0.0.1:1"

// Project is a project with its secrets, and the replicas that serve it.
type Project struct {
	Namespace string
	// Key is its API key.
	Key string
	// WebhookSecret signs its events, and AppSecret Meta's messages. BotToken is empty without a bot.
	WebhookSecret string
	AppSecret     string
	BotToken      string
	// PhoneNumberID identifies its account at Meta.
	PhoneNumberID string
	// SecretsDir contains the files of its secrets.
	SecretsDir string

	system     *System
	file       string // of the project, without a cluster
	kubeconfig string // of its replicas, with a cluster

	mu       sync.Mutex
	started  int
	replicas []*Replica
}

// Name returns the project's namespace and name.
func (p *Project) Name() string { return p.Namespace + "/" + projectName }

// newProject creates a project with secrets and accounts of its own, in a namespace of the given name.
func (s *System) newProject(ctx context.Context, namespace string) (*Project, error) {
	key, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create project %s: %w", namespace, err)
	}
	s.mu.Lock()
	account := len(s.projects)
	s.mu.Unlock()
	p := &Project{
		Namespace: namespace, Key: key, WebhookSecret: "webhook" + rand.Text(), AppSecret: newAppSecret(),
		PhoneNumberID: fmt.Sprintf("1234567%06d", account), SecretsDir: filepath.Join(s.Dir, namespace, "secrets"), system: s,
	}
	object := p.newObject(account)
	if s.options.Project != nil {
		s.options.Project(object)
	}
	if err := p.writeFirst(ctx, object); err != nil {
		return nil, fmt.Errorf("create project %s: %w", namespace, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects = append(s.projects, p)
	return p, nil
}

// newAppSecret returns an app secret in the form of Meta's.
func newAppSecret() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// newObject returns the project before any edit: with Telegram only if there is a Bot API, and with limits above any load.
func (p *Project) newObject(account int) *verifyv1.VerificationProject {
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: projectName, Key: key} }
	o := p.system.options
	object := &verifyv1.VerificationProject{
		TypeMeta:   metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationProjectKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: projectName},
		Spec: verifyv1.VerificationProjectSpec{
			BaseURL: "https://" + p.Namespace + ".example",
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref(keyAPI)}},
			Webhook: &verifyv1.Webhook{URL: o.WebhookURL, SecretRef: new(ref(keyWebhook))},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: fmt.Sprintf("+4915113%06d", account), PhoneNumberID: p.PhoneNumberID, RegisterWebhook: new(false),
				AccessTokenSecretRef: ref(keyAccessToken), AppSecretRef: ref(keyApp),
			},
			Request: verifyv1.RequestSettings{MaxStored: new(int32(10_000))},
			RateLimit: verifyv1.RateLimit{
				PerKey:         &verifyv1.Rate{Requests: 1_000_000, Period: "1s"},
				PerPhoneNumber: &verifyv1.Rate{Requests: 1_000_000, Period: "1s"},
			},
		},
	}
	if o.WebhookURL == "" {
		object.Spec.Webhook.URL = unreachableURL + "/"
	}
	if o.Telegram != "" {
		p.BotToken = fmt.Sprintf("%d:%s", 100_000+account, rand.Text()+rand.Text())
		object.Spec.Telegram = &verifyv1.Telegram{
			BotUsername: fmt.Sprintf("shop_%d_bot", account), BotTokenSecretRef: ref(keyBotToken), Updates: verifyv1.TelegramUpdatesWebhook,
		}
	}
	if o.Store == PostgreSQL {
		object.Spec.Storage = verifyv1.Storage{Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{
			URISecretRef: verifyv1.URISecretRef{Name: projectName, Key: keyURI},
		}}
	}
	return object
}

// writeFirst writes the secrets to files, and the project to the cluster or to a file.
func (p *Project) writeFirst(ctx context.Context, object *verifyv1.VerificationProject) error {
	secrets := map[string]string{
		keyAPI: p.Key, keyWebhook: p.WebhookSecret, keyApp: p.AppSecret, keyAccessToken: "EAAG" + rand.Text(), keyBotToken: p.BotToken,
		keyGatewayToken: "AAAA" + rand.Text(),
	}
	if p.system.PrimaryDatabase() != nil {
		secrets[keyURI] = p.system.databaseURI()
	}
	for key, value := range secrets {
		if err := p.WriteSecret(key, value); err != nil {
			return err
		}
	}
	if p.system.Plane != nil {
		return p.createInCluster(ctx, object)
	}
	p.file = filepath.Join(p.system.Dir, p.Namespace, "project.yaml")
	content, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return replaceFile(p.file, content)
}

// WriteSecret replaces the value in the file of a secret.
func (p *Project) WriteSecret(key, value string) error {
	return replaceFile(filepath.Join(p.SecretsDir, projectName, key), []byte(value))
}

// RemoveSecret removes the file of a secret.
func (p *Project) RemoveSecret(key string) error {
	return os.Remove(filepath.Join(p.SecretsDir, projectName, key))
}

// replaceFile writes a file atomically: no reader sees half of it.
func replaceFile(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// databaseURI returns the URI that the replicas use.
func (s *System) databaseURI() string {
	var uri string
	if s.Pair != nil {
		uri = s.Pair.URI("postgres")
	} else {
		uri = s.Database.URI("postgres")
	}
	if s.options.DatabaseURI != nil {
		return s.options.DatabaseURI(uri)
	}
	return uri
}

// SendGatewayCodes is the same through Telegram, for a project with a bot.
func SendGatewayCodes(p *verifyv1.VerificationProject, maxPerDay int32) {
	p.Spec.Telegram.Codes = &verifyv1.GatewayCodes{
		GatewayTokenSecretRef: verifyv1.SecretKeyRef{Name: projectName, Key: keyGatewayToken},
		AllowedCountries:      []verifyv1.Country{"DE"}, MaxPerDay: maxPerDay,
	}
}

// SendCodes lets a project send that many codes a day to German numbers, with limits that no test meets.
func SendCodes(p *verifyv1.VerificationProject, maxPerDay int32) {
	p.Spec.WhatsApp.Codes = &verifyv1.Codes{
		TemplateName: "shop_code", Languages: []verifyv1.TemplateLanguage{"en"}, AllowedCountries: []verifyv1.Country{"DE"}, MaxPerDay: maxPerDay,
	}
	p.Spec.RateLimit.PerSubject = &verifyv1.Rate{Requests: 10_000, Period: "1s"}
	p.Spec.RateLimit.PerPrefix = &verifyv1.PrefixRate{Digits: 9, Requests: 10_000, Period: "1s"}
}
