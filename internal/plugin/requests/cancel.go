package requests

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// NewCancelCommand returns the command cancel.
func NewCancelCommand(env *plugin.Env) *cobra.Command {
	key := keyFlags{Scope: verifyv1.ScopeInit}
	cmd := &cobra.Command{
		Use:   "cancel NAME ID",
		Short: "End a pending verification",
		Long: `End a pending verification: it expires with the hint CANCELED, and its code counts no more. It calls cancel at a pod, through a
port-forward, with an API key that has the scope Init.

A manual request is ended in the same way, if the key has the scope Read, too. Without a key it is deleted instead, with your own rights,
and reports no event.`,
		Example: `  kubectl phoneproof cancel shop vr4soqontb52m5bmeyx7bop4b4 --api-key backend`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opened, err := plugin.Open(cmd.Context(), env.Flags, args[0])
			if err != nil {
				return fmt.Errorf("open project: %w", err)
			}
			if opened.UsesObjects() && !key.Named() {
				return cancelManual(cmd.Context(), env, opened, args[1])
			}
			api, err := connectAPI(cmd.Context(), env, opened, &key)
			if err != nil {
				return fmt.Errorf("cancel verification: %w", err)
			}
			if err := api.Cancel(cmd.Context(), args[1]); err != nil {
				return fmt.Errorf("cancel verification: %w", err)
			}
			return env.Print("request %s canceled", args[1])
		},
	}
	key.AddTo(cmd)
	return plugin.DeclareRights(cmd, append([]plugin.Right{
		{Verbs: "get", Resource: plugin.ResourceProjects},
		{Verbs: "get,delete", Resource: plugin.ResourceRequests, For: "manual requests"},
	}, plugin.RightsForAPI("other requests")...)...)
}

// cancelManual deletes a pending manual request.
func cancelManual(ctx context.Context, env *plugin.Env, p *plugin.Client, id string) error {
	var object verifyv1.VerificationRequest
	if err := p.Get(ctx, client.ObjectKey{Namespace: p.Project.Namespace, Name: id}, &object); err != nil {
		return fmt.Errorf("read VerificationRequest: %w", err)
	}
	switch {
	case object.Spec.ProjectRef.Name != p.Project.Name:
		return fmt.Errorf("request %s belongs to project %s", id, object.Spec.ProjectRef.Name)
	case object.Spec.Init != nil:
		return errors.New("the API made this request, and ends it: name a key that has the scope Init by --api-key or --api-key-file")
	case object.Status.Phase == verifyv1.PhaseVerified || object.Status.Phase == verifyv1.PhaseExpired:
		return fmt.Errorf("request %s has ended already: it is %s", id, object.Status.Phase)
	}
	// The version: a request that is verified meanwhile is not deleted.
	if err := p.Delete(ctx, &object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion}); err != nil {
		return fmt.Errorf("delete VerificationRequest: %w", err)
	}
	return env.Print("manual request %s deleted", id)
}
