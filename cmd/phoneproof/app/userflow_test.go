package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/test/ports"
)

// pageProject is a project with a page. What differs is filled in: the base URL, the origin to go back to, fields of WhatsApp, and
// others of the project.
const pageProject = `
apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata: {name: shop, namespace: demo}
spec:
  displayName: Ada's Bookshop
  baseURL: %s
  page: {returnURLs: ["%s"]}
  apiKeys: [{name: backend, secretRef: {name: dev, key: api-key}}]
  whatsapp:
    phoneNumber: "+4915112345670"
    phoneNumberID: "1234567890"
    accessTokenSecretRef: {name: dev, key: whatsapp}
    appSecretRef: {name: dev, key: whatsapp}
    %s
  telegram:
    botUsername: adas_bookshop_bot
    botTokenSecretRef: {name: dev, key: telegram}
  request: {ttl: %s}
`

// pageDev is what differs between the projects of tests, and their devs.
type pageDev struct {
	whatsApp string
	ttl      string
	clock    clock.Clock
	// line leads browsers to an address, and returns the address that they know.
	line func(target string) string
}

// start starts dev with such a project.
func (o pageDev) start(t *testing.T) *devProcess {
	t.Helper()
	api, page, dir := ports.Address(t), ports.Address(t), t.TempDir()
	public := api
	if o.line != nil {
		public = o.line(api)
	}
	if o.ttl == "" {
		o.ttl = "10m"
	}
	writeSecret(t, dir, "project.yaml", fmt.Sprintf(pageProject, "http://"+public, "http://"+page, o.whatsApp, o.ttl))
	return startDevWith(t, server.Dependencies{Clock: o.clock, RealLinks: true}, "--project-file", filepath.Join(dir, "project.yaml"),
		"--bind-address", api, "--simulator-bind-address", page)
}

// tapInMessenger has the user do something in the messenger, which is one tap more.
func (p *userPage) tapInMessenger(user, action string, body map[string]string) {
	p.t.Helper()
	p.taps++
	p.dev.call(http.StatusAccepted, http.MethodPost, p.dev.page+"/sim/users/"+user+"/"+action, body)
}

// pressOnPage taps or clicks on the page, which is one tap more.
func (p *userPage) pressOnPage(selector string) {
	p.t.Helper()
	p.taps++
	p.Press(selector)
}

// The users of the simulator that tests play.
const (
	ada = "+4915112345678"
	noa = "+972502345678" // WhatsApp hides this one from businesses
)

// TestUserPage_takesThreeTapsOnAPhone is a person with nothing but a phone: while the messenger is open the page is hidden and
// frozen, and it knows the result when they come back.
func TestUserPage_takesThreeTapsOnAPhone(t *testing.T) {
	t.Parallel()
	for method, flow := range map[string]struct {
		app  string
		taps int
	}{"WHATSAPP": {"WhatsApp", 2}, "TELEGRAM": {"Telegram", 3}} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			d := startDev(t)
			b := openTab(t)
			b.EmulatePhone()
			b.HandLinksToApps()
			p := b.openUserPage(d, map[string]any{"method": method})
			p.expectTitle("Verify your phone number")
			p.Expect(p.Eval(`document.querySelector(".scan").checkVisibility()`)).To(BeFalse(), "a phone cannot scan itself")
			p.pressOnPage("#open")
			p.Expect(p.AwaitApp()).To(Equal(p.link))
			p.expectTitle("Now tap Send in " + flow.app)
			p.Hide()
			p.tapInMessenger(ada, "send", map[string]string{"link": p.link})
			if method == "TELEGRAM" {
				p.tapInMessenger(ada, "share-contact", map[string]string{"wait": "30s"})
			}
			p.Show()
			p.AwaitText("h1", Equal("Your number is verified"))
			p.Expect(p.taps).To(Equal(flow.taps), "at most three taps")
			p.AwaitLocation(And(HavePrefix(d.page+"/?order=7&requestId="), HaveSuffix("&status=VERIFIED")))
			p.Expect(p.TakeProblems()).To(BeEmpty())
		})
	}
}

