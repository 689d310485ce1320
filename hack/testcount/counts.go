package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// counts is the result of some tests.
type counts struct {
	passed, failed, skipped int
}

func (c *counts) add(other counts) {
	c.passed += other.passed
	c.failed += other.failed
	c.skipped += other.skipped
}

func (c *counts) total() int {
	return c.passed + c.failed + c.skipped
}

// String is read by machines too: keep its form.
func (c *counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

var (
	colour = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// Ginkgo adds "| N Flaked" and the like in the middle when there is any.
	ginkgoSummary = regexp.MustCompile(`^\s*(?:SUCCESS!|FAIL!).* -- (\d+) Passed \| (\d+) Failed ` +
		`(?:\| \d+ \w+ )*?\| (\d+) Pending \| (\d+) Skipped`)
)

// ginkgoCounts adds up the summaries of the Ginkgo suites in a test's output; ok says whether there was one. Pending
// specs count as skipped.
func ginkgoCounts(output string) (sum counts, ok bool) {
	for line := range strings.Lines(output) {
		match := ginkgoSummary.FindStringSubmatch(colour.ReplaceAllString(line, ""))
		if match == nil {
			continue
		}
		ok = true
		sum.add(counts{
			passed:  number(match[1]),
			failed:  number(match[2]),
			skipped: number(match[3]) + number(match[4]),
		})
	}
	return sum, ok
}

// number converts digits that a pattern has already checked.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0 // more digits than an int has: no suite is that large
	}
	return n
}
