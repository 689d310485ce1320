package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateTexts checks the texts of a project by language.
func validateTexts(path *field.Path, all []Texts) field.ErrorList {
	if errs := checkAtMost(path, len(all), 24); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range all {
		t, at := &all[i], path.Index(i)
		if seen[t.Locale] && t.Locale != "" {
			errs = append(errs, field.Duplicate(at, map[string]string{"locale": t.Locale}))
		}
		seen[t.Locale] = true
		errs = append(errs, textsLocaleRule.checkRequired(at.Child("locale"), t.Locale)...)
		errs = append(errs, t.validateFields(at)...)
	}
	return errs
}

func (t *Texts) validateFields(path *field.Path) field.ErrorList {
	prepared := string(t.Prepared)
	errs := preparedRule.checkOptional(path.Child("prepared"), prepared)
	errs = append(errs, placeOfCodeRule.checkOptional(path.Child("prepared"), prepared)...)
	if names := strings.Count(prepared, "{name}"); prepared != "" && (names < 1 || names > 2 || strings.Count(prepared, "{code}") != 1) {
		errs = append(errs, field.Invalid(path.Child("prepared"), prepared,
			"prepared must have the place {name} once or twice, and the place {code} once"))
	}
	for _, text := range []struct {
		name  string
		value Text
	}{
		{"verified", t.Verified}, {"wrongNumber", t.WrongNumber}, {"expired", t.Expired}, {"unknown", t.Unknown},
		{"shareContact", t.ShareContact}, {"numberHidden", t.NumberHidden}, {"confirm", t.Confirm}, {"textChanged", t.TextChanged},
		{"tapRefused", t.TapRefused}, {"textRefused", t.TextRefused}, {"contactRefused", t.ContactRefused},
		{"numberAnonymous", t.NumberAnonymous}, {"echoQuestion", t.EchoQuestion}, {"declined", t.Declined},
	} {
		errs = append(errs, textsRule.checkOptional(path.Child(text.name), string(text.value))...)
	}
	for _, button := range []struct {
		name  string
		value ButtonText
	}{{"buttonConfirm", t.ButtonConfirm}, {"buttonNotMe", t.ButtonNotMe}, {"buttonShare", t.ButtonShare}} {
		errs = append(errs, buttonRule.checkOptional(path.Child(button.name), string(button.value))...)
	}
	return errs
}
