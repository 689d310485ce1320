package report

import (
	"regexp"
	"strconv"
	"strings"
)

// samples are the samples of metrics that a server has, with labels and value.
var samples = regexp.MustCompile(`^((?:phoneproof|go|process|rest_client|workqueue|controller_runtime)_[a-z0-9_]+)` +
	`(\{.*\})? ([-+0-9.eEInfNa]+)$`)

// scrubMetrics returns the samples of known metrics, with scrubbed labels. Values are numbers.
func (s *scrubber) scrubMetrics(text string) string {
	var clean strings.Builder
	for line := range strings.Lines(text) {
		sample := samples.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if sample == nil {
			continue
		}
		if _, err := strconv.ParseFloat(sample[3], 64); err != nil {
			continue
		}
		clean.WriteString(s.scrub(sample[1]) + s.scrub(sample[2]) + " " + sample[3] + "\n")
	}
	return clean.String()
}

// releases are the tags of images that are versions of this program.
var releases = regexp.MustCompile(`^v?[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-[0-9]{1,4}-g[0-9a-f]{7,12})?$`)
