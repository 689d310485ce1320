package status

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// NewMetricsCommand returns the command metrics.
func NewMetricsCommand(env *plugin.Env) *cobra.Command {
	var match string
	cmd := &cobra.Command{
		Use:   "metrics NAME",
		Short: "Print the metrics of one pod of a project",
		Long: `Print the metrics of one ready pod of a project, in the text format of Prometheus. Each pod counts what it did itself since
its start: sums over all pods and over time need Prometheus.`,
		Example: `  # do messages arrive, and are they accepted?
  kubectl phoneproof metrics shop --match callback_requests`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opened, err := plugin.Open(cmd.Context(), env.Flags, args[0])
			if err != nil {
				return fmt.Errorf("open project: %w", err)
			}
			text, err := plugin.ReadMetrics(cmd.Context(), env, opened)
			if err != nil {
				return err
			}
			for line := range strings.Lines(text) {
				if match != "" && (strings.HasPrefix(line, "#") || !strings.Contains(line, match)) {
					continue
				}
				if err := env.Print("%s", strings.TrimRight(line, "\n")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&match, "match", "", "only samples that hold this text")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "list", Resource: "pods"},
		plugin.Right{Verbs: "create,get", Resource: "pods/portforward"},
	)
}
