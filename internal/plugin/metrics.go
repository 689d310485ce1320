package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxMetrics is more than the metrics of a server take.
	maxMetrics = 8 << 20
	// metricsTimeout bounds the call for them.
	metricsTimeout = 40 * time.Second
)

// ReadMetrics returns the metrics of a ready pod, in the text format of Prometheus.
func ReadMetrics(ctx context.Context, env *Env, c *Client) (string, error) {
	transport, err := DialReady(ctx, env, c, PortMetrics)
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pod/metrics", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: metricsTimeout}).Do(request)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", HideURL(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMetrics))
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read metrics: the pod answered %d", response.StatusCode)
	}
	return string(text), nil
}

// CountStored returns how many requests are stored, by state. A server without an answer of its store has no such metric.
func CountStored(metrics string) (map[string]int64, error) {
	const prefix = `phoneproof_stored_requests{state="`
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
