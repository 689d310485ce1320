package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/system"
)

// countedVerifications is the number of verifications that are counted, from init to the deletion of their objects.
const countedVerifications = 100

// shortenLifetimes sets the shortest TTL and retention that a project may have.
func shortenLifetimes(p *verifyv1.VerificationProject) {
	p.Spec.Request.TTL, p.Spec.Request.Retention = "1m", "1m"
}

// measureWrites counts, by the API server's own metrics, the calls that verifications cause until their objects are
// deleted.
func measureWrites(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes, Project: shortenLifetimes}, func(x *site) error {
		before, err := x.countCalls(ctx)
		if err != nil {
			return err
		}
		all, err := x.verifyNumbers(ctx, countedVerifications)
		if err != nil {
			return err
		}
		if _, err := x.sink.awaitEvents(ctx, all); err != nil {
			return err
		}
		b.logf("  %d numbers verified; their objects are deleted in about two minutes", countedVerifications)
		if err := x.awaitDeletion(ctx); err != nil {
			return err
		}
		after, err := x.countCalls(ctx)
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: "API writes for each verification", ours: series{(after.writes - before.writes) / countedVerifications}, aim: atMost(4),
		})
		b.addRow(row{figure: "API reads for each verification", ours: series{(after.reads - before.reads) / countedVerifications}})
		b.addRow(row{
			figure: fmt.Sprintf("LISTs in %d verifications", countedVerifications), ours: series{after.lists - before.lists}, aim: atMost(0),
		})
		return nil
	})
}

// calls are the numbers of calls that the API server has answered.
type calls struct{ writes, reads, lists, deletes float64 }

// countCalls counts the calls for requests.
func (x *site) countCalls(ctx context.Context) (calls, error) {
	return countCalls(ctx, x.system.Plane.Config, func(resource string) bool { return resource == "verificationrequests" })
}

// countCalls counts the calls for some resources by the API server's own metrics.
func countCalls(ctx context.Context, config *rest.Config, isCounted func(resource string) bool) (calls, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return calls{}, err
	}
	content, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return calls{}, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return calls{}, err
	}
	var c calls
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if isCounted(labels["resource"]) {
			c.add(labels["verb"], m.GetCounter().GetValue())
		}
	}
	return c, nil
}

func (c *calls) add(verb string, n float64) {
	switch verb {
	case "DELETE":
		c.deletes += n
		c.writes += n
	case "POST", "PUT", "PATCH", "APPLY", "DELETECOLLECTION":
		c.writes += n
	case "GET":
		c.reads += n
	case "LIST":
		c.lists += n
	}
}

// awaitDeletion waits until the API server has deleted every request, by its metrics: a LIST would be counted.
func (x *site) awaitDeletion(ctx context.Context) error {
	return waitFor(ctx, "the objects to be deleted", func(ctx context.Context) (bool, error) {
		pause := time.NewTimer(2 * time.Second)
		defer pause.Stop()
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-pause.C:
		}
		c, err := x.countCalls(ctx)
		return c.deletes >= countedVerifications, err
	})
}
