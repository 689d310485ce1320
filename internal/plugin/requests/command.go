package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// defaultLimit is how many requests are listed unless the user says otherwise.
const defaultLimit = 50

// NewCommand returns the command with its subcommands.
func NewCommand(env *plugin.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "requests",
		Aliases: []string{"request"},
		Short:   "List, show, watch and delete the requests of a project",
	}
	cmd.AddCommand(newListCommand(env), newGetCommand(env), newWatchCommand(env), newDeclinesCommand(env), newSkippedCommand(env),
		newDeleteCommand(env))
	return cmd
}

// reader holds what the subcommands have in common.
type reader struct {
	env    *plugin.Env
	key    keyFlags
	output plugin.OutputFlags
	table  tableOptions
	query  queryFlags
	now    func() time.Time
}

func newReader(env *plugin.Env) *reader {
	return &reader{env: env, key: keyFlags{Scope: verifyv1.ScopeRead}, now: time.Now}
}

func (r *reader) addFlags(cmd *cobra.Command) {
	r.key.AddTo(cmd)
	r.addOutputFlags(cmd)
}

func (r *reader) addOutputFlags(cmd *cobra.Command) {
	r.output.AddTo(cmd)
	cmd.Flags().BoolVar(&r.table.showNumbers, "show-numbers", false, "show whole phone numbers in tables")
}

// open returns the source of a project's requests.
func (r *reader) open(ctx context.Context, name string) (requestSource, error) {
	opened, err := r.openProject(ctx, name)
	if err != nil {
		return nil, err
	}
	return openSource(ctx, r.env, opened, &r.key)
}

// openObjects returns the objects of a project, with any storage.
func (r *reader) openObjects(ctx context.Context, name string) (requestSource, error) {
	opened, err := r.openProject(ctx, name)
	if err != nil {
		return nil, err
	}
	return &objects{client: opened, now: r.now}, nil
}

// openProject checks the flags of the output before it asks the API server.
func (r *reader) openProject(ctx context.Context, name string) (*plugin.Client, error) {
	if err := r.output.Validate(); err != nil {
		return nil, err
	}
	opened, err := plugin.Open(ctx, r.env.Flags, name)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return opened, nil
}

// queryFlags select requests.
type queryFlags struct {
	status, reference, since string
}

func (f *queryFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.status, "status", "", "only requests with this status: PENDING, VERIFIED or EXPIRED")
	cmd.Flags().StringVar(&f.reference, "reference", "", "only requests with this reference")
	f.addSince(cmd)
	complete := cobra.FixedCompletions([]cobra.Completion{statusPending, statusVerified, statusExpired}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("status", complete); err != nil {
		panic(err) // the flag is defined above
	}
}

func (f *queryFlags) addSince(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "only requests from then on: a duration such as 2h, or a time in RFC 3339")
}

// parse returns the query of the flags.
func (f *queryFlags) parse(now time.Time) (Query, error) {
	query := Query{Status: strings.ToUpper(f.status), Reference: f.reference}
	switch query.Status {
	case "", statusPending, statusVerified, statusExpired:
	default:
		return Query{}, fmt.Errorf("--status %q is unknown: use PENDING, VERIFIED or EXPIRED", f.status)
	}
	if f.since == "" {
		return query, nil
	}
	if ago, err := time.ParseDuration(f.since); err == nil {
		query.Since = now.Add(-ago)
		return query, nil
	}
	since, err := time.Parse(time.RFC3339, f.since)
	if err != nil {
		return Query{}, fmt.Errorf("--since %q is neither a duration such as 2h nor a time such as 2027-01-31T09:30:00Z", f.since)
	}
	query.Since = since
	return query, nil
}

// limitFlag is how many requests are listed.
type limitFlag int

func (l *limitFlag) addTo(cmd *cobra.Command) {
	cmd.Flags().IntVar((*int)(l), "limit", defaultLimit, "how many requests to list at most, newest first")
}

func (l limitFlag) validate() error {
	if l < 1 {
		return errors.New("--limit must be 1 or more")
	}
	return nil
}

// readRights are the rights of the commands that read requests.
func readRights(verbs string) []plugin.Right {
	return append([]plugin.Right{
		{Verbs: "get", Resource: plugin.ResourceProjects},
		{Verbs: verbs, Resource: plugin.ResourceRequests, For: "with storage Kubernetes"},
	}, plugin.RightsForAPI("with storage PostgreSQL")...)
}
