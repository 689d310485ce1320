package platform_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/platform"
)

func TestPlatform(t *testing.T) {
	g := NewWithT(t)
	p, err := platform.Start(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(p.Close()).To(Succeed()) })
	call := func(path, body string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+path, strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(answer)
	}
	g.Expect(call("/bot1:x/getMe", `{}`)).To(ContainSubstring(`"username"`))
	g.Expect(call("/bot1:x/sendMessage", `{"chat_id":7,"text":"hello"}`)).To(ContainSubstring(`"ok":true`))
	g.Expect(p.Asked(7)).To(BeFalse(), "a text has no button")
	g.Expect(call("/bot1:x/sendMessage", `nonsense`)).To(ContainSubstring(`"ok":false`))
	call("/bot1:x/sendMessage", `{"chat_id":7,"text":"share","reply_markup":{"keyboard":[[{"text":"Share","request_contact":true}]]}}`)
	g.Expect(p.Asked(7)).To(BeTrue())
	g.Expect(p.Asked(8)).To(BeFalse())
	g.Expect(call("/v25.0/1234/messages", `{"to":"7"}`)).To(ContainSubstring("wamid"))
	call("/bot1:x/sendMessage", `{"chat_id":7,"text":"Your code: 012345\n\nEnter it"}`)
	g.Expect(p.Digits("7")).To(Equal("012345"))
	call("/v25.0/1234/messages", `{"to":"4915100000001","type":"interactive","interactive":{"body":{"text":"Code: 654321. Not 1234567."}}}`)
	g.Expect(p.Digits("4915100000001")).To(Equal("654321"))
	call("/v25.0/1234/messages", `{"to":"4915100000002","type":"interactive","interactive":{"body":{"text":"at +4915100000001"}}}`)
	g.Expect(p.Digits("4915100000002")).To(BeEmpty())
	g.Expect(p.Calls()).To(Equal(8))
}
