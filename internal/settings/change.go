package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// change is what is new, in names that may stand in a log: no values of fields, because a webhook's URL may hold a
// token, and none of secrets.
type change struct {
	project  string    // of the first project, else empty
	fields   []string  // of the spec
	secrets  []string  // with a new value, as SECRET/KEY
	problems []Problem // that were none
	solved   []Problem // that are none any more
	lapsed   []Problem // whose former value was used until now
	limits   string    // how the limits contradict each other, if they did not before
}

func compare(oldProject, project *verifyv1.VerificationProject, oldSecrets, secrets Secrets) change {
	old, now := oldSecrets.problems(), secrets.problems()
	c := change{
		secrets:  secrets.replacedSince(oldSecrets),
		problems: without(now, old),
		solved:   without(old, now),
		lapsed:   secrets.lapsedSince(oldSecrets),
	}
	if contradiction := project.Spec.LimitsContradiction(); oldProject == nil || contradiction != oldProject.Spec.LimitsContradiction() {
		c.limits = contradiction
	}
	if oldProject == nil {
		c.project = project.Namespace + "/" + project.Name
		return c
	}
	c.fields = changedFields(&oldProject.Spec, &project.Spec)
	return c
}

func (c change) none() bool {
	return len(c.fields) == 0 && len(c.secrets) == 0 && len(c.problems) == 0 && len(c.solved) == 0 &&
		len(c.lapsed) == 0
}

func (c change) log(log logr.Logger) {
	switch {
	case c.project != "":
		log.Info("settings loaded", "project", c.project)
	case len(c.fields) > 0 || len(c.secrets) > 0:
		log.Info("settings changed", "fields", c.fields, "secretsReplaced", c.secrets)
	}
	if c.limits != "" {
		warn(log, "limits contradict each other", "reason", c.limits)
	}
	for _, p := range c.problems {
		warn(log, "secret cannot be used", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "reason", p.Reason)
	}
	for _, p := range c.lapsed {
		warn(log, "former value of the secret has ended", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "reason", p.Reason)
	}
	for _, p := range c.solved {
		log.Info("secret can be used again", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "was", p.Reason)
	}
}

// warn logs at WARN, for which logr has no method: its levels are those of slog, negated.
func warn(log logr.Logger, message string, keysAndValues ...any) {
	const level = -int(slog.LevelWarn)
	if sink := log.GetSink(); sink != nil && sink.Enabled(level) {
		sink.Info(level, message, keysAndValues...)
	}
}

// without returns the problems of a that are not in b.
func without(a, b []Problem) []Problem {
	var out []Problem
	for _, p := range a {
		if !slices.Contains(b, p) {
			out = append(out, p)
		}
	}
	return out
}

// changedFields names the fields of two specs, one level deep, that are not the same.
func changedFields(a, b *verifyv1.VerificationProjectSpec) []string {
	old, now := fieldsOf(a), fieldsOf(b)
	var names []string
	for name, value := range now {
		if string(old[name]) != string(value) {
			names = append(names, name)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func fieldsOf(spec *verifyv1.VerificationProjectSpec) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // a spec is made from JSON, so it has a JSON form
		panic(fmt.Sprintf("the spec has no JSON form: %v", err))
	}
	return fields
}

// joined returns all of errs as one error, in a fixed order and without the values: somebody will put a token into the
// wrong field.
func joined(errs field.ErrorList) error {
	texts := make([]string, 0, len(errs))
	for _, e := range errs {
		text := e.Field + ": " + e.Type.String()
		switch {
		case e.Detail != "":
			text += ": " + e.Detail
		case e.Type == field.ErrorTypeDuplicate:
			text += ": another entry has it already; give each its own"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	var all []error
	for _, text := range slices.Compact(texts) {
		all = append(all, errors.New(text))
	}
	return errors.Join(all...)
}
