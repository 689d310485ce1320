package status

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// maxLine is the longest line of a log that is read.
const maxLine = 1 << 20

// logs holds the flags.
type logs struct {
	env      *plugin.Env
	operator bool
	follow   bool
	previous bool
	since    time.Duration
	tail     int64
	match    string
}

// NewLogsCommand returns the command logs.
func NewLogsCommand(env *plugin.Env) *cobra.Command {
	l := &logs{env: env}
	cmd := &cobra.Command{
		Use:   "logs NAME | --operator",
		Short: "Print the logs of all pods of a project, or of the operator",
		Long: `Print the logs of all pods of a project, each line with its pod. --operator prints those of the operator, in the namespace of the
flags; the chart's is phoneproof-system.`,
		Example: `  kubectl phoneproof logs shop --since 1h --match '"level":"ERROR"'
  kubectl phoneproof logs --operator -n phoneproof-system --tail 100`,
		Args: func(_ *cobra.Command, args []string) error {
			if l.operator == (len(args) == 1) || len(args) > 1 {
				return errors.New("name a project, or use --operator")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pods, config, err := l.findPods(cmd.Context(), args)
			if err != nil {
				return err
			}
			return l.print(cmd.Context(), pods, config)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&l.operator, "operator", false, "the operator's logs")
	flags.BoolVarP(&l.follow, "follow", "f", false, "go on with what is logged from now on")
	flags.BoolVarP(&l.previous, "previous", "p", false, "those of containers that ended before")
	flags.DurationVar(&l.since, "since", 0, "only lines that are not older, such as 1h; all if 0")
	flags.Int64Var(&l.tail, "tail", -1, "how many of the last lines of each pod; all if negative")
	flags.StringVar(&l.match, "match", "", "only lines that hold this text")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get", Resource: plugin.ResourceProjects, For: "not with --operator"},
		plugin.Right{Verbs: "list", Resource: "pods"},
		plugin.Right{Verbs: "get", Resource: "pods/log"},
	)
}

// findPods returns the pods whose logs are printed.
func (l *logs) findPods(ctx context.Context, args []string) ([]corev1.Pod, *plugin.Cluster, error) {
	if !l.operator {
		opened, err := plugin.Open(ctx, l.env.Flags, args[0])
		if err != nil {
			return nil, nil, fmt.Errorf("open project: %w", err)
		}
		pods, err := opened.Pods(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("find pods of the project: %w", err)
		}
		return pods, opened.Cluster, nil
	}
	cluster, err := plugin.Connect(l.env.Flags)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to cluster: %w", err)
	}
	pods, err := cluster.ListPods(ctx, cluster.Namespace, client.MatchingLabels{
		"app.kubernetes.io/name": "phoneproof", "app.kubernetes.io/component": "operator",
	})
	if err != nil {
		return nil, nil, fmt.Errorf("find pods of the operator: %w", err)
	}
	return pods, cluster, nil
}

func (l *logs) print(ctx context.Context, pods []corev1.Pod, cluster *plugin.Cluster) error {
	if len(pods) == 0 {
		return errors.New("no pods found")
	}
	newReader := l.env.ReadLogs
	if newReader == nil {
		newReader = plugin.NewReadLogs
	}
	read, err := newReader(cluster.Config)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	options := &corev1.PodLogOptions{Follow: l.follow, Previous: l.previous}
	if l.since > 0 {
		options.SinceSeconds = new(max(1, int64(l.since.Seconds())))
	}
	if l.tail >= 0 {
		options.TailLines = &l.tail
	}
	printer := &linePrinter{out: l.env.Streams.Out, match: l.match}
	var group errgroup.Group
	if !l.follow {
		group.SetLimit(1) // one pod after another
	}
	errs := make([]error, len(pods)) // a pod without a log takes nothing from the others
	for i := range pods {
		group.Go(func() error {
			errs[i] = printer.printLog(ctx, read, &pods[i], options)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// linePrinter prints lines of several logs, each whole.
type linePrinter struct {
	out   io.Writer
	match string
	mu    sync.Mutex
}

func (p *linePrinter) printLog(ctx context.Context, read plugin.ReadLogs, pod *corev1.Pod, options *corev1.PodLogOptions) error {
	log, err := read(ctx, pod, options)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), p.match) {
			continue
		}
		p.mu.Lock()
		_, err := fmt.Fprintf(p.out, "%s %s\n", pod.Name, lines.Text())
		p.mu.Unlock()
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read log of pod %s: %w", pod.Name, err)
	}
	return nil
}
