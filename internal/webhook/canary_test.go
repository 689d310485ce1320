package webhook

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

func gatherText(g *WithT, registry *prometheus.Registry) string {
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	for _, f := range families {
		text.WriteString(f.String())
	}
	return text.String()
}

// TestSend_blockedAddresses uses the production guard with every rule that an admin can set: a listener on all of this
// machine's addresses must count no connection.
func TestSend_blockedAddresses(t *testing.T) {
	c := newCanary(t, ":0")
	dns := newDNS(t, answerA(netip.MustParseAddr("127.0.0.1")))
	own := ownAddresses(t)
	s := newSender(t, Options{
		Guard:    NewGuard(GuardConfig{Allow: allowEverything(t), Own: own}),
		Resolver: dns.newResolver(),
	})
	urls := map[string]Reason{}
	hosts := []string{
		"127.0.0.1", "127.8.9.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[::ffff:0:127.0.0.1]",
		"localhost", "localhost.", "LOCALHOST", "ｌocalhost.test",
		"0x7f.1", "0x7f000001", // names to this resolver; another may parse them as inet_aton does
		"127.0.0.1.sslip.test", "kubernetes.default.svc", "rebind.test.",
	}
	for _, ip := range own {
		hosts = append(hosts, strings.Trim(net.JoinHostPort(ip.String(), ""), ":"))
	}
	for _, host := range hosts {
		for _, scheme := range []string{"http://", "https://"} {
			urls[scheme+host+":"+c.listenPort()+"/"] = ReasonBlockedAddress
		}
	}
	for _, host := range []string{"169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255"} {
		urls["https://"+host] = ReasonBlockedAddress
	}
	for _, port := range []string{"6443", "2379", "2380", "10250", "10259"} {
		urls["https://127.0.0.1:"+port] = ReasonBlockedPort
		urls["https://shop.test:"+port] = ReasonBlockedPort
	}
	// Go's resolver rejects a name of digits and dots without a query.
	for _, host := range []string{"2130706433", "017700000001", "127.1", "0177.0.0.1"} {
		urls["http://"+host+":"+c.listenPort()] = ReasonDNSNotFound
	}
	urls["http://user:pass@127.0.0.1:"+c.listenPort()] = ReasonBadURL
	urls["http://8.8.8.8/"] = ReasonPlainHTTP
	for url, want := range urls {
		t.Run(url, func(t *testing.T) {
			NewWithT(t).Expect(sendEvent(t, s, testDestination(url)).Verdict).To(Equal(Verdict{Outcome: Retry, Reason: want}))
		})
	}
	NewWithT(t).Expect(c.countConnections(t)).To(BeZero())
}