// TestUserPage_asksAtOnceAfterTheBackground loses the stream of the page without an end while the messenger is open.
func TestUserPage_asksAtOnceAfterTheBackground(t *testing.T) {
	t.Parallel()
	line := &phoneLine{t: t}
	d := pageDev{line: line.openLine}.start(t)
	b := openTab(t)
	b.EmulatePhone()
	b.HandLinksToApps()
	p := b.openUserPage(d, map[string]any{"returnURL": nil})
	p.AwaitText("h1", Equal("Verify your phone number"))
	p.Eventually(line.countStreams).WithTimeout(patience).Should(Equal(1))
	p.Press("#open")
	p.AwaitText("h1", Equal("Now tap Send in WhatsApp"))
	p.Hide()
	line.loseStreams()
	p.sendAs(ada)
	p.Eventually(func() any { return p.dev.status(p.id, "30s")["status"] }).Should(Equal("VERIFIED"))
	p.Expect(line.countStreams()).To(Equal(1), "it asks nothing while it is hidden")
	p.Show()
	p.expectTitle("Your number is verified")
	p.Expect(p.TakeProblems()).To(BeEmpty())
}

// TestUserPage_goesBackToWhereThePersonCameFrom leaves the page for the web page of a messenger, comes back, and goes back once more from the client's
// page: that leads to where the person came from, and not to the page, which would send them on again.
func TestUserPage_goesBackToWhereThePersonCameFrom(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	b := openTab(t)
	b.Open(d.page + "/receiver/deliveries")
	p := b.openUserPage(d, nil)
	p.AwaitText("h1", Equal("Verify your phone number"))
	p.Eval(`window.kept = true; 0`)
	p.Open(d.page + "/?messenger")
	p.AwaitLocation(HaveSuffix("/?messenger"))
	p.sendAs(ada)
	p.Expect(d.status(p.id, "30s")).To(HaveKeyWithValue("status", "VERIFIED"))
	p.GoBack()
	p.AwaitText("h1", Equal("Your number is verified"))
	t.Logf("the page was kept in memory: %v", p.Eval(`window.kept === true`))
	p.AwaitLocation(HaveSuffix("&status=VERIFIED"))
	p.GoBack()
	p.AwaitLocation(HaveSuffix("/receiver/deliveries"))
	p.TakeProblems() // of the dev page, which has no icon
}

