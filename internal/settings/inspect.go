package settings

import (
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// InspectSecrets returns the state of a project's secrets by the rules of a server that starts now. lookup returns the content of
// one key of a Secret, and false if the Secret or the key is missing. It is for programs that read the Secrets themselves.
func InspectSecrets(project *verifyv1.VerificationProject, lookup func(verifyv1.SecretKeyRef) ([]byte, bool), now time.Time) Secrets {
	all := listUses(&project.Spec)
	readings := make(map[verifyv1.SecretKeyRef]reading, len(all))
	for _, u := range all {
		content, found := lookup(u.ref)
		if !found {
			readings[u.ref] = reading{reason: ReasonMissing}
			continue
		}
		readings[u.ref] = readContent(content)
	}
	return Secrets{}.applyReadings(all, readings, now)
}

// SecretField is one use of a Secret in a project.
type SecretField struct {
	// Field is the path of the reference, such as spec.apiKeys[backend].secretRef.
	Field string
	Ref   verifyv1.SecretKeyRef
	// Text reports whether blanks around the value can only be a mistake: they do not belong to certificates.
	Text bool
}

// SecretFields returns all uses of Secrets in a project, in the order of the spec.
func SecretFields(spec *verifyv1.VerificationProjectSpec) []SecretField {
	var fields []SecretField
	for _, u := range listUses(spec) {
		fields = append(fields, SecretField{Field: u.field, Ref: u.ref, Text: u.kind != kindAuthority})
	}
	return fields
}
