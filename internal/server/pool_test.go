package server

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
)

func TestCheckMembers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(checkMembers(0, 3, time.Second)).To(MatchError(ContainSubstring("no project")))
	g.Expect(checkMembers(2, 1, time.Second)).To(MatchError(ContainSubstring("1 projects")), "the last one may only be slow")
	g.Expect(checkMembers(2, 1, startupGrace)).To(Succeed(), "the last one is broken")
	g.Expect(checkMembers(3, 0, time.Second)).To(Succeed())
	g.Expect(checkMembers(1, 0, time.Hour)).To(Succeed(), "two broke later")
	g.Expect(checkMembers(0, 0, time.Hour)).NotTo(Succeed())
}

func TestMembers_Set(t *testing.T) {
	g := NewWithT(t)
	var m Members
	g.Expect(m.Set("name=shop,address=:9000")).To(Succeed())
	g.Expect(m.Set("address=127.0.0.1:9001,name=bank,logo-file=/etc/logo,store=postgresql")).To(Succeed())
	g.Expect(m).To(Equal(Members{
		{Project: "shop", Address: ":9000"},
		{Project: "bank", Address: "127.0.0.1:9001", LogoFile: "/etc/logo", Store: StorePostgreSQL},
	}))
	g.Expect(m.String()).To(Equal("name=shop,address=:9000 name=bank,address=127.0.0.1:9001"))
	for _, text := range []string{"", "shop", "name=a,port=1", "name=a,name=b", "name=,name=a"} {
		g.Expect(m.Set(text)).NotTo(Succeed(), text)
	}
	g.Expect(m).To(HaveLen(2))
}

func TestOptions_Complete_ofAPool(t *testing.T) {
	valid := func() Options {
		return Options{
			Pool: "shops/small", SecretsDir: "secrets", Address: ":8080", HealthAddress: ":8081",
			Members: Members{{Project: "a", Address: ":9000"}, {Project: "b", Address: ":9001", Store: StorePostgreSQL}},
		}
	}
	g := NewWithT(t)
	o := valid()
	g.Expect(o.Complete()).To(Succeed())
	g.Expect(o.Members[0].Store).To(Equal(StoreKubernetes))
	g.Expect(o.Members[1].Store).To(Equal(StorePostgreSQL))
	for want, spoil := range map[string]func(*Options){
		"excludes --project":                   func(o *Options) { o.Project = "shops/a" },
		"excludes --project and":               func(o *Options) { o.ProjectFile = "project.yaml" },
		"--member needs --pool":                func(o *Options) { o.Pool, o.Project = "", "shops/a" },
		`"shops": want NAMESPACE/NAME`:         func(o *Options) { o.Pool = "shops" },
		"0 members: want 1 to 100":             func(o *Options) { o.Members = nil },
		"101 members":                          func(o *Options) { o.Members = make(Members, 101) },
		"excludes --store":                     func(o *Options) { o.Store = StoreKubernetes },
		"--store and --logo-file":              func(o *Options) { o.LogoFile = "logo" },
		`the name ""`:                          func(o *Options) { o.Members[0].Project = "" },
		`the name "shops/a"`:                   func(o *Options) { o.Members[0].Project = "shops/a" },
		`the name "Shop"`:                      func(o *Options) { o.Members[0].Project = "Shop" },
		`"shops/Small": want NAMESPACE/NAME`:   func(o *Options) { o.Pool = "shops/Small" },
		"a is given twice":                     func(o *Options) { o.Members[1].Project = "a" },
		"b has the address 0.0.0.0:9000":       func(o *Options) { o.Members[1].Address = "0.0.0.0:9000" },
		"a has the address :8081, whose port":  func(o *Options) { o.Members[0].Address = ":8081" },
		`b has the store "memory"`:             func(o *Options) { o.Members[1].Store = StoreMemory },
		`--member a is "9000": want HOST:PORT`: func(o *Options) { o.Members[0].Address = "9000" },
	} {
		o := valid()
		spoil(&o)
		NewWithT(t).Expect(o.Complete()).To(MatchError(ContainSubstring(want)), want)
	}
}

func TestPool_shareConnections(t *testing.T) {
	g := NewWithT(t)
	p := &pool{dependencies: Dependencies{ConnectionBudget: 1280 * boundedhttp.ConnectionCost}} // of a pod with 256Mi
	p.members = make([]*member, 50)
	g.Expect(p.shareConnections()).To(BeEquivalentTo(22))
	p.members = make([]*member, 100)
	g.Expect(p.shareConnections()).Error().To(MatchError(ContainSubstring("leaves 11 connections to each of 100 projects, fewer than 16: raise")))
}

func TestRunBehind_returnsAPanicAsAnError(t *testing.T) {
	g := NewWithT(t)
	waits := manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })
	panics := manager.RunnableFunc(func(context.Context) error { panic("poisoned") })
	g.Expect(RunBehind(t.Context(), waits, panics)).To(MatchError(ContainSubstring("panic: string")))
	g.Expect(RunBehind(t.Context(), panics, waits)).To(MatchError(ContainSubstring("panic: string")))
}

func TestGuardedCollector_survivesAPanic(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	g.Expect(registry.Register(poisonedCollector{prometheus.NewGauge(prometheus.GaugeOpts{Name: "poisoned", Help: "Poisoned."})})).To(Succeed())
	whole := prometheus.NewRegistry()
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other", Help: "Another one."})
	g.Expect(whole.Register(other)).To(Succeed())
	labeled := prometheus.WrapCollectorWith(prometheus.Labels{"project": "a"}, guardedCollector{registry, logr.Discard()})
	g.Expect(whole.Register(labeled)).To(Succeed())
	families, err := whole.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(1))
	g.Expect(whole.Unregister(labeled)).To(BeTrue())
	g.Expect(whole.Register(labeled)).To(Succeed())
}

// poisonedCollector panics when it reads what tenants wrote.
type poisonedCollector struct{ prometheus.Collector }

func (poisonedCollector) Collect(chan<- prometheus.Metric) { panic("poisoned") }
