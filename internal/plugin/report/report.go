// Package report is the command that packs a support bundle. Nothing enters it but what is allowed: fields by name, and in texts words
// that this program's own sources consist of. It reads no Secret and no request.
package report

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// Bounds of the logs in a bundle.
const (
	maxLogLines = 5_000
	maxLogBytes = 4 << 20
	maxLogLine  = 16 << 10
)

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	var (
		file  string
		since time.Duration
	)
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Pack a support bundle without secrets, codes and phone numbers",
		Long: `Pack a tar.gz that you can give to those who help you: the project, its conditions and events, its pods with the end of their logs,
Deployment, Service, Ingress and lease, versions, and the metrics of a pod, which count the stored requests by state.

It reads no Secret and no request. Of objects it takes the fields that it knows to be harmless, and of texts, such as logs and messages,
the words that PhoneProof itself consists of; everything else is replaced by ` + hidden + `. What you may not read is left out, and
listed in errors.txt.`,
		Example: `  kubectl phoneproof report shop
  kubectl phoneproof report shop --file - | tar tz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opened, err := plugin.Open(cmd.Context(), env.Flags, args[0])
			if err != nil {
				return fmt.Errorf("open project: %w", err)
			}
			if file == "" {
				file = "phoneproof-report-" + opened.Project.Namespace + "-" + args[0] + "-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			return write(cmd.Context(), env, opened, file, since)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "where to write the bundle, - for standard output; by default a file in this folder")
	cmd.Flags().DurationVar(&since, "since", 24*time.Hour, "how far logs go back")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "list", Resource: plugin.ResourceEvents, For: "events"},
		plugin.Right{Verbs: "list", Resource: "pods", For: "pods, logs, metrics"},
		plugin.Right{Verbs: "get", Resource: "pods/log", For: "logs"},
		plugin.Right{Verbs: "create,get", Resource: "pods/portforward", For: "metrics"},
		plugin.Right{Verbs: "get", Resource: "deployments.apps", For: "Deployment"},
		plugin.Right{Verbs: "get", Resource: "services", For: "Service"},
		plugin.Right{Verbs: "get", Resource: "ingresses.networking.k8s.io", For: "Ingress"},
		plugin.Right{Verbs: "get", Resource: "leases.coordination.k8s.io", For: "lease"},
	)
}

// write writes the bundle into a file, or to standard output.
func write(ctx context.Context, env *plugin.Env, p *plugin.Client, file string, since time.Duration) (err error) {
	b := &bundle{env: env, client: p, scrub: newScrubber(namesOf(p.Project)...), since: since, at: time.Now().UTC()}
	b.gather(ctx)
	if file == "-" {
		return b.pack(env.Streams.Out)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := b.pack(out); err != nil {
		return err
	}
	return env.Print("%s: %d files%s", file, len(b.files), b.describeErrors())
}

// bundle is what was gathered.
type bundle struct {
	env    *plugin.Env
	client *plugin.Client
	scrub  *scrubber
	since  time.Duration
	at     time.Time
	files  []bundledFile
	errors []string
}

// bundledFile is a file of the bundle.
type bundledFile struct {
	name    string
	content []byte
}

func (b *bundle) add(name string, content []byte) {
	b.files = append(b.files, bundledFile{name, content})
}

// fail records what could not be read. The words of an error are scrubbed like all others.
func (b *bundle) fail(what string, err error) {
	b.errors = append(b.errors, what+": "+b.scrub.scrub(err.Error()))
}

func (b *bundle) describeErrors() string {
	if len(b.errors) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d could not be read, see errors.txt", len(b.errors))
}

// pack writes the archive.
func (b *bundle) pack(out io.Writer) error {
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, f := range b.files {
		header := &tar.Header{Name: "phoneproof-report/" + f.name, Mode: 0o600, Size: int64(len(f.content)), ModTime: b.at, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
