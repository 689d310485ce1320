package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/judge"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/adversary/shop"
	chaosledger "github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/witness"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	// pageHost is the host of the project's baseURL, which system.NewProject gives to its first project.
	pageHost = "first.example"
	// perNumber is how many requests the project lets begin for a number in an hour.
	perNumber = 4
	// spread is how long a replica that keeps requests as objects may take to hear of what another one did, on a busy machine.
	spread = 2 * time.Second
	// shopKeys are the API keys of the shop.
	shopKeys = 3
	// firstNumber is the first of the victims' numbers, which are German mobile ones.
	firstNumber = 20_000_000
	simSecret   = "sim_4915113000000:of-the-shop"
	simBot      = "shop_0_bot"
	simToken    = "sim_" + simBot + ":of-the-shop"
	// nowhere is where a bot with a real token would be called; this one's is the simulator's.
	nowhere = "http://127.0.0.1:1"
	// longRun is how long a run lasts in which requests can expire.
	longRun = 4 * time.Minute
	// shortLife is the shortest life of a request that is not longer for having been proven.
	shortLife = "3m"
)

// trial is one store with everyone who uses it.
type trial struct {
	options
	stage

	store    system.Store
	dir      string
	system   *system.System
	replicas []*system.Replica
	keys     []string
	ledger   *chaosledger.Writer
	witness  witness.Witness // nil with the store in memory
	closers  []func() error

	turn   atomic.Int64 // which replica is next
	number atomic.Int64

	mu sync.Mutex
	// due are the requests whose event has to come, and came those whose event did.
	due, came map[string]bool
	err       error // of the ledger and the receiver
}

// run plays all scenes, and records how everything ended.
func (t *trial) run(ctx context.Context) error {
	if err := t.start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := t.playAll(ctx); err != nil {
		return err
	}
	if err := t.collect(ctx); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// start starts everything.
func (t *trial) start(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(t.dir), os.MkdirAll(t.dir, 0o700)); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	var err error
	if t.ledger, err = chaosledger.Create(filepath.Join(t.dir, ledger.File)); err != nil {
		return err
	}
	t.closers = append(t.closers, t.ledger.Close)
	receiver, err := t.serve(ctx, http.HandlerFunc(t.receiveEvent))
	if err != nil {
		return err
	}
	t.simulator = simulator.New(simulator.Options{
		Users: []simulator.Person{},
		Redirect: func(callback string) string {
			return strings.Replace(callback, "https://"+pageHost, "http://"+t.nextReplica(), 1)
		},
	})
	platforms, err := t.serve(ctx, t.simulator)
	if err != nil {
		return err
	}
	t.runSimulator(ctx)
	if t.system, err = system.Start(ctx, system.Options{
		Store: t.store, Program: t.program, Dir: filepath.Join(t.dir, "system"), WebhookURL: "http://" + receiver + "/hook",
		Telegram: nowhere, Project: t.editProject,
		PostgreSQL: map[string]string{"track_commit_timestamp": "on"}, Flags: []string{"--simulator-url=http://" + platforms},
	}); err != nil {
		return err
	}
	t.closers = append(t.closers, t.system.Stop)
	if err := t.writeSecrets(); err != nil {
		return err
	}
	if err := t.startReplicas(ctx); err != nil {
		return err
	}
	return t.startShop(ctx)
}

