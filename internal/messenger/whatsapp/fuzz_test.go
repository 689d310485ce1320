package whatsapp

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// FuzzHook_payload posts anything with a good signature: it is acknowledged, nothing panics, and no number but the one in
// from is ever taken for the sender's.
func FuzzHook_payload(f *testing.F) {
	files, err := filepath.Glob("testdata/in/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, odd := range []string{"", "null", "{}", `{"object":"whatsapp_business_account","entry":[null,{"changes":[null]}]}`, "\xff"} {
		f.Add([]byte(odd))
	}
	claimed, err := phone.ParseWhatsApp(user)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		x := newOfflineFixture(t)
		x.acceptContacts()
		made := x.request("first", user, verification.WhatsApp)
		x.clock.SetTime(started.Add(time.Minute))
		if w := x.post(body); w.Code != http.StatusOK {
			t.Fatalf("answered %d", w.Code)
		}
		counts := x.outcomes()
		if counts[messenger.OutcomePanicked] > 0 {
			t.Fatal(string(x.logs.Contents()))
		}
		state := x.state(made.Request.ID)
		if (state.Phase == verification.Verified) != (counts[messenger.OutcomeVerified] > 0) {
			t.Fatal("the count and the store disagree")
		}
		if state.Phase == verification.Verified && !phone.Same(state.Actual, claimed) {
			t.Fatal("another number verified")
		}
	})
}

// FuzzSignature reads any header: only what Meta would send for the body is taken.
func FuzzSignature(f *testing.F) {
	body := []byte(`{"object":"whatsapp_business_account"}`)
	right := sign(body, appSecret)
	for _, seed := range []string{right, "", "sha256=", "sha1=" + right[7:47], strings.ToUpper(right), right + right, right[:70], " " + right, right + "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		mac, ok := readSignature(http.Header{signatureHeader: {header}})
		good := ok && isSigned(body, mac, [][]byte{[]byte("former"), []byte(appSecret)})
		if good != (header == right) {
			t.Fatalf("taken: %t", good)
		}
		if !ok && !bytes.Equal(mac[:], make([]byte, len(mac))) && len(header) != len(right) {
			t.Fatal("a MAC of a header that is none")
		}
	})
}
