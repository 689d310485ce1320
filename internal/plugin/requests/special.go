package requests

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

func newDeclinesCommand(env *plugin.Env) *cobra.Command {
	r := newReader(env)
	var limit limitFlag
	cmd := &cobra.Command{
		Use:   "declines NAME",
		Short: "List the requests that the owner of the number declined",
		Long: `List the requests whose owner answered "Not me", with the reference and metadata that your backend gave to init: what they have in
common says where the links are passed on. See the alert PhoneProofDeclines in the runbook.`,
		Example: `  kubectl phoneproof requests declines shop --since 1h`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := limit.validate(); err != nil {
				return err
			}
			source, err := r.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.table.wide = true
			return r.printSelected(cmd.Context(), source, int(limit), isDeclined)
		},
	}
	r.addFlags(cmd)
	r.query.addSince(cmd)
	limit.addTo(cmd)
	return plugin.DeclareRights(cmd, readRights("list")...)
}

// isDeclined reports whether the owner of the number answered "Not me".
func isDeclined(r *Request) bool {
	if r.Hint == hintDeclined {
		return true
	}
	for _, h := range r.Hints {
		if h.Kind == hintDeclined {
			return true
		}
	}
	return false
}

func newSkippedCommand(env *plugin.Env) *cobra.Command {
	r := newReader(env)
	var limit limitFlag
	cmd := &cobra.Command{
		Use:   "skipped NAME",
		Short: "List the VerificationRequests that servers leave alone, and why",
		Long: `List the VerificationRequests whose content no server can have written, and the manual requests that were refused or that no server
has taken up, each with the reason. Objects that the API server refuses every update of are not among them: the log of the lease holder
names those (kubectl phoneproof logs NAME --match "request skipped"). See the alert PhoneProofRequestsSkipped in the runbook.

With storage PostgreSQL it reads the objects, too, of which servers take up none. The requests in the database are not among them.`,
		Example: `  kubectl phoneproof requests skipped shop`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := limit.validate(); err != nil {
				return err
			}
			source, err := r.openObjects(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.table.wide = true
			return r.printSelected(cmd.Context(), source, int(limit), func(r *Request) bool { return r.Problem != "" })
		},
	}
	r.addOutputFlags(cmd)
	r.query.addSince(cmd)
	limit.addTo(cmd)
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects}, plugin.Right{Verbs: "list", Resource: plugin.ResourceRequests})
}

func newDeleteCommand(env *plugin.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "delete NAME ID...",
		Short: "Delete VerificationRequests of a project with storage Kubernetes",
		Long: `Delete VerificationRequests of a project with storage Kubernetes. A request that is deleted before its time loses its event, so one
whose event is due or that is still pending needs --force. One with a code counts in the limits of its number for a day, but only while
it is stored.`,
		Example: `  # what servers cannot work on
  kubectl phoneproof requests delete shop broken-by-hand`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opened, err := plugin.Open(cmd.Context(), env.Flags, args[0])
			if err != nil {
				return fmt.Errorf("open project: %w", err)
			}
			if !opened.UsesObjects() {
				return fmt.Errorf("project %s keeps its requests in PostgreSQL, where each is deleted after spec.request.retention", args[0])
			}
			for _, id := range args[1:] {
				if err := deleteObject(cmd.Context(), env, opened, id, force); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it although it is pending or its event is due")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects}, plugin.Right{Verbs: "get,delete", Resource: plugin.ResourceRequests})
}

// keepReason returns why a request should not be deleted; empty if nothing is lost.
func keepReason(r *Request) string {
	switch {
	case strings.HasPrefix(r.Problem, problemMalformed):
		return ""
	case r.Status == statusPending && r.Problem == "":
		return "it is pending"
	case r.Delivery != nil && r.Delivery.State == deliveryWaiting:
		return "its event is due and would be lost"
	default:
		return ""
	}
}
