package redact_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/redact"
)

const secret = "canary-value"

type inner struct {
	text  string
	bytes []byte
}

// holder has a field whose methods fmt cannot call.
type holder struct{ hidden redact.Value[inner] }

type exported struct {
	Shown redact.Value[inner] `json:"shown"`
}

func TestValue_isNeverPrinted(t *testing.T) {
	g := NewWithT(t)
	v := redact.New(inner{text: secret, bytes: []byte(secret)})
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o", "%b", "%t", "%c", "%U", "%e", "%p", "%20s"} {
		for _, value := range []any{v, &v, []redact.Value[inner]{v}, holder{v}, &holder{v}, exported{v}, map[string]any{"a": holder{v}}} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("m", "value", v, "holder", holder{v}, "exported", exported{v})
	}
	encoded, err := json.Marshal(exported{v})
	g.Expect(err).NotTo(HaveOccurred())
	out.Write(encoded)
	for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), fmt.Sprintf("%d", []byte(secret))[1:20]} {
		g.Expect(strings.ToLower(out.String())).NotTo(ContainSubstring(form))
	}
	g.Expect(string(encoded)).To(Equal(`{"shown":"[redacted]"}`))
	g.Expect(v.String()).To(Equal(redact.Placeholder))
}

func TestValue_reveals(t *testing.T) {
	g := NewWithT(t)
	g.Expect(redact.New(secret).Reveal()).To(Equal(secret))
	g.Expect(redact.Value[string]{}.Reveal()).To(BeEmpty())
	g.Expect(redact.Value[string]{}.String()).To(Equal(redact.Placeholder))
}
