package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rightsAnnotation of a command holds its rights as JSON.
const rightsAnnotation = "phoneproof.dev/rights"

// Right is a right in the project's namespace.
type Right struct {
	// Verbs are verbs of RBAC, separated by commas.
	Verbs string `json:"verbs"`
	// Resource is a resource with its group, such as verificationprojects.phoneproof.dev or pods/log.
	Resource string `json:"resource"`
	// For is what needs the right; empty if the command does nothing without it.
	For string `json:"for,omitempty"`
}

// DeclareRights sets which rights on the Kubernetes API a command needs, and shows them at the end of its help. A test runs
// each command as a user who has exactly these.
func DeclareRights(cmd *cobra.Command, rights ...Right) *cobra.Command {
	encoded, err := json.Marshal(rights)
	if err != nil {
		panic(err) // strings are always encoded
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[rightsAnnotation] = string(encoded)
	text := strings.TrimRight(cmd.Long, "\n")
	if text == "" {
		text = cmd.Short + "."
	}
	cmd.Long = text + "\n\nRights in the project's namespace:\n" + describeRights(rights)
	return cmd
}

// RightsOf returns the rights of a command; nil if it declares none.
func RightsOf(cmd *cobra.Command) []Right {
	var declared []Right
	if err := json.Unmarshal([]byte(cmd.Annotations[rightsAnnotation]), &declared); err != nil {
		return nil
	}
	return declared
}

func describeRights(rights []Right) string {
	lines := make([]string, 0, len(rights))
	for _, r := range rights {
		lines = append(lines, "  "+r.String())
	}
	return strings.Join(lines, "\n")
}

// String returns the right in words.
func (r Right) String() string {
	text := fmt.Sprintf("%s %s", strings.ReplaceAll(r.Verbs, ",", ", "), r.Resource)
	if r.For != "" {
		text += " (" + r.For + ")"
	}
	return text
}

// Rule returns the right as a rule of a Role.
func (r Right) Rule() rbacv1.PolicyRule {
	resource, subresource, hasSubresource := strings.Cut(r.Resource, "/")
	parsed := schema.ParseGroupResource(resource)
	name := parsed.Resource
	if hasSubresource {
		name += "/" + subresource
	}
	return rbacv1.PolicyRule{APIGroups: []string{parsed.Group}, Resources: []string{name}, Verbs: strings.Split(r.Verbs, ",")}
}

// The resources that several commands need rights on.
const (
	ResourceProjects = "verificationprojects.phoneproof.dev"
	ResourceRequests = "verificationrequests.phoneproof.dev"
	ResourceEvents   = "events.events.k8s.io"
)

// RightsForAPI are the rights of commands that call the API of a pod. what is appended to each reason.
func RightsForAPI(what string) []Right {
	return []Right{
		{Verbs: "list", Resource: "pods", For: what},
		{Verbs: "create,get", Resource: "pods/portforward", For: what},
		{Verbs: "get", Resource: "secrets", For: what + ", with --api-key"},
	}
}
