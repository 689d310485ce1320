package v1alpha1

import (
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
		errs = append(errs, key.SecretRef.validateFields(at.Child("secretRef"))...)
		errs = append(errs, validateScopes(at.Child("scopes"), key.Scopes)...)
	}
	return errs
}

func validateScopes(path *field.Path, scopes []Scope) field.ErrorList {
	if scopes != nil && len(scopes) == 0 {
		return field.ErrorList{field.Invalid(path, scopes, "scopes must have at least 1 item; remove scopes to allow both")}
	}
	if errs := checkAtMost(path, len(scopes), 2); errs != nil {
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
		errs = append(errs, checkOneOf(path.Index(i), scope, ScopeInit, ScopeStatus)...)
	}
	return errs
}

func (w *Webhook) validateFields(path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := webhookURLRule.checkRequired(path.Child("url"), w.URL)
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
	errs = append(errs, w.AccessTokenSecretRef.validateFields(path.Child("accessTokenSecretRef"))...)
	return append(errs, w.AppSecretRef.validateFields(path.Child("appSecretRef"))...)
}

func (t *Telegram) validateFields(path *field.Path) field.ErrorList {
	if t == nil {
		return nil
	}
	errs := botUsernameRule.checkRequired(path.Child("botUsername"), t.BotUsername)
	errs = append(errs, t.BotTokenSecretRef.validateFields(path.Child("botTokenSecretRef"))...)
	return append(errs, checkOneOf(path.Child("updates"), t.Updates, TelegramUpdatesWebhook, TelegramUpdatesPolling)...)
}

func (r *Replies) validateFields(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := replyRule.checkOptional(path.Child("verified"), string(r.Verified))
	errs = append(errs, replyRule.checkOptional(path.Child("wrongNumber"), string(r.WrongNumber))...)
	errs = append(errs, replyRule.checkOptional(path.Child("expired"), string(r.Expired))...)
	errs = append(errs, replyRule.checkOptional(path.Child("unknown"), string(r.Unknown))...)
	errs = append(errs, replyRule.checkOptional(path.Child("shareContact"), string(r.ShareContact))...)
	return append(errs, replyRule.checkOptional(path.Child("numberHidden"), string(r.NumberHidden))...)
}
