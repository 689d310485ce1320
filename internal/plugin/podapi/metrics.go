package podapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin/project"
)

// maxMetrics is more than the metrics of a server with a pool of 100 projects take.
const maxMetrics = 64 << 20

// ReadMetrics returns the metrics of a ready pod, in the text format of Prometheus, without the series of other projects.
func ReadMetrics(ctx context.Context, env *project.Env, c *project.Client) (string, error) {
	pod, err := c.ReadyPod(ctx)
	if err != nil {
		return "", fmt.Errorf("find pod: %w", err)
	}
	transport, err := newTransport(env, c, pod, project.PortMetrics)
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pod/metrics", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: callTimeout}).Do(request)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", hideURL(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMetrics))
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read metrics: the pod answered %d", response.StatusCode)
	}
	if c.Project.Spec.Server.Pool != "" {
		return dropOtherProjects(string(text), c.Project.Name), nil
	}
	return string(text), nil
}

// projectLabels finds the label that names the project of a series in a pool's pod. Other values are matched so that nothing is found
// within them.
var projectLabels = regexp.MustCompile(`[{,]project="([^"]*)"|"(?:[^"\\]|\\.)*"`)

// dropOtherProjects returns metrics without the series of projects with another name.
func dropOtherProjects(metrics, name string) string {
	var kept strings.Builder
	for line := range strings.Lines(metrics) {
		isOther := func(label []string) bool { return label[1] != "" && label[1] != name }
		if strings.HasPrefix(line, "#") || !slices.ContainsFunc(projectLabels.FindAllStringSubmatch(line, -1), isOther) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// CountStored returns how many requests of a project are stored, by state. A server without an answer of its store has no such metric.
func CountStored(metrics string, p *verifyv1.VerificationProject) (map[string]int64, error) {
	prefix := `phoneproof_stored_requests{state="`
	if p.Spec.Server.Pool != "" {
		prefix = `phoneproof_stored_requests{project="` + p.Name + `",state="`
	}
	counts := map[string]int64{}
	lines := bufio.NewScanner(strings.NewReader(metrics))
	lines.Buffer(nil, maxMetrics)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), prefix)
		if !found {
			continue
		}
		state, value, found := strings.Cut(rest, `"} `)
		number, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			return nil, errors.New("read metrics: phoneproof_stored_requests has another form than expected")
		}
		counts[state] = int64(number)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if len(counts) == 0 {
		return nil, errors.New("the pod does not know: its store does not answer")
	}
	return counts, nil
}
