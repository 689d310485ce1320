package project

import (
	"fmt"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// describeShared returns what a project shares with projects of other namespaces; nil if nothing. The message does not name them,
// because readers of one project's status may not see the others.
func describeShared(accounts []account, hosts []string) *blocker {
	var texts []string
	reason := verifyv1.ReasonHostShared
	for i := range accounts {
		if len(accounts[i].elsewhere) > 0 {
			reason = verifyv1.ReasonAccountShared
			texts = append(texts, fmt.Sprintf("%s: a project of another namespace names the same account, and the messenger decides "+
				"whose callback is registered; the cluster's administrator can grant the account to one namespace (operator flag %s)",
				accountField(accounts[i].name), accountGrantFlag))
		}
	}
	for _, host := range hosts {
		texts = append(texts, fmt.Sprintf("spec.expose: a project of another namespace answers to the host name %s too; the cluster's "+
			"administrator can grant it to one namespace (operator flag %s)", quoteValue(host), hostGrantFlag))
	}
	if len(texts) == 0 {
		return nil
	}
	return &blocker{plain, reason, strings.Join(texts, "; ")}
}
