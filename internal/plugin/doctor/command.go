package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// The codes that the program ends with.
const (
	// ExitFindings is for a project with at least one finding.
	ExitFindings = 1
	// ExitUnexamined is for projects that could not be examined, and for a command line that makes no sense.
	ExitUnexamined = 2
)

// ExitError is an error with the code that the program is to end with.
type ExitError struct {
	Code int
	Err  error
}

// Error returns what happened.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// ErrFindings is the error of a report with findings, which the report itself describes.
var ErrFindings = errors.New("the doctor found what the report says")

// reports are the form of -o json and -o yaml.
type reports struct {
	// Installation is nil if one project was named.
	Installation *Report  `json:"installation,omitempty"`
	Projects     []Report `json:"projects"`
	// unlisted is empty if the projects could be listed.
	unlisted unlistedError
}

// list returns the reports in their order.
func (r *reports) list() []Report {
	if r.Installation == nil {
		return r.Projects
	}
	return append([]Report{*r.Installation}, r.Projects...)
}

const longHelp = `Examine a project from outside and by its status, and say what is broken and what to do.

Without NAME, the installation and all projects of the namespace are examined, with -A those of all namespaces. The doctor reads
with your own rights and changes nothing. What you may not read is listed as not checked. It connects to the API server and to the
host of spec.baseURL, and with --ask-platforms to the messengers' platforms, for which it reads the credentials in the Secrets. It
prints no value of a Secret.

The exit code is 0 if nothing was found, 1 if something was, and else 2 if projects could not be examined or
the command line makes no sense.`

