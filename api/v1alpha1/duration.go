package v1alpha1

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// durationPattern is the pattern of every duration rule in the CRDs. The digit
// counts keep the sum far below the overflow of time.Duration.
var durationPattern = regexp.MustCompile(`^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$`)

// Duration is a length of time in whole hours, minutes and seconds, written as
// people write it in YAML: 90s, 10m, 1h30m. There is no unit for days: a week
// is 168h.
//
// It is a string and not a metav1.Duration, because that type accepts negative
// values and fractions, and one text that it cannot parse would make a stored
// object impossible to decode. A Duration always decodes; the CRD's rules, and
// Validate, bound it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=24
type Duration string

// Parse returns d as a time.Duration, or an error if d does not have the
// documented format.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" || !durationPattern.MatchString(string(d)) {
		return 0, fmt.Errorf("duration %q is not in the form 90s, 10m or 1h30m", string(d))
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("parse duration %q: %w", string(d), err)
	}
	return parsed, nil
}

// Or returns d as a time.Duration, or fallback if d is unset or malformed.
// Objects from the API server are never malformed.
func (d Duration) Or(fallback time.Duration) time.Duration {
	parsed, err := d.Parse()
	if err != nil {
		return fallback
	}
	return parsed
}

// DurationOf returns d, in whole seconds, as a Duration without zero units.
func DurationOf(d time.Duration) Duration {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return Duration(text)
}
