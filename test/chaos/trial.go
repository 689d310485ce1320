package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/load"
	"github.com/phoneproof/phoneproof/test/chaos/sink"
	"github.com/phoneproof/phoneproof/test/chaos/witness"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// The numbers of replicas: many that compete for a database's work; with Kubernetes a few besides the leader.
	databaseReplicas = 8
	clusterReplicas  = 3
	// maxStored makes the Kubernetes store drop finished requests, so that a run can have more than a namespace holds. It is
	// the largest value: requests with an Idempotency-Key stay for five minutes after their end.
	maxStored = 10_000
	// secondKey is the file of the API key that clients switch to and back.
	secondKey = "second-key"
	firstKey  = "api-key"
	hookKey   = "webhook"
	// webhookTimeout is the project's timeout: short, because some answers hang.
	webhookTimeout = 2 * time.Second
	// thirdKey is the file of an API key that is revoked.
	thirdKey = "third-key"
)

// trial is one store under load and faults.
type trial struct {
	options

	store system.Store
	dir   string
	out   io.Writer

	system   *system.System
	sink     *sink.Sink
	platform *load.Platform
	lines    lines
	roster   roster
	witness  witness.Witness
	triggers *triggers // of a database; otherwise nil
	load     *load.Load
	ledgers  []*ledger.Writer
	faults   *ledger.Writer
	closers  []func() error
	began    time.Time
	ended    time.Time

	revocable string // an API key

	mu      sync.Mutex
	keys    [2]string // by file
	current int
}

// startSystem starts everything but the replicas.
func (t *trial) startSystem(ctx context.Context) error {
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	var err error
	if t.platform, err = load.StartPlatform(ctx); err != nil {
		return err
	}
	t.closers = append(t.closers, t.platform.Close)
	if err := t.routePlatform(ctx); err != nil {
		return err
	}
	deliveries, err := t.createLedger(ledger.SinkFile)
	if err != nil {
		return err
	}
	answers, err := t.createLedger(ledger.AnswerFile)
	if err != nil {
		return err
	}
	if t.sink, err = sink.Start(ctx, t.seed, t.lines.nameSender, sink.Ledgers{Deliveries: deliveries, Answers: answers}); err != nil {
		return err
	}
	t.closers = append(t.closers, t.sink.Close)
	hook, err := t.lines.listenForSink(ctx, t.sink.Address)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.lines.close)
	level := "info"
	if t.debug {
		level = "debug"
	}
	t.system, err = system.Start(ctx, system.Options{
		Store: t.store, Standby: t.standby, Program: t.program, Dir: filepath.Join(t.dir, "system"), WebhookURL: "http://" + hook + "/hook",
		Telegram: "http://" + t.platform.Address, Graph: "http://" + t.platform.Address, Gateway: "http://" + t.platform.Address,
		Project:     t.editProject,
		DatabaseURI: t.lines.routeDatabase, APIServer: t.lines.routeAPIServer,
		// The witness needs it for the times of commits.
		PostgreSQL: map[string]string{"track_commit_timestamp": "on"},
		Flags: []string{
			// Shorter than a freeze, and longer than a busy machine stalls a process.
			"--log-level=" + level, "--claim-lease=10s", "--lease-duration=6s", "--lease-renew-deadline=5s", "--lease-retry-period=250ms",
		},
	})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.system.Stop)
	if t.lines.err != nil {
		return t.lines.err
	}
	t.lines.project.Store(t.system.Project)
	return t.distributeSecrets()
}

// editProject sets a short webhook timeout, a lifetime that ends within a short run, and three API keys.
func (t *trial) editProject(p *verifyv1.VerificationProject) {
	p.Spec.Webhook.Timeout = verifyv1.Duration(webhookTimeout.String())
	p.Spec.Request.TTL = "1m"
	p.Spec.Request.MaxStored = new(int32(maxStored))
	secret := p.Spec.APIKeys[0].SecretRef.Name
	p.Spec.APIKeys = append(p.Spec.APIKeys,
		verifyv1.APIKey{Name: "second", SecretRef: verifyv1.SecretKeyRef{Name: secret, Key: secondKey}},
		verifyv1.APIKey{Name: "third", SecretRef: verifyv1.SecretKeyRef{Name: secret, Key: thirdKey}})
	if t.codeKills > 0 {
		addCodes(p, t.store)
	}
}

// distributeSecrets creates the API keys and gives the receiver the webhook's secret.
func (t *trial) distributeSecrets() error {
	p := t.system.Project
	second, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return err
	}
	third, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return err
	}
	t.keys, t.revocable = [2]string{p.Key, second}, third
	t.sink.Trust(p.WebhookSecret)
	return errors.Join(p.WriteSecret(secondKey, second), p.WriteSecret(thirdKey, third))
}

// revokeKey revokes the third key and returns it.
func (t *trial) revokeKey() (string, error) {
	return t.revocable, t.system.RemoveSecret(thirdKey)
}

// currentKey returns the API key that clients use.
func (t *trial) currentKey() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[t.current]
}

// createLedger creates a ledger of the run, which stopAll closes.
func (t *trial) createLedger(name string) (*ledger.Writer, error) {
	w, err := ledger.Create(filepath.Join(t.dir, name))
	if err == nil {
		t.ledgers = append(t.ledgers, w)
	}
	return w, err
}

// startReplicas starts the replicas and the witness, and creates the load.
func (t *trial) startReplicas(ctx context.Context) error {
	count := databaseReplicas
	if t.store == system.Kubernetes {
		count = clusterReplicas
	}
	if err := t.roster.startReplicas(ctx, t.system.Project, count); err != nil {
		return err
	}
	var err error
	if t.store == system.PostgreSQL {
		t.witness, err = witness.WatchDatabase(ctx, t.system.PrimaryDatabase)
		if err == nil && t.standby == system.NoStandby {
			t.triggers, err = installTriggers(ctx, t.system.Database)
		}
	} else {
		t.witness, err = witness.WatchEtcd(ctx, t.system.Plane.EtcdURL(), t.system.Namespace, t.dir, t.system.Admin)
	}
	if err != nil {
		return err
	}
	o := load.Options{
		Seed: t.seed, Workers: t.workers, Rate: t.rate, Project: t.system.Project, Replicas: t.roster.apiAddresses,
		Key: t.currentKey, Revoke: t.revokeKey, Platform: t.platform,
	}
	for name, to := range map[string]**ledger.Writer{
		ledger.ClientFile: &o.Clients, ledger.StatusFile: &o.Statuses, ledger.PlatformFile: &o.Inbound, ledger.FaultFile: &t.faults,
		ledger.KeyFile: &o.KeyTries, ledger.ConfirmFile: &o.Confirms,
	} {
		if *to, err = t.createLedger(name); err != nil {
			return err
		}
	}
	if err = t.addCodeOptions(&o); err != nil {
		return err
	}
	o.Closing = func() bool { return t.loadProgress() > closing }
	t.load = load.New(o)
	return nil
}

// closing is the share of the load after which nothing slow begins.
const closing = 0.5

// stopAll stops everything in reverse order.
func (t *trial) stopAll() error {
	var all error
	for _, closer := range slices.Backward(t.closers) {
		all = errors.Join(all, closer())
	}
	t.closers = nil
	for _, w := range t.ledgers {
		all = errors.Join(all, w.Close())
	}
	return all
}

func (t *trial) logf(format string, args ...any) {
	fmt.Fprintf(t.out, "%s "+format+"\n", append([]any{time.Now().UTC().Format("15:04:05")}, args...)...)
}
