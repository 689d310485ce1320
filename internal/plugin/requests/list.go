package requests

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// Requests is what lists print as JSON and YAML.
type Requests struct {
	Requests []Request `json:"requests"`
}

func newListCommand(env *plugin.Env) *cobra.Command {
	r := newReader(env)
	var limit limitFlag
	cmd := &cobra.Command{
		Use:   "list NAME",
		Short: "List the requests of a project, newest first",
		Long: `List the requests of a project, newest first. Tables mask phone numbers; JSON and YAML do not.

With storage Kubernetes it reads VerificationRequests with your own rights. With storage PostgreSQL it asks the API of a pod, through a
port-forward, with an API key that has the scope Read.`,
		Example: `  # those of the last hour that are not verified yet
  kubectl phoneproof requests list shop --since 1h --status pending

  # those of one of your users, with whole numbers
  kubectl phoneproof requests list shop --reference user-4711 -o json

  # a project on PostgreSQL
  kubectl phoneproof requests list shop --api-key support`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := r.query.parse(r.now())
			if err != nil {
				return err
			}
			if err := limit.validate(); err != nil {
				return err
			}
			source, err := r.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list, err := source.List(cmd.Context(), query, int(limit))
			if err != nil {
				return err
			}
			return r.printList(list)
		},
	}
	r.addFlags(cmd)
	r.query.addTo(cmd)
	limit.addTo(cmd)
	return plugin.DeclareRights(cmd, readRights("list")...)
}

// printList prints requests, or a word that there are none.
func (r *reader) printList(list []Request) error {
	if len(list) == 0 && r.output.IsTable() {
		fmt.Fprintln(r.env.Streams.ErrOut, "No requests found.")
		return nil
	}
	if list == nil {
		list = []Request{}
	}
	r.table.wide = r.table.wide || r.output.Wide()
	return r.output.Print(r.env.Streams.Out, Requests{list}, func(out io.Writer) error {
		return r.table.printTo(out, list, r.now())
	})
}

// searched is how many of the newest requests are searched for those that a command shows.
const searched = 10_000

// printSelected prints those of the newest requests that keep reports true for.
func (r *reader) printSelected(ctx context.Context, source requestSource, limit int, keep func(*Request) bool) error {
	query, err := r.query.parse(r.now())
	if err != nil {
		return err
	}
	list, err := source.List(ctx, query, searched)
	if err != nil {
		return err
	}
	if len(list) == searched {
		fmt.Fprintf(r.env.Streams.ErrOut, "Only the newest %d requests were searched: use --since.\n", searched)
	}
	list = slices.DeleteFunc(list, func(request Request) bool { return !keep(&request) })
	return r.printList(list[:min(len(list), limit)])
}