// serve serves a handler on loopback until stop, and returns its address.
func (t *trial) serve(ctx context.Context, handler http.Handler) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }() // ends with stop
	t.closers = append(t.closers, func() error {
		if err := server.Close(); err != nil {
			return fmt.Errorf("close server: %w", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	return listener.Addr().String(), nil
}

// runSimulator posts the messengers' webhooks until stop.
func (t *trial) runSimulator(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- t.simulator.Start(ctx) }()
	t.closers = append(t.closers, func() error {
		cancel()
		return <-done
	})
}

// editProject gives the project a page, a level, the events, several keys and a limit for each number.
func (t *trial) editProject(p *verifyv1.VerificationProject) {
	p.Spec.DisplayName = "Example Shop"
	p.Spec.Page = &verifyv1.Page{ReturnURLs: []verifyv1.ReturnURL{shop.URL}}
	p.Spec.Purposes = []verifyv1.Purpose{{Name: shop.Purpose, Title: "Sign in"}}
	p.Spec.RateLimit.PerPhoneNumber = &verifyv1.Rate{Requests: perNumber, Period: "1h"}
	p.Spec.Webhook.Events = []verifyv1.Event{verifyv1.EventSuccess, verifyv1.EventExpired, verifyv1.EventDeclined}
	p.Spec.Request.TTL = shortLife
	if t.options.level == levelSession {
		p.Spec.Assurance = &verifyv1.AssuranceSettings{Level: verifyv1.AssuranceLevelSession, DeclineCooldown: "1h"}
	}
	for n := range shopKeys - 1 {
		name := fmt.Sprintf("key-%d", n+2)
		p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{
			Name: name, SecretRef: verifyv1.SecretKeyRef{Name: p.Spec.APIKeys[0].SecretRef.Name, Key: name},
		})
	}
}

// writeSecrets gives the project accounts of the simulator, and the keys of the shop.
func (t *trial) writeSecrets() error {
	p := t.system.Project
	all := errors.Join(p.WriteSecret("access-token", simSecret), p.WriteSecret("app-secret", simSecret), p.WriteSecret("bot-token", simToken))
	t.keys = []string{p.Key}
	for n := range shopKeys - 1 {
		key, err := settings.NewAPIKey(rand.Reader)
		if err != nil {
			return fmt.Errorf("create key: %w", err)
		}
		t.keys = append(t.keys, key)
		all = errors.Join(all, p.WriteSecret(fmt.Sprintf("key-%d", n+2), key))
	}
	return errors.Join(all,
		t.simulator.AddWhatsApp(simulator.WhatsAppAccount{
			PhoneNumberID: p.PhoneNumberID, Number: "+4915113000000", AppSecret: simSecret, Callback: "https://" + pageHost + system.WhatsAppPath,
		}),
		t.simulator.AddTelegram(simulator.TelegramAccount{
			Username: simBot, Token: simToken, Callback: "https://" + pageHost + system.TelegramPath,
			Secret: telegram.WebhookSecret([]byte(simToken), p.Name()),
		}))
}

func (t *trial) startReplicas(ctx context.Context) error {
	for range t.options.replicas {
		r, err := t.system.StartReplica()
		if err != nil {
			return err
		}
		t.replicas = append(t.replicas, r)
	}
	for _, r := range t.replicas {
		if err := r.AwaitReady(ctx); err != nil {
			return err
		}
	}
	var err error
	switch t.store {
	case system.PostgreSQL:
		t.witness, err = witness.WatchDatabase(ctx, t.system.Database)
	case system.Memory:
	case system.Kubernetes:
		t.witness, err = witness.WatchEtcd(ctx, t.system.Plane.EtcdURL(), t.system.Namespace, t.dir, t.system.Admin)
	}
	return err
}

// nextReplica returns the address of one replica after the other.
func (t *trial) nextReplica() string { return t.replicas[int(t.turn.Add(1))%len(t.replicas)].API }

// startShop starts the shop, and the network that leads to it and to the pages.
func (t *trial) startShop(ctx context.Context) error {
	var keys atomic.Int64
	t.stage.level, t.write = t.options.level, t.record
	if t.store == system.Kubernetes {
		t.spread = spread
	}
	t.nextNumber = func() string { return fmt.Sprintf("+49151%08d", firstNumber+t.number.Add(1)) }
	t.shop = shop.New(shop.Options{
		Level: t.options.level, API: t.nextReplica, Key: func() string { return t.keys[int(keys.Add(1))%len(t.keys)] }, Record: t.record,
	})
	address, err := t.serve(ctx, t.shop)
	if err != nil {
		return err
	}
	t.network = &browser.Network{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		Hosts: func(host string) string {
			switch host {
			case shop.Host:
				return address
			case pageHost:
				return t.nextReplica()
			default:
				return ""
			}
		},
	}
	return nil
}

func (t *trial) record(r ledger.Record) {
	r.At = time.Now()
	t.noteEvent(&r)
	t.keepError(t.ledger.Note(r))
}

func (t *trial) keepError(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = errors.Join(t.err, err)
}

// evidence reads the ledger.
func (t *trial) evidence() (*judge.Evidence, error) {
	records, err := ledger.Read(filepath.Join(t.dir, ledger.File))
	if err != nil {
		return nil, err
	}
	e := &judge.Evidence{
		Records: records, PerNumber: perNumber, Spread: t.spread, Obeying: []string{obedient, scanned, talker}, Expiry: t.isLong(),
	}
	if t.store == system.Kubernetes { // each replica counts its own at once
		e.PerNumber *= len(t.replicas)
	}
	for _, a := range attacks() {
		e.Relays = append(e.Relays, a.name)
	}
	return e, nil
}

// stop stops everything in reverse order.
func (t *trial) stop() error {
	var all error
	for _, closer := range slices.Backward(t.closers) {
		all = errors.Join(all, closer())
	}
	t.closers = nil
	return all
}
