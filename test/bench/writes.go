package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/system"
)

// whole is how many verifications are counted, from the start to the deletion of their objects.
const whole = 100

// shortlived ends a verification as soon as a project may have it.
func shortlived(p *verifyv1.VerificationProject) {
	p.Spec.Request.TTL, p.Spec.Request.Retention = "1m", "1m"
}

// writes counts, by the API server's own metrics, what verifications ask of it until nothing is left of them.
func writes(ctx context.Context, b *bench) error {
	return b.with(ctx, system.Options{Store: system.Kubernetes, Project: shortlived}, func(x *site) error {
		before, err := x.calls(ctx)
		if err != nil {
			return err
		}
		all, err := x.verified(ctx, whole)
		if err != nil {
			return err
		}
		if _, err := x.sink.all(ctx, all); err != nil {
			return err
		}
		b.sayf("  %d numbers are proven; their objects go in about two minutes", whole)
		if err := x.gone(ctx); err != nil {
			return err
		}
		after, err := x.calls(ctx)
		if err != nil {
			return err
		}
		b.add(row{
			figure: "API writes for each verification", ours: series{(after.writes - before.writes) / whole}, aim: atMost(4),
		})
		b.add(row{figure: "API reads for each verification", ours: series{(after.reads - before.reads) / whole}})
		b.add(row{figure: fmt.Sprintf("LISTs in %d verifications", whole), ours: series{after.lists - before.lists}, aim: atMost(0)})
		return nil
	})
}

// calls are how many calls about requests the API server has answered.
type calls struct{ writes, reads, lists, deletes float64 }

// calls asks the API server's own metrics.
func (x *site) calls(ctx context.Context) (calls, error) {
	clients, err := kubernetes.NewForConfig(x.system.Plane.Config)
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
		if labels["resource"] == "verificationrequests" {
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

// gone waits until the API server has deleted every request, as its metrics tell: to list them would be counted.
func (x *site) gone(ctx context.Context) error {
	return await(ctx, "the objects to be deleted", func(ctx context.Context) (bool, error) {
		pause := time.NewTimer(2 * time.Second)
		defer pause.Stop()
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-pause.C:
		}
		c, err := x.calls(ctx)
		return c.deletes >= whole, err
	})
}
