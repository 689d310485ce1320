package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The names in manifests/.
const (
	namespace  = "phoneproof-demo"
	release    = "phoneproof-system"
	deployment = "phoneproof-shop"
	timeout    = "--timeout=3m" // of one wait; a busy machine takes its time
)

// demo is one run.
type demo struct {
	*shell

	lost     context.CancelCauseFunc // ends the demo when a port-forward ended
	api, sim string                  // base URLs of the port-forwards
	image    string
	apiKey   string
	verified []verified
}

// verified is a number that was proved, for the summary.
type verified struct {
	method, number, requestID string
	took                      time.Duration
}

type step struct {
	title string
	do    func(context.Context) error
}

func (d *demo) steps() []step {
	return []step{
		{"A Kubernetes cluster on this machine", d.cluster},
		{"The image, and the cluster has it", d.build},
		{"The chart: CRDs, roles and the operator", d.install},
		{"The simulator: WhatsApp, Telegram, a phone and a webhook receiver, in a pod", d.simulator},
		{"A project: a verification API with two replicas, under restricted Pod Security", d.project},
		{"A client asks, and its user sends the message on WhatsApp", func(ctx context.Context) error { return d.verify(ctx, "WHATSAPP") }},
		{"The same on Telegram", func(ctx context.Context) error { return d.verify(ctx, "TELEGRAM") }},
	}
}

func (d *demo) cluster(ctx context.Context) error {
	return d.run(ctx, "make", "--no-print-directory", "cluster-up")
}

func (d *demo) build(ctx context.Context) error {
	if err := d.run(ctx, "make", "--no-print-directory", "cluster-image"); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(d.dir, "bin", "cluster", "image"))
	d.image = strings.TrimSpace(string(content))
	return err
}

func (d *demo) install(ctx context.Context) error {
	repository, tag, _ := strings.Cut(d.image, ":")
	return d.run(ctx, "go", "tool", "-modfile=hack/tools/go.mod", "helm.sh/helm/v4/cmd/helm",
		"upgrade", "--install", "phoneproof", "charts/phoneproof", "--namespace", release,
		"--create-namespace", "--values", "hack/demo/values.yaml",
		"--set", "image.repository="+repository, "--set", "image.tag="+tag, "--wait", timeout)
}

// simulator needs the credentials, so they are made first. They stay for the next run.
func (d *demo) simulator(ctx context.Context) error {
	if err := d.run(ctx, "kubectl", "apply", "--filename", "hack/demo/manifests/namespace.yaml"); err != nil {
		return err
	}
	if _, err := d.output(ctx, "kubectl", "--namespace", namespace, "get", "secret", "shop"); err != nil {
		if err := d.credentials(ctx); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(d.dir, "hack", "demo", "manifests", "simulator.yaml"))
	if err != nil {
		return err
	}
	if err := d.pipe(ctx, strings.ReplaceAll(string(content), "IMAGE", d.image),
		`sed "s|IMAGE|$(cat bin/cluster/image)|" hack/demo/manifests/simulator.yaml`, "kubectl", "apply", "--filename", "-"); err != nil {
		return err
	}
	return d.run(ctx, "kubectl", "--namespace", namespace, "rollout", "status", "deployment/simulator", timeout)
}

// credentials begin with sim_ where they are a messenger's, so they go to the simulator and mean nothing anywhere else.
func (d *demo) credentials(ctx context.Context) error {
	key, err := d.output(ctx, "bin/phoneproof", "keygen")
	if err != nil {
		return err
	}
	secret, err := d.output(ctx, "bin/phoneproof", "keygen", "--webhook")
	if err != nil {
		return err
	}
	args := []string{
		"--namespace", namespace, "create", "secret", "generic", "shop",
		"--from-literal=access-token=sim_4915112345670:demo", "--from-literal=app-secret=sim_4915112345670:demo",
		"--from-literal=bot-token=sim_ada_books_bot:demo",
	}
	d.command(typed("kubectl", args) +
		` --from-literal=api-key="$(bin/phoneproof keygen)" --from-literal=webhook-secret="$(bin/phoneproof keygen --webhook)"`)
	return d.quietly(ctx, nil, "kubectl", append(args, "--from-literal=api-key="+key, "--from-literal=webhook-secret="+secret)...)
}

func (d *demo) project(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "--filename", "hack/demo/manifests/project.yaml"},
		{"wait", "--for=create", "deployment/" + deployment, timeout},
		{"wait", "--for=jsonpath={.spec.template.spec.containers[0].image}=" + d.image, "deployment/" + deployment, timeout},
		{"rollout", "status", "deployment/" + deployment, timeout},
		{"wait", "--for=condition=Ready", "vproj/shop", timeout},
		{"get", "vproj,pods"},
	} {
		if err := d.run(ctx, "kubectl", append([]string{"--namespace", namespace}, args...)...); err != nil {
			return err
		}
	}
	return d.reach(ctx)
}

// diagnose shows what there is to know after a failure.
func (d *demo) diagnose(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	d.textf("\n== Something failed; this is how things stand\n")
	for _, args := range [][]string{
		{"get", "vproj,vreq,pods", "--all-namespaces", "--output=wide"},
		{"--namespace", namespace, "get", "vproj/shop", "--output",
			`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`},
		{"--namespace", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"--namespace", release, "logs", "deployment/phoneproof-operator", "--tail=20"},
		{"--namespace", namespace, "logs", "deployment/" + deployment, "--all-pods=true", "--tail=20"},
		{"--namespace", namespace, "logs", "deployment/simulator", "--tail=20"},
	} {
		if err := d.run(ctx, "kubectl", args...); err != nil {
			d.textf("    %v\n", err)
		}
	}
	d.textf("\nThe cluster is still there to look at. make cluster-down removes it; make demo tries again.\n")
}

func (d *demo) summary(took time.Duration) {
	d.textf("\n== Done in %s\n", took.Round(time.Second))
	for _, v := range d.verified {
		d.textf("  %-8s %s is VERIFIED %s after the client asked; the receiver checked both signatures of the webhook\n",
			v.method, v.number, v.took.Round(10*time.Millisecond))
	}
	d.textf("\nTo look around:\n")
	for _, line := range []string{
		"export PATH=$PWD/bin/kube:$PATH KUBECONFIG=$PWD/" + kubeconfig,
		"kubectl get vproj,vreq -A",
		"kubectl -n " + namespace + " describe vproj shop",
		"kubectl -n " + namespace + " logs deployment/" + deployment + " --all-pods=true",
		"kubectl -n " + namespace + " port-forward service/simulator :8090   # then open the address it prints: the phone",
		"make demo           # once more, in seconds",
		"make cluster-down   # take everything away",
	} {
		d.command(line)
	}
	d.textf("\nNothing here is true of a real phone: the credentials are the simulator's. For a real project see config/samples.\n")
}
