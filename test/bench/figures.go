package main

import (
	"context"
	"fmt"
	"strings"
)

// figure is measured with one set-up; it has one or several names in the report.
type figure struct {
	name    string
	what    string
	measure func(context.Context, *bench) error
}

// figures lists all figures in the order in which they are measured.
var figures = []figure{
	{"init-kubernetes", "verifications started", measureInitKubernetes},
	{"init-postgresql", "verifications started, beside the floor server", measureInitPostgreSQL},
	{"status", "status of final and pending requests, beside the floor server", measureStatus},
	{"inbound", "messages from WhatsApp acknowledged, beside the floor server", measureInbound},
	{"delivery", "events delivered and recorded, beside the floor server", measureDelivery},
	{"latency", "time from the message to the receiver's webhook", measureLatency},
	{"leak", "time of a request for a code, by itself and beside a leaked key at full speed", measureLeak},
	{"stored", "the cost of a request with few and with many stored", measureManyStored},
	{"memory", "memory of a process at rest with each store, and with many pending requests", measureMemory},
	{"operator", "an operator at rest", measureOperator},
}

func figureNames() string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// chooseFigures returns the figures whose names begin with one of the prefixes.
func chooseFigures(names string) ([]figure, error) {
	var chosen []figure
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, f := range figures {
			if strings.HasPrefix(f.name, name) {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("no figure begins with %q; the figures are %s", name, figureNames())
		}
	}
	return chosen, nil
}
