package doctor

import (
	"bytes"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/callback"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// readSecrets judges the values of the project's Secrets, and asks the platforms with them if that is wanted. The values leave this
// function only towards the platforms.
func (e *Examiner) readSecrets(ctx context.Context, f *Facts) {
	data := map[string]map[string][]byte{}
	for _, ref := range f.Project.Spec.SecretRefs() {
		if _, read := data[ref.Name]; read {
			continue
		}
		var secret corev1.Secret
		err := e.client.Get(ctx, client.ObjectKey{Namespace: f.Project.Namespace, Name: ref.Name}, &secret)
		if err != nil && !apierrors.IsNotFound(err) {
			f.Secrets.Why = explainUnread(err, "get secrets", f.Project.Namespace)
			if e.options.AskPlatforms {
				f.Asked.Why = f.Secrets.Why
			}
			return
		}
		data[ref.Name] = secret.Data
	}
	lookup := func(ref verifyv1.SecretKeyRef) ([]byte, bool) {
		content, found := data[ref.Name][ref.Key]
		return content, found
	}
	s := settings.FromProject(f.Project, settings.InspectSecrets(f.Project, lookup, f.Now))
	f.Secrets = knownValue(SecretFacts{Problems: s.Problems, Blanks: findBlankValues(f.Project, lookup)})
	if e.options.AskPlatforms {
		f.Asked = e.askPlatforms(ctx, f.Project, s)
	}
}

// findBlankValues returns the secrets that begin or end with blanks. One line break at the end is ignored by the servers, too.
func findBlankValues(p *verifyv1.VerificationProject, lookup func(verifyv1.SecretKeyRef) ([]byte, bool)) []settings.SecretField {
	var found []settings.SecretField
	for _, field := range settings.SecretFields(&p.Spec) {
		content, _ := lookup(field.Ref)
		if rest, cut := bytes.CutSuffix(content, []byte("\n")); cut {
			content = bytes.TrimSuffix(rest, []byte("\r"))
		}
		if field.Text && len(bytes.TrimSpace(content)) != len(content) {
			found = append(found, field)
		}
	}
	return found
}

// askPlatforms asks the platforms with the project's credentials and changes nothing there.
func (e *Examiner) askPlatforms(ctx context.Context, p *verifyv1.VerificationProject, s *settings.Settings) Known[AskedFacts] {
	if s.Simulated && e.options.SimulatorURL == "" {
		return Known[AskedFacts]{Why: "the credentials begin with sim_: name the simulator by --simulator-url"}
	}
	graph, err := whatsapp.NewClient(whatsapp.ClientOptions{GraphURL: e.options.GraphURL, SimulatorURL: e.options.SimulatorURL})
	if err != nil {
		return Known[AskedFacts]{Why: "--whatsapp-url or --simulator-url: " + err.Error()}
	}
	bots, err := telegram.NewClient(telegram.ClientOptions{BaseURL: e.options.BotAPIURL, SimulatorURL: e.options.SimulatorURL})
	if err != nil {
		return Known[AskedFacts]{Why: "--telegram-url or --simulator-url: " + err.Error()}
	}
	var asked AskedFacts
	if c := callback.ExamineWhatsApp(ctx, graph, s, &p.Status); c.Type != "" {
		asked.Conditions = append(asked.Conditions, c)
	}
	if c := callback.ExamineCodes(ctx, graph, s); c.Type != "" {
		asked.Conditions = append(asked.Conditions, c)
	}
	if c := callback.ExamineTelegram(ctx, bots, s, &p.Status); c.Type != "" {
		asked.Conditions = append(asked.Conditions, c)
	}
	if w := s.WhatsApp; w != nil && w.AccessToken.Usable() && w.AppSecret.Usable() {
		asked.OtherAppSecret = errors.Is(graph.CheckAppSecret(ctx, w), whatsapp.ErrAppSecret)
	}
	return knownValue(asked)
}
