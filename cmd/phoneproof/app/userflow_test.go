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

// pageProject is a project with a page. What differs is filled in: the base URL, the origin to go back to, and for how long a request lasts.
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
  telegram:
    botUsername: adas_bookshop_bot
    botTokenSecretRef: {name: dev, key: telegram}
  request: {ttl: %s}
`

// pageDev is what differs between the projects of tests, and their devs.
type pageDev struct {
	ttl   string
	clock clock.Clock
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
	writeSecret(t, dir, "project.yaml", fmt.Sprintf(pageProject, "http://"+public, "http://"+page, o.ttl))
	return startDevWith(t, server.Dependencies{Clock: o.clock, RealLinks: true}, "--project-file", filepath.Join(dir, "project.yaml"),
		"--bind-address", api, "--simulator-bind-address", page)
}

// ada is the user of the simulator that tests play.
const ada = "+4915112345678"

// tapInMessenger has the user do something in the messenger, which is one tap more.
func (p *userPage) tapInMessenger(action string, body map[string]string) {
	p.t.Helper()
	p.taps++
	p.dev.call(http.StatusAccepted, http.MethodPost, p.dev.page+"/sim/users/"+ada+"/"+action, body)
}

// pressOnPage taps or clicks on the page, which is one tap more.
func (p *userPage) pressOnPage(selector string) {
	p.t.Helper()
	p.taps++
	p.Press(selector)
}

// TestUserPage_takesThreeTapsOnAPhone is a person with nothing but a phone: while the messenger is open the page is hidden and frozen, and
// loses its stream without an end. It knows the result when they come back, and leads on. Back from there is where the person came from.
func TestUserPage_takesThreeTapsOnAPhone(t *testing.T) {
	t.Parallel()
	for method, flow := range map[string]struct {
		app  string
		taps int
	}{"WHATSAPP": {"WhatsApp", 2}, "TELEGRAM": {"Telegram", 3}} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			line := &phoneLine{t: t}
			d := pageDev{line: line.openLine}.start(t)
			b := openTab(t)
			b.EmulatePhone()
			b.HandLinksToApps()
			b.Open(d.page + "/?before")
			b.AwaitValue("#number", Equal(ada))
			p := b.openUserPage(d, map[string]any{"method": method})
			p.expectTitle("Verify your phone number")
			p.Expect(p.Eval(`document.querySelector(".scan").checkVisibility()`)).To(BeFalse(), "a phone cannot scan itself")
			p.Eventually(line.countStreams).WithTimeout(patience).Should(Equal(1))
			p.pressOnPage("#open")
			p.Expect(p.AwaitApp()).To(Equal(p.link))
			p.expectTitle("Now tap Send in " + flow.app)
			p.Hide()
			line.loseStreams()
			p.tapInMessenger("send", map[string]string{"link": p.link})
			if method == "TELEGRAM" {
				p.tapInMessenger("share-contact", map[string]string{"wait": "30s"})
			}
			p.Expect(d.status(p.id, "30s")).To(HaveKeyWithValue("status", "VERIFIED"))
			p.Expect(line.countStreams()).To(Equal(1), "it asks nothing while it is hidden")
			p.Show()
			p.AwaitText("h1", Equal("Your number is verified"))
			p.Expect(p.taps).To(Equal(flow.taps), "at most three taps")
			p.AwaitLocation(And(HavePrefix(d.page+"/?order=7&requestId="), HaveSuffix("&status=VERIFIED")))
			p.Expect(p.TakeProblems()).To(BeEmpty())
			p.GoBack()
			p.AwaitLocation(HaveSuffix("/?before"))
		})
	}
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
	p := b.openUserPage(d, nil)
	p.AwaitText("h1", Equal("Verify your phone number"))
	skipping.ahead.Store(int64(time.Minute))
	p.expectTitle("Your time is up") // by itself
	p.Expect(p.Eval(`document.getElementById("return").href`)).To(HaveSuffix("&status=EXPIRED"))
	p.Press("#return")
	p.AwaitLocation(HavePrefix(d.page + "/?order=7&requestId="))
}
