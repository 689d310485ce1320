package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxPurposes, maxPurposeTitles = 16, 24

var (
	purposeNameRule = textRule{max: 32, pattern: keyNameRule.pattern,
		message: "name must be lower-case letters, digits and '-', for example sign-in"}
	purposeTitleRule = textRule{max: 64, pattern: displayNameRule.pattern,
		message: "title must be one line of plain text, without control characters, text-direction overrides, or spaces at either end"}
	purposeRule = textRule{max: 32, pattern: keyNameRule.pattern,
		message: "purpose must be the name of a purpose: lower-case letters, digits and '-'"}
)

func (a *AssuranceSettings) validateFields(path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := checkOneOf(path.Child("level"), a.Level, AssuranceLevelPossession, AssuranceLevelSession)
	return append(errs, checkDuration(path.Child("declineCooldown"), a.DeclineCooldown, 0, 24*time.Hour,
		"declineCooldown must be a duration between 0s and 24h, for example 1h")...)
}

func validatePurposes(path *field.Path, purposes []Purpose) field.ErrorList {
	if purposes != nil && len(purposes) == 0 {
		return field.ErrorList{field.Invalid(path, purposes, "purposes must have at least 1 item; remove purposes for none")}
	}
	if errs := checkAtMost(path, len(purposes), maxPurposes); errs != nil {
		return errs
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range purposes {
		p, at := &purposes[i], path.Index(i)
		if p.Name != "" && seen[p.Name] {
			errs = append(errs, field.Duplicate(at, map[string]string{"name": p.Name}))
		}
		seen[p.Name] = true
		errs = append(errs, purposeNameRule.checkRequired(at.Child("name"), p.Name)...)
		errs = append(errs, purposeTitleRule.checkRequired(at.Child("title"), string(p.Title))...)
		errs = append(errs, p.validateTitles(at.Child("titles"))...)
	}
	return errs
}

func (p *Purpose) validateTitles(path *field.Path) field.ErrorList {
	if len(p.Titles) > maxPurposeTitles {
		return field.ErrorList{field.TooMany(path, len(p.Titles), maxPurposeTitles)}
	}
	var errs field.ErrorList
	for key, title := range p.Titles {
		if len(key) > localeRule.max || !localeRule.pattern.MatchString(key) {
			errs = append(errs, field.Invalid(path, field.OmitValueType{},
				"titles must have BCP 47 language tags as keys, for example de or pt-BR"))
			continue
		}
		errs = append(errs, purposeTitleRule.checkRequired(path.Key(key), string(title))...)
	}
	return errs
}

// validateAssurance checks the rules between assurance, replies and retention.
func (s *VerificationProjectSpec) validateAssurance(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.EffectiveAssuranceLevel() == AssuranceLevelSession && s.EffectiveSendReplies() == SendRepliesNever {
		errs = append(errs, field.Invalid(path.Child("replies", "send"), s.Replies.Send,
			"assurance.level: Session needs replies: they bring the session code; set replies.send to Always or OnTrouble"))
	}
	if s.EffectiveDeclineCooldown() > s.EffectiveRetention() {
		errs = append(errs, field.Invalid(path.Child("assurance", "declineCooldown"), s.Assurance.DeclineCooldown,
			"assurance.declineCooldown must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): "+
				"deleted requests show no answer; raise request.retention or shorten declineCooldown"))
	}
	return errs
}