// ownAddresses returns the addresses of this machine that are neither loopback nor link-local.
func ownAddresses(t *testing.T) []netip.Addr {
	t.Helper()
	interfaces, err := net.InterfaceAddrs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var own []netip.Addr
	for _, i := range interfaces {
		prefix, err := netip.ParsePrefix(i.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() {
			own = append(own, prefix.Addr())
		}
	}
	return own
}

// TestSend_privateAddresses calls an address of this machine that is not loopback, like one of another pod.
func TestSend_privateAddresses(t *testing.T) {
	var private netip.Addr
	for _, ip := range ownAddresses(t) {
		if !isPublic(ip) && !containsAddress(never, ip) {
			private = ip
		}
	}
	if !private.IsValid() {
		t.Skip("this machine has no private address")
	}
	c := newCanary(t, ":0")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Listener = listenOn(t, net.JoinHostPort(private.String(), "0"))
	server.Start()
	defer server.Close()
	range1 := netip.PrefixFrom(private, private.BitLen())
	rule := func(namespace string, port uint16) []AllowRule {
		return []AllowRule{{Namespace: namespace, Prefix: range1, Port: port}}
	}
	canaryURL := "http://" + net.JoinHostPort(private.String(), c.listenPort())
	for name, config := range map[string]GuardConfig{
		"no rule":              {},
		"another namespace's":  {Allow: rule("bank", 0)},
		"another port's":       {Allow: rule("shop", 443)},
		"denied":               {Allow: rule("shop", 0), Deny: []netip.Prefix{range1}},
		"own":                  {Allow: rule("shop", 0), Own: []netip.Addr{private}},
		"the API server's":     {Allow: rule("shop", 0), APIServer: []netip.Addr{private}},
		"denied, without rule": {Deny: []netip.Prefix{range1}},
	} {
		t.Run(name, func(t *testing.T) {
			result := sendEvent(t, newSender(t, Options{Guard: NewGuard(config)}), testDestination(canaryURL))
			NewWithT(t).Expect(result.Reason).To(Equal(ReasonBlockedAddress))
		})
	}
	NewWithT(t).Expect(c.countConnections(t)).To(BeZero())

	t.Run("allowed", func(t *testing.T) {
		g := NewWithT(t)
		s := newSender(t, Options{Guard: NewGuard(GuardConfig{Allow: rule("shop", 0)})})
		to := testDestination(server.URL)
		g.Expect(sendEvent(t, s, to).Outcome).To(Equal(Delivered))
		to.namespace = "bank"
		g.Expect(sendEvent(t, s, to).Reason).To(Equal(ReasonBlockedAddress), "an open connection of another namespace must not be used")
	})
}

// TestSend_proxyVariablesAreIgnored calls a host whose name is not loopback: if a proxy were used, the canary would
// count it.
func TestSend_proxyVariablesAreIgnored(t *testing.T) {
	c := newCanary(t, "127.0.0.1:0")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+c.listenPort())
		t.Setenv(strings.ToLower(name), "http://127.0.0.1:"+c.listenPort())
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	g := NewWithT(t)
	server, _ := newReceiver(t, http.StatusOK)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	dns := newDNS(t, answerA(netip.MustParseAddr("127.0.0.1")))
	s := newSender(t, Options{Resolver: dns.newResolver()})
	g.Expect(sendEvent(t, s, testDestination("http://shop.test:"+port)).Outcome).To(Equal(Delivered))
	g.Expect(sendEvent(t, s, testDestination("https://shop.test:"+port)).Reason).To(Equal(ReasonTLS))
	g.Expect(c.countConnections(t)).To(BeZero())
}

// TestSend_leaksNothing causes every kind of failure and searches all output for secrets.
func TestSend_leaksNothing(t *testing.T) {
	g := NewWithT(t)
	dns := newDNS(t, answerError)
	registry := prometheus.NewRegistry()
	s := newSender(t, Options{Registerer: registry, Resolver: dns.newResolver(), Guard: NewDevGuard(GuardConfig{})})
	gone, _ := newReceiver(t, http.StatusGone)
	raw := serveRaw(t, func(conn *net.TCPConn) { _, _ = conn.Write([]byte("canaryanswer\r\n\r\n")) })
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, nil))
	for _, url := range []string{
		gone.URL + "/canarytoken", raw + "/canarytoken", "https" + raw[4:] + "/canarytoken", "http://10.1.2.3/canarytoken",
		"http://canaryhost.test/canarytoken", "http://user:canarypassword@shop.test", "https://8.8.8.8:6443/canarytoken", "\x7fcanarytoken",
	} {
		to := impatientDestination(url)
		if strings.HasPrefix(url, gone.URL) {
			to = testDestination(url) // the test expects its answer
		}
		to.signed, to.current, to.previous = true, fakeSecret{"canarysecret", []string{"canaryold"}}, fakeSecret{current: "canaryprevious"}
		e := newEndpoint(to)
		result, err := s.Send(t.Context(), e, testEvent())
		log.Info("sent", "result", result, "err", err, "to", e, "event", testEvent())
		fmt.Fprintf(&out, "%v %+v %#v %v %+v %#v %d %x %v\n", result, result, result, e, e, e, e, e, err)
		held := struct{ to Endpoint }{e}
		fmt.Fprintf(&out, "%v %+v %#v\n", held, held, held)
	}
	to := testDestination(gone.URL)
	to.signed = true
	_, err := s.Send(t.Context(), newEndpoint(to), testEvent())
	fmt.Fprintln(&out, err, errBadURL, errBadCABundle, ErrNoResources)
	text := out.String() + gatherText(g, registry)
	g.Expect(text).To(And(ContainSubstring("attempts_total"), ContainSubstring("http_4xx"), ContainSubstring("paused")))
	g.Expect(text).NotTo(MatchRegexp(`canary|5512345678|127\.0\.0\.1|10\.1\.2\.3|8\.8\.8\.8`))
}
