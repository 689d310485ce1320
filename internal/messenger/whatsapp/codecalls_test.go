package whatsapp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestSendTemplate_isNeverRetried loses the answer after the bytes, on a connection that was used before: net/http repeats some calls there.
func TestSendTemplate_isNeverRetried(t *testing.T) {
	w := newWorlds(t)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			_, _ = io.WriteString(out, `{"messages":[{"id":"wamid.1"}]}`)
			return
		}
		w.Expect(r.Header).NotTo(Or(HaveKey("Idempotency-Key"), HaveKey("X-Idempotency-Key")))
		connection, _, err := out.(http.Hijacker).Hijack()
		w.Expect(err).NotTo(HaveOccurred())
		_ = connection.Close()
	}))
	defer server.Close()
	client, err := NewClient(ClientOptions{GraphURL: server.URL})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = client.sendTemplate(t.Context(), w.real, numberOf(t, user), codeTemplate{})
	w.Expect(err).NotTo(HaveOccurred())
	reused := false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
	_, err = client.sendTemplate(ctx, w.real, numberOf(t, user), codeTemplate{})
	w.Expect(reused).To(BeTrue())
	w.Expect(judgeCode(err, phone.Number{}, numberOf(t, user))).To(Equal(verification.CodeResult{Reason: "no_answer"}))
	w.Expect(calls.Load()).To(BeEquivalentTo(2))
}

// TestSendTemplate_withoutAConnection has surely sent nothing: the host refuses, or the time ends before the connection.
func TestSendTemplate_withoutAConnection(t *testing.T) {
	w := newWorlds(t)
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	address := closing.Addr().String()
	w.Expect(closing.Close()).To(Succeed())
	client, err := NewClient(ClientOptions{GraphURL: "http://" + address})
	w.Expect(err).NotTo(HaveOccurred())
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		_, err = client.sendTemplate(ctx, w.real, numberOf(t, user), codeTemplate{})
		w.Expect(judgeCode(err, phone.Number{}, numberOf(t, user))).To(
			Equal(verification.CodeResult{State: verification.CodeNotSent, Reason: "unreachable"}))
	}
}

// TestSendTemplate_answers has answers that accept nothing, or name no number.
func TestSendTemplate_answers(t *testing.T) {
	w := newWorlds(t)
	for answer, accepted := range map[string]bool{
		`{"contacts":[{"wa_id":"US.1349"}],"messages":[{"id":"wamid.1"}]}`: true,
		`{"contacts":[{"input":"+1"}],"messages":[{"id":"wamid.1"}]}`:      true,
		`{"messages":[{"id":"wamid.1"}]}`:                                  true,
		`{"contacts":[{"wa_id":"16505551234"}]}`:                           false,
		`{"contacts":[{"wa_id":"16505551234"}],"messages":[{"id":""}]}`:    false,
		`{}`:     false,
		`<html>`: false,
		``:       false,
	} {
		w.graph.answers(http.StatusOK, []byte(answer))
		answered, err := w.client.sendTemplate(t.Context(), w.real, numberOf(t, user), codeTemplate{})
		w.Expect(answered.IsZero()).To(BeTrue(), answer)
		if accepted {
			w.Expect(err).NotTo(HaveOccurred(), answer)
			continue
		}
		failure, ok := errors.AsType[*Error](err)
		w.Expect(ok).To(BeTrue(), answer)
		w.Expect(failure.Class).To(Equal(messenger.CallUnreadable), answer)
	}
}
