package main

import (
	"context"
	"strings"
)

// figure is what is measured with one set-up; it has one row or several.
type figure struct {
	name    string
	what    string
	measure func(context.Context, *bench) error
}

// figures are all there are, in the order in which they are measured.
var figures = []figure{
	{"init-kubernetes", "verifications started, beside client-go creating objects", initKubernetes},
	{"init-postgresql", "verifications started, beside pgbench committing rows", initPostgreSQL},
	{"status", "status of final and of pending requests, beside a handler that writes constant JSON", status},
	{"inbound", "messages from WhatsApp acknowledged, beside pgbench committing rows", inbound},
	{"delivery", "events delivered and recorded, beside a client that posts the same bytes", delivery},
	{"latency", "from the message to the receiver's webhook", latency},
	{"hanging-kubernetes", "the same process with and without a receiver that hangs", hangingKubernetes},
	{"hanging-postgresql", "the same process with and without a receiver that hangs", hangingPostgreSQL},
	{"projects", "many projects on one database, with and without one whose receiver hangs", manyProjects},
	{"stored", "the cost of a request with few and with many stored", manyStored},
	{"memory", "what a process holds", memory},
	{"writes", "what one verification asks of the API server", writes},
}

func figureNames() string {
	names := make([]string, len(figures))
	for i, f := range figures {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}
