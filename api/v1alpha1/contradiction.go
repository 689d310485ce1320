package v1alpha1

import (
	"fmt"
	"strings"
)

// LimitsContradiction explains to the project's owner how the API keys together
// can fill the store of a project with storage Kubernetes although events are
// delivered, so that every key is refused; empty if they cannot.
func (s *VerificationProjectSpec) LimitsContradiction() string {
	if s.Storage.Type == StoragePostgreSQL {
		return ""
	}
	rate, longest := s.EffectivePerKey(), s.LongestStored()
	period := rate.Period.Or(longest)
	keys, room := int64(s.countInitKeys()), int64(s.linkRoom())
	held := keys * int64(rate.Requests) * int64((longest+period-1)/period)
	if held <= room {
		return ""
	}
	limit, name := "rateLimit.perKey lets", "request.maxStored"
	if s.SendsCodes() {
		name = "request.maxStored without the maxPerDay of codes"
	}
	if s.RateLimit.PerKey == nil {
		limit = "rateLimit.perKey is at least 1, which lets"
	}
	return fmt.Sprintf("%s %s start %d requests in %s, which is how long one may stay stored, and %s is %d: "+
		"they can fill the store, and then init refuses all keys with too_many_stored; "+
		"lower or remove rateLimit.perKey, raise request.maxStored, or use PostgreSQL",
		limit, describeKeys(keys), held, DurationOf(longest), name, room)
}

// describeKeys returns the number of API keys in words.
func describeKeys(keys int64) string {
	if keys == 1 {
		return "the API key"
	}
	return fmt.Sprintf("the %d API keys together", keys)
}

// LimitsCommand returns the command that removes the contradiction of p's limits
// by letting the keys share maxStored; empty without a contradiction.
func (p *VerificationProject) LimitsCommand() string {
	if p.Spec.LimitsContradiction() == "" {
		return ""
	}
	var operations []string
	if p.Spec.RateLimit.PerKey != nil {
		operations = append(operations, `{"op":"remove","path":"/spec/rateLimit/perKey"}`)
	}
	if missing := p.Spec.countInitKeys() - p.Spec.linkRoom(); missing > 0 {
		operations = append(operations, fmt.Sprintf(`{"op":"add","path":"/spec/request/maxStored","value":%d}`,
			p.Spec.EffectiveMaxStored()+int(missing)))
	}
	return fmt.Sprintf("kubectl --namespace %s patch verificationproject %s --type=json -p '[%s]'",
		p.Namespace, p.Name, strings.Join(operations, ","))
}
