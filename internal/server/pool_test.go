package server

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
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
	for _, text := range []string{"", "shop", "name=a,port=1", "name=a,name=b"} {
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
		"a is given twice":                     func(o *Options) { o.Members[1].Project = "a" },
		"b has the address :9000":              func(o *Options) { o.Members[1].Address = ":9000" },
		"a has the address :8081 of another":   func(o *Options) { o.Members[0].Address = ":8081" },
		`b has the store "memory"`:             func(o *Options) { o.Members[1].Store = StoreMemory },
		`--member a is "9000": want HOST:PORT`: func(o *Options) { o.Members[0].Address = "9000" },
	} {
		o := valid()
		spoil(&o)
		NewWithT(t).Expect(o.Complete()).To(MatchError(ContainSubstring(want)), want)
	}
}
