package v1alpha1

import (
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxCodeLanguages, maxCodeCountries       = 16, 250
	minCodesPerDay, maxCodesPerDay     int32 = 6, 1_000_000
	maxCodeTTL                               = 15 * time.Minute
)

var (
	templateNameRule = textRule{max: 512, pattern: regexp.MustCompile(`^[a-z0-9_]+$`),
		message: "templateName must be the name of a template: lower-case letters, digits and '_'"}
	templateLanguageRule = textRule{min: 2, max: 6, pattern: regexp.MustCompile(`^[a-z]{2,3}(_[A-Z]{2})?$`),
		message: "languages must be in Meta's form: a language and, after '_', a country, for example en or pt_BR"}
	senderUsernameRule = textRule{min: 5, max: 32, pattern: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`),
		message: "senderUsername must be a channel's username without '@': 5 to 32 letters, digits and '_', beginning with a letter, for example ada_books"}
	creatorRule = textRule{min: 16, max: 16, pattern: regexp.MustCompile(`^[0-9a-f]{16}$`),
		message: "creator must be 16 lower-case hexadecimal digits"}
	// countryRule has the regions that the phone library knows: any other would match no number.
	countryRule = textRule{min: 2, max: 2, pattern: regexp.MustCompile(`^(` +
		`A[CDEFGILMORSTUWXZ]|B[ABDEFGHIJLMNOQRSTWYZ]|C[ACDFGHIKLMNORUVWXYZ]|D[EJKMOZ]|E[CEGHRST]|F[IJKMOR]` +
		`|G[ABDEFGHILMNPQRTUWY]|H[KNRTU]|I[DELMNOQRST]|J[EMOP]|K[EGHIMNPRWYZ]|L[ABCIKRSTUVY]|M[ACDEFGHKLMNOPQRSTUVWXYZ]` +
		`|N[ACEFGILOPRUZ]|OM|P[AEFGHKLMRSTWY]|QA|R[EOSUW]|S[ABCDEGHIJKLMNORSTVXYZ]|T[ACDGHJKLMNORTVWZ]|U[AGSYZ]|V[ACEGINU]` +
		`|W[FS]|XK|Y[ET]|Z[AMW]` + `)$`),
		message: "allowedCountries must be ISO 3166 codes of countries that have phone numbers, for example DE or GB"}
)

func (c *Codes) validateFields(path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := templateNameRule.checkRequired(path.Child("templateName"), c.TemplateName)
	errs = append(errs, validateRequiredSet(path.Child("languages"), "languages", c.Languages, templateLanguageRule, maxCodeLanguages)...)
	return append(errs, validateCodeBounds(path, c.AllowedCountries, c.MaxPerDay)...)
}

func (c *GatewayCodes) validateFields(path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := c.GatewayTokenSecretRef.validateFields(path.Child("gatewayTokenSecretRef"))
	errs = append(errs, senderUsernameRule.checkOptional(path.Child("senderUsername"), c.SenderUsername)...)
	return append(errs, validateCodeBounds(path, c.AllowedCountries, c.MaxPerDay)...)
}

// validateCodeBounds checks the fields that the codes of both messengers have.
func validateCodeBounds(path *field.Path, countries []Country, perDay int32) field.ErrorList {
	errs := validateRequiredSet(path.Child("allowedCountries"), "allowedCountries", countries, countryRule, maxCodeCountries)
	if perDay < minCodesPerDay || perDay > maxCodesPerDay {
		errs = append(errs, field.Invalid(path.Child("maxPerDay"), perDay,
			fmt.Sprintf("must be between %d and %d", minCodesPerDay, maxCodesPerDay)))
	}
	return errs
}

// validateRequiredSet checks a list of at least one text.
func validateRequiredSet[T ~string](path *field.Path, name string, values []T, rule textRule, most int) field.ErrorList {
	switch {
	case values == nil:
		return field.ErrorList{field.Required(path, "")}
	case len(values) == 0:
		return field.ErrorList{field.Invalid(path, values, name+" must have at least 1 item")}
	}
	return validateTextSet(path, name, values, rule, most)
}

// validateCodes checks the rules between codes, limits, storage and replies.
func (s *VerificationProjectSpec) validateCodes(path *field.Path) field.ErrorList {
	if !s.SendsCodes() {
		return nil
	}
	var errs field.ErrorList
	refuse := func(at *field.Path, value any, message string) {
		errs = append(errs, field.Invalid(at, value, message))
	}
	if s.EffectiveTTL() > maxCodeTTL {
		refuse(path.Child("request", "ttl"), s.Request.TTL, "request.ttl must be at most 15m with whatsapp.codes or telegram.codes: "+
			"an older code must not be of use to those who find it; shorten it")
	}
	if s.RateLimit.PerPrefix == nil || s.RateLimit.PerSubject == nil {
		refuse(path.Child("rateLimit"), field.OmitValueType{}, "whatsapp.codes and telegram.codes need rateLimit.perPrefix and rateLimit.perSubject: "+
			"each code costs money; set both, for example digits: 6, requests: 100, period: 10m and requests: 5, period: 1h")
	}
	if s.Storage.Type != StoragePostgreSQL && int(s.codesPerDay())*2 > s.EffectiveMaxStored() {
		refuse(path.Child("request", "maxStored"), s.Request.MaxStored, "request.maxStored must be at least twice the maxPerDay of "+
			"whatsapp.codes and telegram.codes together with storage.type Kubernetes: these requests are kept for 24h; raise it, lower maxPerDay, or use PostgreSQL")
	}
	for _, of := range []struct {
		channel string
		perDay  int32
	}{{"whatsapp", s.WhatsApp.CodesPerDay()}, {"telegram", s.Telegram.CodesPerDay()}} {
		if of.perDay > 0 && s.countDeliverKeys()*minCodesPerDay > of.perDay {
			refuse(path.Child(of.channel, "codes", "maxPerDay"), of.perDay, of.channel+".codes.maxPerDay must be at least six for each of the "+
				"apiKeys with the scope Deliver, which share it and use a sixth of their share in an hour; raise it, or take the scope from a key")
		}
	}
	if s.EffectiveSendReplies() == SendRepliesNever {
		refuse(path.Child("replies", "send"), s.Replies.Send, "whatsapp.codes and telegram.codes need replies: "+
			"a user who sends the text instead gets the session code by them; set replies.send to Always or OnTrouble")
	}
	return errs
}
