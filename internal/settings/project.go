package settings

import (
	"crypto/sha256"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// FromProject returns the settings of a project, with its defaults set, and its secrets. It is a pure function: secrets holds
// the values and how long former ones are accepted.
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
		Keys:        buildKeys(spec.APIKeys, secrets),
		WhatsApp:    buildWhatsApp(spec, secrets),
		Telegram:    buildTelegram(spec, secrets),
		Webhook:     buildWebhook(spec.Webhook, secrets),
		Replies:     Replies{Send: sendPolicies[spec.EffectiveSendReplies()]},
		Texts:       buildTexts(spec),
		Page:        buildPage(spec.Page),
		Level:       convertLevel(spec.EffectiveAssuranceLevel()),
		Purposes:    buildPurposes(spec.Purposes),
		Database:    buildDatabase(spec, secrets),
		TTL:         spec.EffectiveTTL(),
		Retention:   spec.EffectiveRetention(),
		Limits:      convertLimits(spec),
		Problems:    secrets.listProblems(),

		LimitsContradiction: spec.LimitsContradiction(),
		LimitsCommand:       project.LimitsCommand(),
	}
	s.Simulated = s.WhatsApp != nil && s.WhatsApp.Simulated ||
		s.Telegram != nil && (s.Telegram.Simulated || s.Telegram.Codes != nil && s.Telegram.Codes.Simulated)
	return s
}

// buildKeys returns the usable keys: current values before former ones, because a value that moved to another name belongs to
// the name that has it now. Former values are sorted by replacement, the latest first.
func buildKeys(specs []verifyv1.APIKey, secrets Secrets) Keys {
	var (
		current, former, signers []Key
		goneUntil                time.Time
		awaiting                 bool
	)
	for i := range specs {
		k := &specs[i]
		key := Key{Name: k.Name, Scopes: convertScopes(k.EffectiveScopes()), Test: k.IsTest(), CodeLetters: ptr.Deref(k.CodeLetters, false)}
		if k.ExpiresAt != nil {
			key.ExpiresAt = k.ExpiresAt.Time
		}
		if k.SigningSecretRef != nil {
			key.signing = secrets.secretAt(fieldSigning(k.Name))
			signers = append(signers, key)
			continue
		}
		state := secrets.states[fieldAPIKey(k.Name)]
		secret := state.secret
		if !secret.Usable() {
			awaiting = awaiting || state.reason == ReasonNotMounted
			if until := state.goneAt.Add(goneGrace); state.reason == ReasonMissing && until.After(goneUntil) {
				goneUntil = until
			}
			continue
		}
		key.Hash = [sha256.Size]byte(secret.Current())
		current = append(current, key)
		for _, p := range secret.Reveal().previous {
			key.Hash, key.until = [sha256.Size]byte(p.value), p.until
			former = append(former, key)
		}
	}
	slices.SortStableFunc(former, func(a, b Key) int { return b.until.Compare(a.until) })
	keys := NewKeys(append(current, former...)...)
	keys.goneUntil, keys.awaiting, keys.signers = goneUntil, awaiting, signers
	return keys
}

// goneGrace is how long after an API key's Secret went an unknown key may be that one. Clients take a refusal for final, and a Secret that
// was deleted by mistake comes back.
const goneGrace = 10 * time.Minute

func convertScopes(names []verifyv1.Scope) Scope {
	var all Scope
	for _, name := range names {
		switch name {
		case verifyv1.ScopeInit:
			all |= ScopeInit
		case verifyv1.ScopeStatus:
			all |= ScopeStatus
		case verifyv1.ScopeRead:
			all |= ScopeRead
		case verifyv1.ScopeRedeliver:
			all |= ScopeRedeliver
		case verifyv1.ScopeDeliver:
			all |= ScopeDeliver
		}
	}
	return all
}