// TestUserPage_worksOnASlowNetwork has the network of a phone at the edge of reception.
func TestUserPage_worksOnASlowNetwork(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	b := openTab(t)
	b.EmulatePhone()
	b.HandLinksToApps()
	const latency = 400 * time.Millisecond
	b.SlowDown(latency, 50_000)
	p := b.openUserPage(d, map[string]any{"returnURL": nil})
	p.AwaitText("h1", Equal("Verify your phone number"))
	p.Await(`performance.getEntriesByName("first-contentful-paint").length`, BeEquivalentTo(1))
	p.Await(`performance.getEntriesByType("navigation")[0].responseEnd`, BeNumerically(">=", latency.Milliseconds()), "the network is slow")
	p.Expect(p.Eval(`performance.getEntriesByType("resource").filter((r) =>
		r.startTime < performance.getEntriesByName("first-contentful-paint")[0].startTime && !r.name.endsWith("/events")).map((r) => r.name).join()`)).
		To(BeEmpty(), "one request to the first paint")
	t.Logf("first paint after %.0f ms, of which the answer took %.0f ms to arrive", p.Eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`),
		p.Eval(`performance.getEntriesByType("navigation")[0].responseEnd`))
	p.Press("#open")
	p.Expect(p.AwaitApp()).To(Equal(p.link))
	p.AwaitText("h1", Equal("Now tap Send in WhatsApp"))
	p.sendAs(ada)
	p.AwaitText("h1", Equal("Your number is verified"))
	p.Expect(p.TakeProblems()).To(BeEmpty())
}

// skippingClock is a clock that tests set ahead.
type skippingClock struct {
	clock.Clock

	ahead atomic.Int64
}

func (c *skippingClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *skippingClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

func TestUserPage_expires(t *testing.T) {
	t.Parallel()
	skipping := &skippingClock{Clock: clock.RealClock{}}
	d := pageDev{ttl: "1m", clock: skipping}.start(t)
	b := openTab(t)
	p := b.initUserPage(d, nil)
	skipping.ahead.Store(int64(54 * time.Second))
	p.Open(p.url)
	p.AwaitText("h1", Equal("Verify your phone number"))
	p.expectTitle("Your time is up") // after the last seconds, by itself
	p.Expect(p.Eval(`document.getElementById("return").href`)).To(HaveSuffix("&status=EXPIRED"))
	p.Press("#return")
	p.AwaitLocation(HavePrefix(d.page + "/?order=7&requestId="))
}

// TestUserPage_hiddenNumber is a person whose number WhatsApp hides, in a project that needs it: the page offers the other way.
func TestUserPage_hiddenNumber(t *testing.T) {
	t.Parallel()
	d := pageDev{whatsApp: "hiddenNumbers: Refuse"}.start(t)
	p := openTab(t).openUserPage(d, map[string]any{"phoneNumber": noa, "returnURL": nil})
	p.EmulatePhone()
	p.AwaitText("h1", Equal("Verify your phone number"))
	p.sendAs(noa)
	p.expectTitle("Your number is hidden")
	p.Expect(p.Eval(`document.getElementById("open")`)).To(BeNil(), "WhatsApp does not help")
	p.Press(".switch")
	p.Await(`document.getElementById("open")?.href ?? ""`, HavePrefix("https://t.me/"))
	p.link = p.Eval(`document.getElementById("open").href`).(string)
	p.sendAs(noa)
	p.dev.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/"+noa+"/share-contact", map[string]string{"wait": "30s"})
	p.expectTitle("Your number is verified")
	p.Expect(p.TakeProblems()).To(BeEmpty())
}

// TestUserPage_asksTheHiddenNumber is that person where the claimed number is asked, and answers either way.
func TestUserPage_asksTheHiddenNumber(t *testing.T) {
	t.Parallel()
	d := pageDev{whatsApp: "hiddenNumbers: Echo"}.start(t)
	b := openTab(t)
	for _, answer := range []struct{ button, title string }{
		{"Not me", "Nothing was verified"}, {"Confirm", "Your number is verified"},
	} {
		user := noa
		if answer.button == "Confirm" { // a number is asked once a day
			user = "+972502345679"
			d.call(http.StatusCreated, http.MethodPost, d.page+"/sim/users",
				map[string]any{"name": "Tal", "phone": user, "username": "tal_levi", "hidesNumber": true})
		}
		p := b.openUserPage(d, map[string]any{"phoneNumber": user, "returnURL": nil})
		p.AwaitText("h1", Equal("Verify your phone number"))
		p.sendAs(user)
		p.expectTitle("Confirm in WhatsApp")
		p.tapInMessenger(user, "tap", map[string]string{"title": answer.button, "wait": "30s"})
		p.expectTitle(answer.title)
		p.Expect(p.TakeProblems()).To(BeEmpty())
	}
}

// TestUserPage_looksDarkInTheDark compares colors with those of a user who prefers light ones.
func TestUserPage_looksDarkInTheDark(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	p := openTab(t).openUserPage(d, nil)
	p.AwaitText("h1", Equal("Verify your phone number"))
	brightness := func(property string) float64 {
		return p.Eval(`(() => {
			const [r, g, b] = getComputedStyle(document.body)["` + property + `"].match(/[\d.]+/g).map(Number);
			return (r + g + b) / 3;
		})()`).(float64)
	}
	for scheme, dark := range map[string]bool{"light": false, "dark": true} {
		p.EmulateScheme(scheme)
		if paper, ink := brightness("backgroundColor"), brightness("color"); dark {
			p.Expect(paper).To(BeNumerically("<", 50), scheme)
			p.Expect(ink).To(BeNumerically(">", 200), scheme)
		} else {
			p.Expect(paper).To(BeNumerically(">", 200), scheme)
			p.Expect(ink).To(BeNumerically("<", 50), scheme)
		}
		p.Expect(p.Eval(`getComputedStyle(document.querySelector(".scan img")).backgroundColor`)).
			To(Equal("rgb(255, 255, 255)"), "a QR code is dark on light, or cameras do not read it")
	}
	p.EmulateScheme("dark")
	p.Expect(p.readQR()).To(Equal(p.link))
}
