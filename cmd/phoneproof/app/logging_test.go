package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestServe_losesNoLineOfTheRequestsBeforeItsEnd(t *testing.T) {
	p := startServe(t, "--drain-delay=0s")
	for i := range 50 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.api+"/openapi.json", http.NoBody)
		p.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("X-Request-ID", fmt.Sprintf("line-%d.", i))
		response, err := http.DefaultClient.Do(request)
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(response.Body.Close()).To(Succeed())
	}
	p.stop()
	p.Eventually(p.ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	lines := string(p.log.Contents())
	for i := range 50 {
		p.Expect(strings.Count(lines, fmt.Sprintf(`"msg":"request","logger":"http","xRequestId":"line-%d."`, i))).To(Equal(1))
	}
}
