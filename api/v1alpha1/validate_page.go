package v1alpha1

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxReturnURLs, maxFrameAncestors = 16, 8

const pageOrigin = `https://[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*`

var (
	returnURLsRule = textRule{max: 512,
		pattern: regexp.MustCompile(`^(` + pageOrigin + `|http://(localhost|127\.0\.0\.1|\[::1\]))` + port +
			`(/([-A-Za-z0-9._~!$&()*+,;=:@/]|%[2-9A-Fa-f][0-9A-Fa-f])*)?(\?([-A-Za-z0-9._~!$&()*+,;=:@/?]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$`),
		message: "returnURLs must be https URLs with a lower-case host (http for localhost, 127.0.0.1 and [::1] alone), " +
			"without user info and fragment, for example https://shop.example.com"}
	frameAncestorsRule = textRule{max: 253, pattern: regexp.MustCompile(`^` + pageOrigin + port + `$`),
		message: "frameAncestors must be origins with a lower-case host and without a path, for example https://shop.example.com"}
	accentColorRule = textRule{min: 7, max: 7, pattern: regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`),
		message: "accentColor must be '#' and six hexadecimal digits, for example #0b6e4f"}

	// securePattern matches a baseURL that browsers keep the cookies of the page for.
	securePattern = regexp.MustCompile(`^(https://|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$))`)
)

// pageLanguages are all of PageLanguage.
var pageLanguages = []PageLanguage{"ar", "de", "en", "es", "fr", "hi", "id", "it", "pt", "ru", "tr", "zh"}

func (p *Page) validateFields(path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateTextSet(path.Child("returnURLs"), "returnURLs", p.ReturnURLs, returnURLsRule, maxReturnURLs)
	if p.LogoRef != nil {
		errs = append(errs, configMapNameRule.checkRequired(path.Child("logoRef", "name"), p.LogoRef.Name)...)
		errs = append(errs, configMapKeyRule.checkRequired(path.Child("logoRef", "key"), p.LogoRef.Key)...)
	}
	errs = append(errs, accentColorRule.checkOptional(path.Child("accentColor"), p.AccentColor)...)
	errs = append(errs, validateSet(path.Child("languages"), "languages", "for all", p.Languages, pageLanguages...)...)
	errs = append(errs, validateSet(path.Child("methods"), "methods", "for all", p.Methods, MethodWhatsApp, MethodTelegram)...)
	return append(errs,
		validateTextSet(path.Child("frameAncestors"), "frameAncestors", p.FrameAncestors, frameAncestorsRule, maxFrameAncestors)...)
}

// validateTextSet checks a list of different texts.
func validateTextSet[T ~string](path *field.Path, name string, values []T, rule textRule, most int) field.ErrorList {
	if values != nil && len(values) == 0 {
		return field.ErrorList{field.Invalid(path, values, name+" must have at least 1 item; remove "+name+" for none")}
	}
	if errs := checkAtMost(path, len(values), most); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[T]bool{}
	for i, value := range values {
		if seen[value] {
			errs = append(errs, field.Duplicate(path.Index(i), value))
		}
		seen[value] = true
		errs = append(errs, rule.checkRequired(path.Index(i), string(value))...)
	}
	return errs
}

// validatePage checks the rules between the page, baseURL and the messengers.
func (s *VerificationProjectSpec) validatePage(path *field.Path) field.ErrorList {
	if s.Page == nil {
		return nil
	}
	var errs field.ErrorList
	if !securePattern.MatchString(s.BaseURL) {
		errs = append(errs, field.Invalid(path.Child("page"), field.OmitValueType{},
			"page needs a baseURL that begins with https://, or with http:// and the name of this machine: pageURL is below it"))
	}
	for _, method := range s.Page.Methods {
		if method == MethodWhatsApp && s.WhatsApp == nil || method == MethodTelegram && s.Telegram == nil {
			errs = append(errs, field.Invalid(path.Child("page", "methods"), s.Page.Methods,
				"page.methods must name messengers that the project has; set whatsapp or telegram, or leave the other one out"))
			break
		}
	}
	return errs
}
