package v1alpha1

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r SecretKeyRef) validateFields(path *field.Path) field.ErrorList {
	errs := secretNameRule.checkRequired(path.Child("name"), r.Name)
	return append(errs, secretKeyRule.checkRequired(path.Child("key"), r.Key)...)
}

func validateAPIKeys(path *field.Path, keys []APIKey) field.ErrorList {
	if len(keys) == 0 {
		return field.ErrorList{field.Required(path, "at least one API key is needed to call the API")}
	}
	if errs := checkAtMost(path, len(keys), 32); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range keys {
		key, at := &keys[i], path.Index(i)
		if key.Name != "" && seen[key.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), key.Name))
		}
		seen[key.Name] = true
		errs = append(errs, keyNameRule.checkRequired(at.Child("name"), key.Name)...)
		errs = append(errs, key.validateSecret(at)...)
		errs = append(errs, checkOneOf(at.Child("mode"), key.Mode, KeyModeLive, KeyModeTest)...)
		errs = append(errs, validateSet(at.Child("scopes"), "scopes", "to allow Init and Status", key.Scopes,
			ScopeInit, ScopeStatus, ScopeRead, ScopeRedeliver, ScopeDeliver)...)
	}
	return errs
}

// validateSecret checks that the key has one of the two secrets, and may do no more than that allows.
func (k *APIKey) validateSecret(path *field.Path) field.ErrorList {
	signing := k.SigningSecretRef
	if (k.SecretRef == SecretKeyRef{}) == (signing == nil) {
		return field.ErrorList{field.Invalid(path.Child("secretRef"), field.OmitValueType{},
			"set secretRef for an API key, or signingSecretRef for an identity server that signs, and not both")}
	}
	if signing == nil {
		return k.SecretRef.validateFields(path.Child("secretRef"))
	}
	errs := signing.validateFields(path.Child("signingSecretRef"))
	if !slices.Equal(k.Scopes, []Scope{ScopeDeliver}) {
		errs = append(errs, field.Invalid(path.Child("scopes"), field.OmitValueType{},
			"signingSecretRef needs scopes: [Deliver]: a signature is accepted for deliveries alone"))
	}
	return errs
}

// validateSet checks a list of different values, each one of those that are allowed. It may be unset, but not empty.
func validateSet[T ~string](path *field.Path, name, withoutIt string, values []T, allowed ...T) field.ErrorList {
	if values != nil && len(values) == 0 {
		return field.ErrorList{field.Invalid(path, values, name+" must have at least 1 item; remove "+name+" "+withoutIt)}
	}
	if errs := checkAtMost(path, len(values), len(allowed)); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[T]bool{}
	for i, value := range values {
		if seen[value] {
			errs = append(errs, field.Duplicate(path.Index(i), value))
		}
		seen[value] = true
		if value == "" {
			errs = append(errs, field.NotSupported(path.Index(i), value, allowed))
		}
		errs = append(errs, checkOneOf(path.Index(i), value, allowed...)...)
	}
	return errs
}

func (w *Webhook) validateFields(path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := webhookURLRule.checkRequired(path.Child("url"), w.URL)
	errs = append(errs, testURLRule.checkOptional(path.Child("testURL"), w.TestURL)...)
	if w.TestURL != "" && w.TestURL == w.URL {
		errs = append(errs, field.Invalid(path.Child("testURL"), w.TestURL,
			"testURL is url, which receives real events; remove testURL or name another receiver"))
	}
	if w.TestSecretRef != nil {
		errs = append(errs, w.TestSecretRef.validateFields(path.Child("testSecretRef"))...)
	}
	if w.SecretRef != nil {
		errs = append(errs, w.SecretRef.validateFields(path.Child("secretRef"))...)
	}
	if w.PreviousSecretRef != nil {
		errs = append(errs, w.PreviousSecretRef.validateFields(path.Child("previousSecretRef"))...)
		if w.SecretRef == nil {
			errs = append(errs, field.Invalid(path.Child("previousSecretRef"), field.OmitValueType{},
				"previousSecretRef needs secretRef, the secret that replaces it; set secretRef too"))
		}
	}
	errs = append(errs, validateSet(path.Child("events"), "events", "to send verification.success", w.Events,
		EventSuccess, EventExpired, EventDeclined, EventAttention)...)
	errs = append(errs, checkDuration(path.Child("timeout"), w.Timeout, time.Second, 30*time.Second,
		"timeout must be a duration between 1s and 30s, for example 15s")...)
	errs = append(errs, caBundleRule.checkOptional(path.Child("caBundle"), w.CABundle)...)
	if w.CABundle != "" && (!strings.Contains(w.CABundle, "-----BEGIN CERTIFICATE-----") ||
		!strings.Contains(w.CABundle, "-----END CERTIFICATE-----")) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), field.OmitValueType{}, caBundleMessage))
	}
	return errs
}

func (w *WhatsApp) validateFields(path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := phoneNumberRule.checkRequired(path.Child("phoneNumber"), w.PhoneNumber)
	errs = append(errs, phoneNumberIDRule.checkRequired(path.Child("phoneNumberID"), w.PhoneNumberID)...)
	errs = append(errs, businessAccountIDRule.checkOptional(path.Child("businessAccountID"), w.BusinessAccountID)...)
	errs = append(errs, w.AccessTokenSecretRef.validateFields(path.Child("accessTokenSecretRef"))...)
	errs = append(errs, checkOneOf(path.Child("hiddenNumbers"), w.HiddenNumbers,
		HiddenNumbersRefuse, HiddenNumbersSharedContact, HiddenNumbersEcho)...)
	errs = append(errs, w.AppSecretRef.validateFields(path.Child("appSecretRef"))...)
	errs = append(errs, w.Codes.validateFields(path.Child("codes"))...)
	return append(errs, checkDuration(path.Child("silentAfter"), w.SilentAfter, 10*time.Minute, 24*time.Hour,
		"silentAfter must be a duration between 10m and 24h, for example 1h")...)
}

func (t *Telegram) validateFields(path *field.Path) field.ErrorList {
	if t == nil {
		return nil
	}
	errs := botUsernameRule.checkRequired(path.Child("botUsername"), t.BotUsername)
	errs = append(errs, t.BotTokenSecretRef.validateFields(path.Child("botTokenSecretRef"))...)
	errs = append(errs, t.Codes.validateFields(path.Child("codes"))...)
	return append(errs, checkOneOf(path.Child("updates"), t.Updates, TelegramUpdatesWebhook, TelegramUpdatesPolling)...)
}

func (r *Replies) validateFields(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := checkOneOf(path.Child("send"), r.Send, SendRepliesAlways, SendRepliesOnTrouble, SendRepliesNever)
	errs = append(errs, replyRule.checkOptional(path.Child("verified"), string(r.Verified))...)
	errs = append(errs, replyRule.checkOptional(path.Child("wrongNumber"), string(r.WrongNumber))...)
	errs = append(errs, replyRule.checkOptional(path.Child("expired"), string(r.Expired))...)
	errs = append(errs, replyRule.checkOptional(path.Child("unknown"), string(r.Unknown))...)
	errs = append(errs, replyRule.checkOptional(path.Child("shareContact"), string(r.ShareContact))...)
	return append(errs, replyRule.checkOptional(path.Child("numberHidden"), string(r.NumberHidden))...)
}
