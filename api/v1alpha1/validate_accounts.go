package v1alpha1

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r SecretKeyRef) validate(path *field.Path) field.ErrorList {
	errs := secretNameRule.required(path.Child("name"), r.Name)
	return append(errs, secretKeyRule.required(path.Child("key"), r.Key)...)
}

func validateAPIKeys(path *field.Path, keys []APIKey) field.ErrorList {
	if len(keys) == 0 {
		return field.ErrorList{field.Required(path, "at least one API key is needed to call the API")}
	}
	if errs := atMost(path, len(keys), 32); errs != nil {
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
		errs = append(errs, keyNameRule.required(at.Child("name"), key.Name)...)
		errs = append(errs, key.SecretRef.validate(at.Child("secretRef"))...)
		errs = append(errs, validateScopes(at.Child("scopes"), key.Scopes)...)
	}
	return errs
}

func validateScopes(path *field.Path, scopes []Scope) field.ErrorList {
	if scopes != nil && len(scopes) == 0 {
		return field.ErrorList{field.Invalid(path, scopes, "scopes must have at least 1 item; remove scopes to allow both")}
	}
	if errs := atMost(path, len(scopes), 2); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[Scope]bool{}
	for i, scope := range scopes {
		if seen[scope] {
			errs = append(errs, field.Duplicate(path.Index(i), scope))
		}
		seen[scope] = true
		if scope == "" {
			errs = append(errs, field.NotSupported(path.Index(i), scope, []Scope{ScopeInit, ScopeStatus}))
		}
		errs = append(errs, oneOf(path.Index(i), scope, ScopeInit, ScopeStatus)...)
	}
	return errs
}

func (w *Webhook) validate(path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := webhookURLRule.required(path.Child("url"), w.URL)
	if w.SecretRef != nil {
		errs = append(errs, w.SecretRef.validate(path.Child("secretRef"))...)
	}
	if w.PreviousSecretRef != nil {
		errs = append(errs, w.PreviousSecretRef.validate(path.Child("previousSecretRef"))...)
		if w.SecretRef == nil {
			errs = append(errs, field.Invalid(path.Child("previousSecretRef"), field.OmitValueType{},
				"previousSecretRef needs secretRef, the secret that replaces it; set secretRef too"))
		}
	}
	errs = append(errs, durationBetween(path.Child("timeout"), w.Timeout, time.Second, 30*time.Second,
		"timeout must be a duration between 1s and 30s, for example 15s")...)
	errs = append(errs, caBundleRule.optional(path.Child("caBundle"), w.CABundle)...)
	if w.CABundle != "" && (!strings.Contains(w.CABundle, "-----BEGIN CERTIFICATE-----") ||
		!strings.Contains(w.CABundle, "-----END CERTIFICATE-----")) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), field.OmitValueType{}, caBundleMessage))
	}
	return errs
}

func (w *WhatsApp) validate(path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := phoneNumberRule.required(path.Child("phoneNumber"), w.PhoneNumber)
	errs = append(errs, phoneNumberIDRule.required(path.Child("phoneNumberID"), w.PhoneNumberID)...)
	errs = append(errs, w.AccessTokenSecretRef.validate(path.Child("accessTokenSecretRef"))...)
	return append(errs, w.AppSecretRef.validate(path.Child("appSecretRef"))...)
}

func (t *Telegram) validate(path *field.Path) field.ErrorList {
	if t == nil {
		return nil
	}
	errs := botUsernameRule.required(path.Child("botUsername"), t.BotUsername)
	errs = append(errs, t.BotTokenSecretRef.validate(path.Child("botTokenSecretRef"))...)
	return append(errs, oneOf(path.Child("updates"), t.Updates, TelegramUpdatesWebhook, TelegramUpdatesPolling)...)
}

func (r *Replies) validate(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := replyRule.optional(path.Child("verified"), string(r.Verified))
	errs = append(errs, replyRule.optional(path.Child("wrongNumber"), string(r.WrongNumber))...)
	errs = append(errs, replyRule.optional(path.Child("expired"), string(r.Expired))...)
	errs = append(errs, replyRule.optional(path.Child("unknown"), string(r.Unknown))...)
	errs = append(errs, replyRule.optional(path.Child("shareContact"), string(r.ShareContact))...)
	return append(errs, replyRule.optional(path.Child("numberHidden"), string(r.NumberHidden))...)
}
