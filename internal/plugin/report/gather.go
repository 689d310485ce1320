package report

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/internal/version"
)

// callTimeout bounds each step: a bundle is made when something hangs.
const callTimeout = 30 * time.Second

// gather reads all parts. A part that cannot be read is left out and named.
func (b *bundle) gather(ctx context.Context) {
	b.add("versions.txt", []byte("plugin: "+version.String()+"\n"))
	b.addYAML("project.yaml", describeProject(b.client.Project, b.scrub))
	child := client.ObjectKey{Namespace: b.client.Project.Namespace, Name: render.Name(b.client.Project.Name)}
	for _, part := range []struct {
		what string
		read func(context.Context) error
	}{
		{"events", b.readEvents},
		{"deployment", func(ctx context.Context) error {
			return readObject(ctx, b, "deployment.yaml", child, &appsv1.Deployment{}, describeDeployment)
		}},
		{"service", func(ctx context.Context) error {
			return readObject(ctx, b, "service.yaml", child, &corev1.Service{}, describeService)
		}},
		{"ingress", func(ctx context.Context) error {
			if b.client.Project.Spec.Expose.Ingress == nil {
				return nil
			}
			return readObject(ctx, b, "ingress.yaml", child, &networkingv1.Ingress{}, describeIngress)
		}},
		{"lease", func(ctx context.Context) error {
			key := client.ObjectKey{Namespace: child.Namespace, Name: leader.ProjectLease(b.client.Project.Name)}
			return readObject(ctx, b, "lease.yaml", key, &coordinationv1.Lease{}, describeLease)
		}},
		{"pods", b.readPods},
		{"metrics", b.readMetrics},
	} {
		func() {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if err := part.read(ctx); err != nil {
				b.fail(part.what, err)
			}
		}()
	}
	if len(b.errors) > 0 {
		b.add("errors.txt", []byte(strings.Join(b.errors, "\n")+"\n"))
	}
}

func (b *bundle) addYAML(name string, content any) {
	encoded, err := yaml.Marshal(content)
	if err != nil {
		b.fail(name, err)
		return
	}
	b.add(name, encoded)
}

// readObject adds what describe takes from an object.
func readObject[T client.Object](
	ctx context.Context, b *bundle, file string, key client.ObjectKey, object T, describe func(T, *scrubber) any,
) error {
	if err := b.client.Get(ctx, key, object); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	b.addYAML(file, describe(object, b.scrub))
	return nil
}

func (b *bundle) readEvents(ctx context.Context) error {
	var list eventsv1.EventList
	if err := b.client.List(ctx, &list, client.InNamespace(b.client.Project.Namespace)); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	name := render.Name(b.client.Project.Name)
	events := make([]any, 0, len(list.Items))
	for i := range list.Items {
		e := &list.Items[i]
		ofProject := e.Regarding.Kind == "VerificationProject" && e.Regarding.Name == b.client.Project.Name
		if ofProject || e.Regarding.Name == name || strings.HasPrefix(e.Regarding.Name, name+"-") {
			events = append(events, describeEvent(e, b.scrub))
		}
	}
	b.addYAML("events.yaml", events)
	return nil
}

func (b *bundle) readPods(ctx context.Context) error {
	pods, err := b.client.Pods(ctx)
	if err != nil {
		return err
	}
	described := make([]any, 0, len(pods))
	for i := range pods {
		b.scrub.known[pods[i].Name] = true
		described = append(described, describePod(&pods[i], b.scrub))
	}
	b.addYAML("pods.yaml", described)
	newReader := b.env.ReadLogs
	if newReader == nil {
		newReader = plugin.NewReadLogs
	}
	read, err := newReader(b.client.Config)
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	for i := range pods {
		b.readLog(ctx, read, &pods[i], false)
		if slices.ContainsFunc(pods[i].Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 }) {
			b.readLog(ctx, read, &pods[i], true)
		}
	}
	return nil
}

// readLog adds the end of a log, or of that from before the last restart.
func (b *bundle) readLog(ctx context.Context, read plugin.ReadLogs, pod *corev1.Pod, previous bool) {
	name := "logs/" + pod.Name + ".log"
	if previous {
		name = "logs/" + pod.Name + ".previous.log"
	}
	log, err := read(ctx, pod, &corev1.PodLogOptions{
		Previous: previous, SinceSeconds: new(max(1, int64(b.since.Seconds()))),
		TailLines: new(int64(maxLogLines)), LimitBytes: new(int64(maxLogBytes)),
	})
	if err != nil {
		b.fail(name, err)
		return
	}
	defer log.Close()
	var clean bytes.Buffer
	lines := bufio.NewReaderSize(log, maxLogLine)
	for clean.Len() < maxLogBytes {
		line, tooLong, err := lines.ReadLine()
		if err != nil {
			break // the end, or that of the time
		}
		clean.WriteString(b.scrub.scrub(string(line)))
		if tooLong {
			clean.WriteString(" ...")
		}
		clean.WriteByte('\n')
		for tooLong && err == nil {
			_, tooLong, err = lines.ReadLine()
		}
	}
	b.add(name, clean.Bytes())
}

func (b *bundle) readMetrics(ctx context.Context) error {
	text, err := plugin.ReadMetrics(ctx, b.env, b.client)
	if err != nil {
		return err
	}
	b.add("metrics.txt", []byte(b.scrub.scrubMetrics(text)))
	return nil
}