func buildWhatsApp(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *WhatsApp {
	w := spec.WhatsApp
	if w == nil {
		return nil
	}
	token, secret := secrets.secretAt(fieldAccessToken), secrets.secretAt(fieldAppSecret)
	return &WhatsApp{
		PhoneNumber:       w.PhoneNumber,
		PhoneNumberID:     w.PhoneNumberID,
		BusinessAccountID: w.BusinessAccountID,
		AccessToken:       token,
		AppSecret:         secret,
		RegisterWebhook:   spec.RegistersWhatsAppWebhook(),
		TakeOver:          ptr.Deref(w.TakeOver, false),
		HiddenNumbers:     convertHiddenNumbers(w.EffectiveHiddenNumbers()),
		AcceptAnyText:     ptr.Deref(w.AcceptAnyText, false),
		SilentAfter:       spec.EffectiveSilentAfter(),
		Codes:             buildCodes(w.Codes),
		Simulated:         Simulated(token.Current()) || Simulated(secret.Current()),
	}
}

func convertHiddenNumbers(way verifyv1.HiddenNumbers) HiddenNumbers {
	switch way {
	case verifyv1.HiddenNumbersSharedContact:
		return HiddenShared
	case verifyv1.HiddenNumbersEcho:
		return HiddenEcho
	default:
		return HiddenRefused
	}
}

func buildTelegram(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *Telegram {
	t := spec.Telegram
	if t == nil {
		return nil
	}
	token := secrets.secretAt(fieldBotToken)
	return &Telegram{
		BotUsername: t.BotUsername,
		BotToken:    token,
		Polling:     spec.EffectiveTelegramUpdates() == verifyv1.TelegramUpdatesPolling,
		TakeOver:    ptr.Deref(t.TakeOver, false),
		Codes:       buildGatewayCodes(t.Codes, secrets),
		Simulated:   Simulated(token.Current()),
	}
}

func buildWebhook(w *verifyv1.Webhook, secrets Secrets) *Webhook {
	if w == nil {
		return nil
	}
	out := &Webhook{
		URL:            w.URL,
		TestSecret:     secrets.secretAt(fieldWebhookTest),
		TestUnsigned:   w.TestURL != "" && w.TestSecretRef == nil,
		Signed:         w.SecretRef != nil,
		Secret:         secrets.secretAt(fieldWebhookSecret),
		SecretNewline:  secrets.states[fieldWebhookSecret].newline,
		PreviousSecret: secrets.secretAt(fieldWebhookPrevious),
		Timeout:        w.EffectiveTimeout(),
		Events:         ConvertEvents(w),
	}
	if w.SendsTestEvents() {
		out.TestURL = w.TestURL
	}
	if w.CABundle != "" {
		out.CABundle = []byte(w.CABundle)
	}
	return out
}

// ConvertEvents returns the set of the kinds of events that spec.webhook.events names, with those of test keys if they are sent.
func ConvertEvents(w *verifyv1.Webhook) verification.EventKinds {
	var kinds verification.EventKinds
	for _, event := range w.EffectiveEvents() {
		kinds |= verification.NewEventKinds(verification.EventKind(event))
	}
	if w.SendsTestEvents() {
		return kinds.WithTests()
	}
	return kinds
}

// sendPolicies are the policies of spec.replies.send.
var sendPolicies = map[verifyv1.SendReplies]SendPolicy{
	verifyv1.SendRepliesAlways: SendAlways, verifyv1.SendRepliesOnTrouble: SendOnTrouble,
	verifyv1.SendRepliesNever: SendNever,
}

// buildTexts returns the texts of a project; nil if all are built in.
func buildTexts(spec *verifyv1.VerificationProjectSpec) *texts.Set {
	if spec.Replies == nil && len(spec.Texts) == 0 {
		return nil
	}
	var forAll texts.Texts
	if r := spec.Replies; r != nil {
		forAll = texts.Texts{
			Verified: string(r.Verified), WrongNumber: string(r.WrongNumber), Expired: string(r.Expired), Unknown: string(r.Unknown),
			ShareContact: string(r.ShareContact), NumberHidden: string(r.NumberHidden),
		}
	}
	byLanguage := make(map[string]texts.Texts, len(spec.Texts))
	for i := range spec.Texts {
		t := &spec.Texts[i]
		byLanguage[t.Locale] = texts.Texts{
			Prepared: string(t.Prepared), Verified: string(t.Verified), WrongNumber: string(t.WrongNumber), Expired: string(t.Expired),
			Unknown: string(t.Unknown), Confirm: string(t.Confirm), TextChanged: string(t.TextChanged), TapRefused: string(t.TapRefused),
			ButtonConfirm: string(t.ButtonConfirm), ShareContact: string(t.ShareContact), NumberHidden: string(t.NumberHidden),
			EchoQuestion: string(t.EchoQuestion), ButtonNotMe: string(t.ButtonNotMe), Declined: string(t.Declined),
			TextRefused: string(t.TextRefused), ContactRefused: string(t.ContactRefused), NumberAnonymous: string(t.NumberAnonymous),
			TelegramButton: string(t.ButtonShare),
		}
	}
	return texts.NewSet(forAll, byLanguage)
}

func buildDatabase(spec *verifyv1.VerificationProjectSpec, secrets Secrets) *Database {
	if spec.Storage.Type != verifyv1.StoragePostgreSQL {
		return nil
	}
	return &Database{
		URI:   secrets.secretAt(fieldDatabaseURI),
		OwnCA: spec.Storage.PostgreSQL != nil && spec.Storage.PostgreSQL.CASecretRef != nil,
		CA:    secrets.secretAt(fieldDatabaseCA),
	}
}

// convertCodeLimits returns the limits of the codes of a messenger, of which the project sends so many in a day; zero for none.
func convertCodeLimits(spec *verifyv1.VerificationProjectSpec, perDay int32) verification.CodeLimits {
	if perDay == 0 {
		return verification.CodeLimits{}
	}
	day, hour := spec.EffectiveCodeShare(perDay)
	return verification.CodeLimits{
		Project: verification.Rate{Requests: int(perDay), Period: 24 * time.Hour},
		PerDay:  verification.Rate{Requests: int(day), Period: 24 * time.Hour},
		PerHour: verification.Rate{Requests: int(hour), Period: time.Hour},
	}
}

func convertLimits(spec *verifyv1.VerificationProjectSpec) verification.Limits {
	return verification.Limits{
		PerKey: convertRate(spec.EffectivePerKey()), PerPhoneNumber: convertRate(spec.EffectivePerPhoneNumber()),
		PerPrefix: convertPrefixRate(spec.RateLimit.PerPrefix), PerSubject: convertRate(ptr.Deref(spec.RateLimit.PerSubject, verifyv1.Rate{})),
		// Set for every spec.storage: the store decides whether it has a limit, and memory needs one.
		MaxStored:       spec.EffectiveMaxStored(),
		Codes:           convertCodeLimits(spec, spec.WhatsApp.CodesPerDay()),
		GatewayCodes:    convertCodeLimits(spec, spec.Telegram.CodesPerDay()),
		DeclineCooldown: spec.EffectiveDeclineCooldown(),
		KeepLapsed:      spec.Webhook != nil && slices.Contains(spec.Webhook.EffectiveEvents(), verifyv1.EventExpired),
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