// NewCommand returns the command doctor, with kubectl's connection flags, which the root command has added.
func NewCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var o Options
	var output string
	cmd := &cobra.Command{
		Use:   "doctor [NAME]",
		Short: "Examine a project and say what is broken and what to do",
		Long:  longHelp,
		Example: `  kubectl phoneproof doctor shop
  kubectl phoneproof doctor -A
  kubectl phoneproof doctor shop --ask-platforms
  kubectl phoneproof doctor -n shop -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
				return &ExitError{ExitUnexamined, err}
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return examineProjects(cmd, flags, streams, o, output, append(args, "")[0])
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &ExitError{ExitUnexamined, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "examine the projects of all namespaces")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; text if empty")
	cmd.Flags().BoolVar(&o.Probe, "probe", true, "connect from this machine to the host of spec.baseURL")
	cmd.Flags().BoolVar(&o.AskPlatforms, "ask-platforms", false, "ask WhatsApp and Telegram with the credentials in the Secrets; changes nothing there")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", defaultTimeout, "how long each of the parts, which run at the same time, may take")
	cmd.Flags().StringVar(&o.OperatorNamespace, "operator-namespace", "phoneproof-system",
		"where the operator is, if you may not list Deployments in all namespaces")
	cmd.Flags().StringVar(&o.GraphURL, "whatsapp-url", "", "Meta's Graph API for --ask-platforms, if not the public one")
	cmd.Flags().StringVar(&o.BotAPIURL, "telegram-url", "", "the Bot API for --ask-platforms, if not the public one")
	cmd.Flags().StringVar(&o.SimulatorURL, "simulator-url", "", "where credentials that begin with sim_ go with --ask-platforms")
	o.Docs.AddTo(cmd)
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "list", Resource: plugin.ResourceProjects, For: "without NAME"},
		plugin.Right{Verbs: "get", Resource: "deployments.apps", For: "the pods"},
		plugin.Right{Verbs: "list", Resource: "pods", For: "the pods"},
		plugin.Right{Verbs: "list", Resource: "resourcequotas", For: "what keeps pods from starting"},
		plugin.Right{Verbs: "list", Resource: "limitranges", For: "what keeps pods from starting"},
		plugin.Right{Verbs: "list", Resource: "networkpolicies.networking.k8s.io", For: "who reaches the pods"},
		plugin.Right{Verbs: "get", Resource: "leases.coordination.k8s.io", For: "the pods' clocks"},
		plugin.Right{Verbs: "get", Resource: "roles.rbac.authorization.k8s.io", For: "the roles of the pods"},
		plugin.Right{Verbs: "create", Resource: "localsubjectaccessreviews.authorization.k8s.io", For: "the operator's rights"},
		plugin.Right{Verbs: "get", Resource: "secrets", For: "the form of the values, and --ask-platforms"},
		plugin.Right{Verbs: "get", Resource: "pods/proxy", For: "what arrives at the callback of WhatsApp"},
	)
}

const defaultTimeout = 15 * time.Second

func examineProjects(
	cmd *cobra.Command, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, o Options, output, name string,
) error {
	all, err := collectReports(cmd, flags, o, output, name)
	if err != nil {
		return &ExitError{ExitUnexamined, err}
	}
	if err := writeReports(streams.Out, all, output); err != nil {
		return &ExitError{ExitUnexamined, fmt.Errorf("write report: %w", err)}
	}
	for _, r := range all.list() {
		if !r.Healthy {
			return &ExitError{ExitFindings, ErrFindings}
		}
	}
	if all.unlisted != "" {
		return &ExitError{ExitUnexamined, ErrFindings}
	}
	return nil
}

func collectReports(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, o Options, output, name string) (*reports, error) {
	if output != "" && output != "json" && output != "yaml" {
		return nil, errors.New("--output: want json or yaml")
	}
	if o.AllNamespaces && name != "" {
		return nil, errors.New("--all-namespaces: want no NAME")
	}
	if o.Timeout <= 0 {
		return nil, errors.New("--timeout: want more than 0s")
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read namespace of kubeconfig: %w", err)
	}
	own := namespace
	if o.AllNamespaces {
		namespace = ""
	}
	examiner, err := NewExaminer(config, o)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	all := &reports{Projects: []Report{}}
	projects, err := examiner.Projects(cmd.Context(), namespace, name)
	if why, ok := errors.AsType[unlistedError](err); ok {
		all.unlisted, err = why, nil
		if o.AllNamespaces { // those of one namespace, if these may be listed
			projects, _ = examiner.Projects(cmd.Context(), own, "")
		}
	}
	kindMissing := name == "" && errors.Is(err, errNoKind)
	if err != nil && !kindMissing {
		return nil, fmt.Errorf("read project: %w", err)
	}
	if name == "" {
		facts := examiner.GatherInstallation(cmd.Context(), namespace)
		facts.Projects.Why = string(all.unlisted)
		if kindMissing {
			facts.MissingFields = knownValue([]string{"the kind VerificationProject"})
		}
		all.Installation = new(examine(facts, installationChecks()))
	}
	for i := range projects {
		all.Projects = append(all.Projects, Examine(examiner.Gather(cmd.Context(), &projects[i])))
	}
	return all, nil
}

func writeReports(w io.Writer, all *reports, output string) error {
	switch output {
	case "json":
		content, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return fmt.Errorf("encode JSON: %w", err)
		}
		_, err = w.Write(append(content, '\n'))
		return err
	case "yaml":
		content, err := yaml.Marshal(all)
		if err != nil {
			return fmt.Errorf("encode YAML: %w", err)
		}
		_, err = w.Write(content)
		return err
	default:
		for i, r := range all.list() {
			if i > 0 {
				fmt.Fprintln(w)
			}
			writeText(w, &r)
		}
		if len(all.Projects) == 0 && all.unlisted == "" {
			fmt.Fprintf(w, "\nThere is no VerificationProject here.\n")
		}
		return nil
	}
}

// writeText writes a report for people.
func writeText(w io.Writer, r *Report) {
	subject := "The installation"
	if r.Name != "" {
		subject = fmt.Sprintf("VerificationProject %s/%s", r.Namespace, r.Name)
	}
	switch len(r.Findings) {
	case 0:
		fmt.Fprintf(w, "%s: nothing found\n", subject)
	case 1:
		fmt.Fprintf(w, "%s: 1 finding\n", subject)
	default:
		fmt.Fprintf(w, "%s: %d findings\n", subject, len(r.Findings))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(w, "\n%s: %s\n  evidence: %s\n  remedy:   %s\n  see:      %s\n", f.Check, f.Problem, f.Evidence, f.Remedy, f.See)
	}
	if len(r.NotChecked) > 0 {
		fmt.Fprintf(w, "\nNot checked:\n")
	}
	for _, n := range r.NotChecked {
		fmt.Fprintf(w, "  %s: %s\n", n.What, n.Why)
	}
}
