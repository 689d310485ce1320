package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// errFinished ends a watch of one request.
var errFinished = errors.New("the request is finished")

func newWatchCommand(env *plugin.Env) *cobra.Command {
	r := newReader(env)
	cmd := &cobra.Command{
		Use:   "watch NAME [ID]",
		Short: "Print requests whenever they change",
		Long: `Print a line for each request of a project now and whenever it changes; -o json prints one object a line. With an ID follow that
request until it is finished and its event is delivered or given up; it is an error if there is no such request, or if it is deleted before.

With storage PostgreSQL the newest 200 requests, or the one with the ID, are compared every 2 seconds.`,
		Example: `  kubectl phoneproof requests watch shop --since 10m`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := r.query.parse(r.now())
			if err != nil {
				return err
			}
			source, err := r.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return source.Watch(cmd.Context(), query, r.showChange)
			}
			err = source.Follow(cmd.Context(), args[1], func(request Request) error {
				if selects(&query, &request) {
					if err := r.showChange(request); err != nil {
						return err
					}
				}
				return endIfFinished(&request)
			})
			if errors.Is(err, errFinished) {
				return nil
			}
			return err
		},
	}
	r.addFlags(cmd)
	r.query.addTo(cmd)
	return plugin.DeclareRights(cmd, readRights("list,watch")...)
}

// endIfFinished returns errFinished for a request that does not change any more.
func endIfFinished(r *Request) error {
	if r.Status != statusPending && (r.Delivery == nil || r.Delivery.State != deliveryWaiting) {
		return errFinished
	}
	return nil
}

// showChange prints a line for a request. A table would wait for all of its lines.
func (r *reader) showChange(request Request) error {
	if !r.output.IsTable() {
		encoded, err := json.Marshal(request) //nolint:gosec // apiKey is the name of a key
		if err != nil {
			return fmt.Errorf("encode JSON: %w", err)
		}
		return r.env.Print("%s", encoded)
	}
	r.table.wide = r.output.Wide()
	row := r.table.row(&request, r.now())
	for i := range row {
		row[i] = plugin.Clean(row[i])
		if row[i] == "" {
			row[i] = "-"
		}
	}
	return r.env.Print("%s", strings.Join(row, "  "))
}
