package settings

import (
	"crypto/sha256"
	"slices"

	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// FromProject returns the settings that a project, with its defaults filled in, and what its secrets hold make together.
// It is pure: what was read and how long a former value counts is all in secrets.
func FromProject(project *verifyv1.VerificationProject, secrets Secrets) *Settings {
	spec := &project.Spec
	s := &Settings{
		Project:     project.Namespace + "/" + project.Name,
		Generation:  project.Generation,
		ProjectID:   project.EffectiveProjectID(),
		DisplayName: project.EffectiveDisplayName(),
		BaseURL:     spec.EffectiveBaseURL(),
		PathPrefix:  spec.BasePath(),
		Suspended:   project.Suspended(),
		Keys:        keys(spec.APIKeys, secrets),
		WhatsApp:    whatsApp(spec, secrets),
		Telegram:    telegram(spec, secrets),
		Webhook:     webhook(spec.Webhook, secrets),
		Replies:     replies(spec.Replies),
		Database:    database(spec, secrets),
		TTL:         spec.EffectiveTTL(),
		Retention:   spec.EffectiveRetention(),
		Limits:      convertLimits(spec),
		Problems:    secrets.problems(),

		LimitsContradiction: spec.LimitsContradiction(),
		LimitsCommand:       project.LimitsCommand(),
	}
	s.Simulated = s.WhatsApp != nil && s.WhatsApp.Simulated || s.Telegram != nil && s.Telegram.Simulated
	return s
}

// keys returns the keys that can be used: all current values before any former one, because a value that moved from one
// name to another belongs to the name that has it; and of former ones the one that was replaced last first.
func keys(specs []verifyv1.APIKey, secrets Secrets) Keys {
	var current, former []Key
	for i := range specs {
		k := &specs[i]
		secret := secrets.secret(fieldAPIKey(k.Name))
		if !secret.Usable() {
			continue
		}
		key := Key{Name: k.Name, Hash: [sha256.Size]byte(secret.Current()), Scopes: scopes(k.EffectiveScopes())}
		if k.ExpiresAt != nil {
			key.ExpiresAt = k.ExpiresAt.Time
		}
		current = append(current, key)
		for _, p := range secret.values().previous {
			key.Hash, key.until = [sha256.Size]byte(p.value), p.until
			former = append(former, key)
		}
	}
	slices.SortStableFunc(former, func(a, b Key) int { return b.until.Compare(a.until) })
	return NewKeys(append(current, former...)...)
}

func scopes(names []verifyv1.Scope) Scope {
	var all Scope
	for _, name := range names {
		switch name {
		case verifyv1.ScopeInit:
			all |= ScopeInit
		case verifyv1.ScopeStatus:
			all |= ScopeStatus
		}
	}
	return all
}

func whatsApp(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *WhatsApp {
	w := spec.WhatsApp
	if w == nil {
		return nil
	}
	token, secret := secrets.secret(fieldAccessToken), secrets.secret(fieldAppSecret)
	return &WhatsApp{
		PhoneNumber:         w.PhoneNumber,
		PhoneNumberID:       w.PhoneNumberID,
		AccessToken:         token,
		AppSecret:           secret,
		RegisterWebhook:     spec.RegistersWhatsAppWebhook(),
		TakeOver:            ptr.Deref(w.TakeOver, false),
		AcceptSharedContact: ptr.Deref(w.AcceptSharedContact, false),
		AcceptAnyText:       ptr.Deref(w.AcceptAnyText, false),
		Simulated:           messenger.Simulated(token.Current()) || messenger.Simulated(secret.Current()),
	}
}

func telegram(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *Telegram {
	t := spec.Telegram
	if t == nil {
		return nil
	}
	token := secrets.secret(fieldBotToken)
	return &Telegram{
		BotUsername: t.BotUsername,
		BotToken:    token,
		Polling:     spec.EffectiveTelegramUpdates() == verifyv1.TelegramUpdatesPolling,
		TakeOver:    ptr.Deref(t.TakeOver, false),
		Simulated:   messenger.Simulated(token.Current()),
	}
}

func webhook(w *verifyv1.Webhook, secrets Secrets) *Webhook {
	if w == nil {
		return nil
	}
	out := &Webhook{
		URL:            w.URL,
		Signed:         w.SecretRef != nil,
		Secret:         secrets.secret(fieldWebhookSecret),
		PreviousSecret: secrets.secret(fieldWebhookPrevious),
		Timeout:        w.EffectiveTimeout(),
	}
	if w.CABundle != "" {
		out.CABundle = []byte(w.CABundle)
	}
	return out
}

func replies(r *verifyv1.Replies) Replies {
	if r == nil {
		return Replies{}
	}
	return Replies{
		Verified:     string(r.Verified),
		WrongNumber:  string(r.WrongNumber),
		Expired:      string(r.Expired),
		Unknown:      string(r.Unknown),
		ShareContact: string(r.ShareContact),
		NumberHidden: string(r.NumberHidden),
	}
}

func database(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *Database {
	if spec.Storage.Type != verifyv1.StoragePostgreSQL {
		return nil
	}
	return &Database{
		URI:   secrets.secret(fieldDatabaseURI),
		OwnCA: spec.Storage.PostgreSQL != nil && spec.Storage.PostgreSQL.CASecretRef != nil,
		CA:    secrets.secret(fieldDatabaseCA),
	}
}

func convertLimits(spec *verifyv1.VerificationProjectSpec) verification.Limits {
	return verification.Limits{
		PerKey: convertRate(spec.EffectivePerKey()), PerPhoneNumber: convertRate(spec.EffectivePerPhoneNumber()),
		PerPrefix: convertPrefixRate(spec.RateLimit.PerPrefix), PerSubject: convertRate(ptr.Deref(spec.RateLimit.PerSubject, verifyv1.Rate{})),
		// Whatever spec.storage says: the store that serves decides whether it has a cap, and memory needs one.
		MaxStored: spec.EffectiveMaxStored(),
	}
}

func convertRate(r verifyv1.Rate) verification.Rate {
	return verification.Rate{Requests: int(r.Requests), Period: r.Period.Or(0)}
}

func convertPrefixRate(r *verifyv1.PrefixRate) verification.PrefixRate {
	if r == nil {
		return verification.PrefixRate{}
	}
	return verification.PrefixRate{Rate: convertRate(verifyv1.Rate{Requests: r.Requests, Period: r.Period}), Digits: int(r.Digits)}
}
