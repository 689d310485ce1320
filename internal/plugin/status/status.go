// Package status are the commands for the daily work on a project: what it is, what is wrong with it and what to do, its logs and metrics,
// and how it is stopped and started.
package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// command holds the flags.
type command struct {
	env    *plugin.Env
	output plugin.OutputFlags
	all    bool
	docs   plugin.Docs
	now    func() time.Time
}

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	c := &command{env: env, now: time.Now}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show projects: what works, what does not, and what to do",
		Long: `Show a project: its conditions, addresses, API keys by name, pods, the holder of its lease, and how many requests it stores.
Without a name show all projects of the namespace, a line each. What you may not read is left out, with a line that says so.`,
		Example: `  # all projects of the cluster
  kubectl phoneproof status -A

  # one of them, with all that can be found out
  kubectl phoneproof status shop

  # what is wrong with it, for a script
  kubectl phoneproof status shop -o json | jq '.problems'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.Validate(); err != nil {
				return err
			}
			if len(args) == 0 {
				return c.showAll(cmd.Context())
			}
			if c.all {
				return fmt.Errorf("--all-namespaces shows all projects: leave out the name %s", args[0])
			}
			return c.showOne(cmd.Context(), args[0])
		},
	}
	c.output.AddTo(cmd)
	c.docs.AddTo(cmd)
	cmd.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "show the projects of all namespaces")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "list", Resource: plugin.ResourceProjects, For: "without a name, and with -A in all namespaces"},
		plugin.Right{Verbs: "get", Resource: "deployments.apps", For: "replicas"},
		plugin.Right{Verbs: "get", Resource: "leases.coordination.k8s.io", For: "the holder of the lease"},
		plugin.Right{Verbs: "list", Resource: "pods", For: "how many requests are stored"},
		plugin.Right{Verbs: "create,get", Resource: "pods/portforward", For: "how many requests are stored"},
	)
}

func (c *command) showOne(ctx context.Context, name string) error {
	opened, err := plugin.Open(ctx, c.env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	report := describeProject(opened.Project, c.docs)
	gatherRest(ctx, c.env, opened, &report)
	return c.output.Print(c.env.Streams.Out, report, func(out io.Writer) error {
		return printReport(out, &report, c.now(), plugin.NewPaint(c.env.Streams.Out))
	})
}

func (c *command) showAll(ctx context.Context) error {
	cluster, err := plugin.Connect(c.env.Flags)
	if err != nil {
		return fmt.Errorf("connect to cluster: %w", err)
	}
	var in []client.ListOption
	if !c.all {
		in = append(in, client.InNamespace(cluster.Namespace))
	}
	var list verifyv1.VerificationProjectList
	if err := cluster.List(ctx, &list, in...); err != nil {
		return fmt.Errorf("list projects: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b verifyv1.VerificationProject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	reports := Reports{Items: make([]Report, 0, len(list.Items))}
	for i := range list.Items {
		reports.Items = append(reports.Items, describeProject(&list.Items[i], c.docs))
	}
	return c.output.Print(c.env.Streams.Out, reports, func(out io.Writer) error {
		return c.printList(out, &reports)
	})
}
