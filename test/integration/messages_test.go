package integration_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/system"
)

// signedMessage is a webhook request with Meta's signature.
type signedMessage struct{ system.Message }

// signedText returns the webhook request of a text that a number sent at a time.
func signedText(from, text string, at time.Time) signedMessage {
	account := system.Project{PhoneNumberID: shopNumberID, AppSecret: appSecret}
	return signedMessage{account.WhatsAppMessage(from, text, from, at)}
}

// postMessage posts a text from a number like Meta, and returns the status.
func (s *shop) postMessage(ctx context.Context, through *replica, from, text string) int {
	return signedText(from, text, time.Now()).postTo(ctx, through)
}

// postTo sends the unchanged bytes and returns the response's status; 0 without one.
func (m signedMessage) postTo(ctx context.Context, through *replica) int {
	status, _, _ := sendRequest(ctx, http.MethodPost, "http://"+through.API+m.Path, m.Header, string(m.Body))
	return status
}

// mustPostTo is postTo that must succeed. A message that the store had no time for is sent again, like Meta does.
func (m signedMessage) mustPostTo(ctx context.Context, through *replica) {
	GinkgoHelper()
	var status int
	Eventually(func() int {
		status = m.postTo(ctx, through)
		return status
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(status).To(Equal(http.StatusOK))
}
