package whatsapp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// slowBody is a stranger's request whose body is not complete.
func (f *fixture) slowBody(to *httptest.Server, announced int, sent []byte) *bufio.Reader {
	f.t.Helper()
	conn, err := net.Dial("tcp", to.Listener.Addr().String())
	f.Expect(err).NotTo(HaveOccurred())
	f.t.Cleanup(func() { _ = conn.Close() })
	f.Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\n%s: sha256=%s\r\nContent-Length: %d\r\n\r\n%s",
		Path, signatureHeader, strings.Repeat("0", 64), announced, sent)
	f.Expect(err).NotTo(HaveOccurred())
	return bufio.NewReader(conn)
}

func (f *fixture) reserved() int64 {
	f.hook.bodies.mu.Lock()
	defer f.hook.bodies.mu.Unlock()
	return f.hook.bodies.reserved
}

// batch21KB is a genuine webhook of 21 KB.
func batch21KB(t *testing.T) []byte {
	t.Helper()
	body := golden(t, "in/status")
	return append(body, bytes.Repeat([]byte(" "), 21_000-len(body))...)
}

// Strangers announce more than all bodies may have, and send little of it.
func TestHook_announcedLengthsReserveNothing(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.hook)
	defer server.Close()
	const strangers = 2 * sharedBodyBytes / maxBodyBytes
	for range strangers {
		f.slowBody(server, maxBodyBytes, bytes.Repeat([]byte(" "), 20_000))
	}
	f.Eventually(f.reserved).Should(BeNumerically(">", strangers*15_000))
	batch := batch21KB(t)
	for range 100 {
		f.Expect(postReader(t, server.URL, bytes.NewReader(batch), true, sign(batch, appSecret))).To(Equal(http.StatusOK))
	}
	f.Expect(f.reserved()).To(BeNumerically("<", strangers*64<<10), "as bytes arrive")
}

// Strangers send all that bodies may have, and hold it: those that began first make room.
func TestHook_heldBodiesMakeRoom(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.hook)
	defer server.Close()
	const strangers = sharedBodyBytes/maxBodyBytes + 1
	var answers []*bufio.Reader
	for i := range strangers {
		answers = append(answers, f.slowBody(server, maxBodyBytes, bytes.Repeat([]byte(" "), maxBodyBytes-1)))
		if i < strangers-1 {
			f.Eventually(f.reserved).Should(BeNumerically(">", (i+1)*(maxBodyBytes-freeBodyBytes)))
		}
	}
	first, err := http.ReadResponse(answers[0], nil)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(first.Body.Close()).To(Succeed())
	f.Expect(first.StatusCode).To(Equal(http.StatusServiceUnavailable))
	batch := batch21KB(t)
	for range 20 {
		f.Expect(postReader(t, server.URL, bytes.NewReader(batch), true, sign(batch, appSecret))).To(Equal(http.StatusOK))
	}
}

// A body that stops arriving is given up long before its request's time is over.
func TestHook_minimumRate(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.hook)
	defer server.Close()
	answer, err := http.ReadResponse(f.slowBody(server, maxBodyBytes, bytes.Repeat([]byte(" "), 20_000)), nil)
	f.Expect(err).NotTo(HaveOccurred(), "the server has no limit of its own")
	f.Expect(answer.Body.Close()).To(Succeed())
	f.Expect(answer.StatusCode).To(Equal(http.StatusBadRequest))
	f.Eventually(f.reserved).Should(BeZero())
}

// endingBody is a body that makes something happen right before its end is read.
type endingBody struct {
	io.Reader

	atEnd func()
}

func (e endingBody) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		e.atEnd()
	}
	return n, err
}

func (endingBody) Close() error { return nil }

// A body that was read completely makes no room, and one that made room as its end was read does not go on.
func TestBodies_atTheEnd(t *testing.T) {
	for _, evicted := range []bool{false, true} {
		g := NewWithT(t)
		all := newBodies()
		w := httptest.NewRecorder()
		b := all.addBody(w)
		r := httptest.NewRequest(http.MethodPost, Path, endingBody{bytes.NewReader(make([]byte, maxBodyBytes)), func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			if evicted {
				g.Expect(all.evictFirst(nil)).To(BeTrue())
			}
		}})
		content, err := b.readAll(w, r)
		if evicted {
			g.Expect(err).To(MatchError(errBusy))
		} else {
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content).To(HaveLen(maxBodyBytes))
			g.Expect(all.evictFirst(nil)).To(BeFalse(), "its bytes stay in use")
		}
		b.releaseBytes()
		g.Expect(all.reserved).To(BeZero())
		g.Expect(all.incomplete.Len()).To(BeZero())
	}
}
