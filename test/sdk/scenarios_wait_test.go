package sdk

import (
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// waitScenarios are about wait.
var waitScenarios = []scenario{
	{
		name:   "wait returns as soon as the number is verified",
		mutant: mutant{"typescript", "wait: `${hold}s`,", ""},
		play: func(p *play) {
			number := p.newNumber()
			started := p.start(number, nil)
			time.AfterFunc(300*time.Millisecond, func() { _ = p.send(number, text(started, "waLink")) }) // if not, the wait ends PENDING
			var status object
			p.Expect(seconds(func() { status = p.do("wait", object{"id": started["requestId"], "timeout": 30}) })).To(BeNumerically("<", 20))
			p.Expect(status).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("actualPhoneNumber", number), HaveKey("verifiedAt")))
			p.Expect(p.callsOf("status")).To(HaveLen(1), "a long poll")
			p.Expect(p.callsOf("status")[0].target).To(ContainSubstring("wait="))
		},
	},
	{
		name:   "wait returns the last status at its deadline",
		mutant: mutant{"go", "return min(max(time.Until(deadline)-waitMargin, 0).Truncate(time.Second), longestHold)", "return min(time.Until(deadline)+longestHold, longestHold)"},
		play: func(p *play) {
			id := p.start("+4915119000201", nil)["requestId"]
			var status object
			took := seconds(func() { status = p.do("wait", object{"id": id, "timeout": 2.5}) })
			p.Expect(status).To(HaveKeyWithValue("status", "PENDING"))
			p.Expect(took).To(And(BeNumerically(">", 1.5), BeNumerically("<", 15)))
			for _, c := range p.callsOf("status") {
				p.Expect(waitOf(c)).To(BeNumerically("<=", 3))
			}
		},
	},
	{
		name:   "wait ends at its deadline when the server falls silent, with the last status",
		mutant: mutant{"python", "limited._deadline = deadline + GRACE", "limited._deadline = math.inf"},
		play: func(p *play) {
			p.do("client", object{"name": "patient", "baseURL": p.url, "apiKey": p.key, "timeout": 6})
			id := p.start("+4915119000206", nil)["requestId"]
			p.next("status", atOnce, hang, hang, hang)
			var status object
			took := seconds(func() { status = p.do("wait", object{"client": "patient", "id": id, "timeout": 2.5}) })
			p.Expect(status).To(HaveKeyWithValue("status", "PENDING"))
			p.Expect(took).To(BeNumerically("<", 7))
			p.always("status", hang)
			took = seconds(func() { p.fail("timed_out", "wait", object{"client": "patient", "id": id, "timeout": 1.5}) })
			p.Expect(took).To(BeNumerically("<", 7), "one try alone may take 6 s")
		},
	},
	{
		name:   "wait can be canceled while TLS begins",
		mutant: mutant{"python", ", do_handshake_on_connect=False", ""},
		only:   []string{"python"}, // the others leave that to their language, which ends it after 10 seconds
		play: func(p *play) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			p.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = listener.Close() }()
			left := make(chan struct{})
			go func() {
				defer close(left)
				if conn, err := listener.Accept(); err == nil {
					_, _ = io.Copy(io.Discard, conn) // until the client leaves
					_ = conn.Close()
				}
			}()
			p.do("client", object{"name": "tls", "baseURL": "https://" + listener.Addr().String(), "apiKey": p.key})
			p.Expect(p.do("waitCancel", object{"client": "tls", "id": "vr1", "after": 0.5})).To(HaveKeyWithValue("cancelled", true))
			p.Eventually(left).WithTimeout(8 * time.Second).Should(BeClosed())
		},
	},
	{
		name:   "wait can be canceled, which closes its connection",
		mutant: mutant{"python", "_shut(self._socket)", "pass"},
		play: func(p *play) {
			id := p.start("+4915119000202", nil)["requestId"]
			p.Expect(seconds(func() {
				p.Expect(p.do("waitCancel", object{"id": id, "after": 0.3})).To(HaveKeyWithValue("cancelled", true))
			})).To(BeNumerically("<", 15))
			p.Eventually(p.left).WithTimeout(8 * time.Second).Should(Receive())
		},
	},
	{
		name:   "wait asks an older server once a second",
		mutant: mutant{"go", "time.After(waitPause)", "time.After(0)"},
		play: func(p *play) {
			id := p.start("+4915119000203", nil)["requestId"]
			p.always("status", atOnce)
			p.Expect(p.do("wait", object{"id": id, "timeout": 2.5})).To(HaveKeyWithValue("status", "PENDING"))
			p.Expect(len(p.callsOf("status"))).To(And(BeNumerically(">=", 2), BeNumerically("<=", 4)))
		},
	},
	{
		name:   "wait survives a call that fails",
		mutant: mutant{"typescript", " || code === 'connection_failed'", ""},
		play: func(p *play) {
			id := p.start("+4915119000204", nil)["requestId"]
			p.do("cancel", object{"id": id})
			p.next("status", badGateway, drop)
			p.Expect(p.do("wait", object{"id": id, "timeout": 5})).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "CANCELED")))
		},
	},
	{
		name:   "a wait is not cut off by the time that a call may take",
		mutant: mutant{"typescript", "timeout: hold + this.#timeout,", "timeout: this.#timeout,"},
		play: func(p *play) {
			p.do("client", object{"name": "hasty", "baseURL": p.url, "apiKey": p.key, "timeout": 1})
			id := p.start("+4915119000205", nil)["requestId"]
			p.Expect(p.do("wait", object{"client": "hasty", "id": id, "timeout": 4})).To(HaveKeyWithValue("status", "PENDING"))
			p.Expect(len(p.callsOf("status"))).To(BeNumerically("<=", 3))
		},
	},
}

// waitOf returns the seconds that a call asks to be held for.
func waitOf(c call) int {
	_, rest, _ := strings.Cut(c.target, "wait=")
	digits, _, _ := strings.Cut(rest, "s")
	seconds, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return seconds
}
