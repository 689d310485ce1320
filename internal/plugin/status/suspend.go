package status

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// NewSuspendCommand returns the command suspend.
func NewSuspendCommand(env *plugin.Env) *cobra.Command {
	return newSuspension(env, true, &cobra.Command{
		Use:     "suspend NAME",
		Short:   "Stop a project: no pod runs, and what is stored waits",
		Example: "  kubectl phoneproof suspend shop",
	})
}

// NewResumeCommand returns the command resume.
func NewResumeCommand(env *plugin.Env) *cobra.Command {
	return newSuspension(env, false, &cobra.Command{
		Use:     "resume NAME",
		Short:   "Start a project again that was suspended",
		Example: "  kubectl phoneproof resume shop",
	})
}

func newSuspension(env *plugin.Env, suspend bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return setSuspend(cmd.Context(), env, args[0], suspend) }
	return plugin.DeclareRights(cmd, plugin.Right{Verbs: "get,patch", Resource: plugin.ResourceProjects})
}

func setSuspend(ctx context.Context, env *plugin.Env, name string, suspend bool) error {
	opened, err := plugin.Open(ctx, env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	state := map[bool]string{true: "suspended", false: "running"}[suspend]
	if opened.Project.Suspended() == suspend {
		return env.Print("project %s is %s already", name, state)
	}
	before := opened.Project.DeepCopy()
	if opened.Project.Spec.Suspend = nil; suspend {
		opened.Project.Spec.Suspend = new(true)
	}
	if err := opened.Patch(ctx, opened.Project, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change project: %w", err)
	}
	return env.Print("project %s is to be %s", name, state)
}
