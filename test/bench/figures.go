package main

import (
	"context"
	"slices"
	"strings"
)

// figure is measured with one set-up; it has one or several rows.
type figure struct {
	name    string
	what    string
	measure func(context.Context, *bench) error
}

// figures lists all figures in the order in which they are measured.
var figures = []figure{
	{"init-kubernetes", "verifications started, beside client-go creating objects", measureInitKubernetes},
	{"init-postgresql", "verifications started, beside pgbench committing rows", measureInitPostgreSQL},
	{"status", "status of final and pending requests, beside a handler that writes constant JSON", measureStatus},
	{"reads", "ways to learn from an API server what is true now of pending requests", measureReads},
	{"inbound", "messages from WhatsApp acknowledged, beside pgbench committing rows", measureInbound},
	{"delivery", "events delivered and recorded, beside a client that posts the same bytes", measureDelivery},
	{"latency", "time from the message to the receiver's webhook", measureLatency},
	{"hanging-kubernetes", "the same process with and without a receiver that hangs", measureHangingKubernetes},
	{"hanging-postgresql", "the same process with and without a receiver that hangs", measureHangingPostgreSQL},
	{"projects", "many projects on one database, with and without one whose receiver hangs", measureManyProjects},
	{"stored", "the cost of a request with few and with many stored", measureManyStored},
	{"pages", "open pages: their memory, and the API with far more of them than may be open", measurePages},
	{"memory", "memory of a process", measureMemory},
	{"idle-memory", "memory of a process at rest with each store", measureIdleMemory},
	{"writes", "API server calls of one verification", measureWrites},
	{"operator", "an operator at rest", measureOperator},
}

// peerFigures are measured only if they are named: they need programs of others, see make bench-peers.
var peerFigures = []figure{
	{"peers", "verifications started and asked for, beside otpgateway with Redis", measurePeers},
}

func figureNames() string {
	var names []string
	for _, f := range slices.Concat(figures, peerFigures) {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
