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

// change is the difference between two settings, as names that are safe to log. It holds no values of fields, because a
// webhook's URL may contain a token, and none of secrets.
type change struct {
	project  string    // the name, if this is the first project
	fields   []string  // of the spec
	secrets  []string  // those with a new value, as SECRET/KEY
	problems []Problem // new ones
	solved   []Problem // those that have ended
	lapsed   []Problem // those whose former value was used until now
	limits   string    // how the limits contradict each other, if they did not before
}

func findChanges(oldProject, project *verifyv1.VerificationProject, oldSecrets, secrets Secrets) change {
	old, now := oldSecrets.listProblems(), secrets.listProblems()
	c := change{
		secrets:  secrets.findReplaced(oldSecrets),
		problems: excludeProblems(now, old),
		solved:   excludeProblems(old, now),
		lapsed:   secrets.findLapsed(oldSecrets),
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

func (c change) isEmpty() bool {
	return len(c.fields) == 0 && len(c.secrets) == 0 && len(c.problems) == 0 && len(c.solved) == 0 &&
		len(c.lapsed) == 0
}

func (c change) logTo(log logr.Logger) {
	switch {
	case c.project != "":
		log.Info("settings loaded")
	case len(c.fields) > 0 || len(c.secrets) > 0:
		log.Info("settings changed", "fields", c.fields, "secretsReplaced", c.secrets)
	}
	if c.limits != "" {
		logWarning(log, "limits contradict each other", "reason", c.limits)
	}
	for _, p := range c.problems {
		logWarning(log, "secret cannot be used", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "reason", p.Reason)
	}
	for _, p := range c.lapsed {
		logWarning(log, "former secret value expired", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "reason", p.Reason)
	}
	for _, p := range c.solved {
		log.Info("secret can be used again", "field", p.Field, "secretName", p.Secret, "secretKey", p.Key, "was", p.Reason)
	}
}

// warn logs at WARN, for which logr has no method: its levels are those of slog, negated.
func logWarning(log logr.Logger, message string, keysAndValues ...any) {
	const level = -int(slog.LevelWarn)
	if sink := log.GetSink(); sink != nil && sink.Enabled(level) {
		sink.Info(level, message, keysAndValues...)
	}
}

// without returns the problems of a that are not in b.
func excludeProblems(a, b []Problem) []Problem {
	var out []Problem
	for _, p := range a {
		if !slices.Contains(b, p) {
			out = append(out, p)
		}
	}
	return out
}

// changedFields returns the names of the top-level fields that differ between two specs, sorted.
func changedFields(a, b *verifyv1.VerificationProjectSpec) []string {
	old, now := encodeFields(a), encodeFields(b)
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

func encodeFields(spec *verifyv1.VerificationProjectSpec) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // a spec is decoded from JSON, so it can be encoded
		panic(fmt.Sprintf("encode spec: %v", err))
	}
	return fields
}

// joinErrors returns all of errs as one error, in a fixed order. It leaves values out, because a user may put a token into the
// wrong field.
func joinErrors(errs field.ErrorList) error {
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
