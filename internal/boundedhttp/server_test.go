package boundedhttp

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	certutil "k8s.io/client-go/util/cert"
)

// echo answers with the number of fields and the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%d %s", len(r.Header), body)
})

// manyFields returns n different fields.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%c%c%c:\r\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	return b.String()
}

// The limits apply to each request of a connection separately, however it is sent and whatever bodies are between.
func TestServer_countsEachRequestByItself(t *testing.T) {
	get := func(fields int) string { return "GET / HTTP/1.1\r\nHost: a\r\n" + manyFields(fields-1) + "\r\n" }
	post := func(body string) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n", len(body)) + manyFields(MaxHeaderFields-2) + "\r\n" + body
	}
	lines := strings.Repeat("\n", 10_000)
	for name, test := range map[string]struct {
		sent    string
		answers []string
	}{
		"in a row": {strings.Repeat(get(MaxHeaderFields), 3), []string{"200 99 ", "200 99 ", "200 99 "}},
		"after bodies of lines": {post(lines) + post("") + post("\n") + get(MaxHeaderFields),
			[]string{"200 99 " + lines, "200 99 ", "200 99 \n", "200 99 "}},
		"one field too many":      {get(MaxHeaderFields) + get(MaxHeaderFields+1), []string{"200 99 ", "431 431 Request Header Fields Too Large"}},
		"too many after a body":   {post(lines) + get(MaxHeaderFields+1), []string{"200 99 " + lines, "431 431 Request Header Fields Too Large"}},
		"a flood of fields":       {"GET / HTTP/1.1\r\n" + manyFields(2690), []string{"431 431 Request Header Fields Too Large"}},
		"one line without an end": {"GET /" + strings.Repeat("a", 200_000), []string{"431 431 Request Header Fields Too Large"}},
		"nothing after chunks": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n" + get(1),
			[]string{"200 0 b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from := bufio.NewReader(dialServer(t, startServer(t, echo, nil), []byte(test.sent)))
			for i, want := range test.answers {
				response, err := http.ReadResponse(from, nil)
				g.Expect(err).NotTo(HaveOccurred())
				body, err := io.ReadAll(response.Body)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(fmt.Sprintf("%d %s", response.StatusCode, body)).To(Equal(want))
				g.Expect(response.Body.Close()).To(Succeed())
				if response.Close {
					g.Expect(i).To(Equal(len(test.answers) - 1))
					_, err = from.ReadByte()
					g.Expect(err).To(Equal(io.EOF))
				}
			}
		})
	}
}

// "100 Continue" is not an answer: the connection is working, not answering.
func TestServer_workAfterContinue(t *testing.T) {
	g := NewWithT(t)
	read, answer := make(chan *conn), make(chan struct{})
	l := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		read <- r.Context().Value(connKey{}).(*conn)
		<-answer
	}), nil)
	c := dialServer(t, l, []byte("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"))
	from := bufio.NewReader(c)
	line, err := from.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(HavePrefix("HTTP/1.1 100 "))
	_, err = io.WriteString(c, "ab")
	g.Expect(err).NotTo(HaveOccurred())
	at := <-read
	l.pool.mu.Lock()
	g.Expect(at.seat.state).To(Equal(working))
	l.pool.mu.Unlock()
	close(answer)
}

// newCertificate returns a certificate for loopback.
func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	g := NewWithT(t)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pair
}

// A body of many TLS records is received completely.
func TestServer_secureBody(t *testing.T) {
	g := NewWithT(t)
	l := startServer(t, echo, &tls.Config{Certificates: []tls.Certificate{newCertificate(t)}})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	sent := strings.Repeat("0123456789", 100_000)
	response, err := client.Post("https://"+l.Addr().String(), "text/plain", strings.NewReader(sent))
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(string(body)).To(HaveSuffix(" " + sent))
}

func TestServer_secure(t *testing.T) {
	g := NewWithT(t)
	l := startServer(t, echo, &tls.Config{Certificates: []tls.Certificate{newCertificate(t)}, NextProtos: []string{"h2"}})
	raw := dialServer(t, l, nil)
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n"+manyFields(200))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.ConnectionState().NegotiatedProtocol).To(Equal("http/1.1"))
	from := bufio.NewReader(c)
	for _, status := range []int{http.StatusOK, http.StatusRequestHeaderFieldsTooLarge} {
		response, err := http.ReadResponse(from, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.StatusCode).To(Equal(status))
		_, err = io.Copy(io.Discard, response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
	}
}
