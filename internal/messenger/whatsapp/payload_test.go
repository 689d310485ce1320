package whatsapp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// TestDecode_atOnceAsInParts holds the two ways of decoding against each other, for every form that Meta sends.
func TestDecode_atOnceAsInParts(t *testing.T) {
	files, err := filepath.Glob("testdata/in/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			body, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Unmarshal(body, &webhook{})).To(Succeed(), "Meta's own forms are read at once")
			for _, id := range []string{numberID, "another"} {
				whole, parts := counts{}, counts{}
				in, odd := decodeWebhook(body, id, whole.count), decodeParts(body, id, parts.count)
				g.Expect(odd.messages).To(HaveExactElements(in.messages))
				g.Expect(odd.statuses).To(HaveExactElements(in.statuses))
				g.Expect(whole).To(Equal(parts))
			}
		})
	}
}

// TestDecode_oddPartsSpoilNoOther is what cannot be read at once.
func TestDecode_oddPartsSpoilNoOther(t *testing.T) {
	g := NewWithT(t)
	good := `{"from":"4915112345678","type":"text","timestamp":"1700000000","text":{"body":"hello"}}`
	to := `"metadata":{"display_phone_number":"+1 555","phone_number_id":"` + numberID + `"}`
	body := `{"object":"whatsapp_business_account","entry":["odd",{"changes":[7,` +
		`{"field":"messages","value":{` + to + `,"messages":[[],` + good + `,{"from":1}],` +
		`"statuses":["odd",{"id":7},{"id":"wamid.1","status":"read","pricing":[],"errors":{}},null]}},` +
		`{"field":"messages","value":"odd"},{"field":"account_update","value":{"messages":"odd"}}]}]}`
	seen := counts{}
	in := decodeWebhook([]byte(body), numberID, seen.count)
	g.Expect(in.messages).To(HaveLen(1))
	g.Expect(in.messages[0].From).To(Equal("4915112345678"))
	g.Expect(in.messages[0].businessNumber).To(Equal("1555"))
	g.Expect(in.statuses).To(HaveLen(2))
	g.Expect(in.statuses[0]).To(And(HaveField("ID", "wamid.1"), HaveField("Status", "read")))
	g.Expect(seen).To(Equal(counts{messenger.OutcomeMalformed: 5, messenger.OutcomeStatus: 4, messenger.OutcomeOtherUpdate: 1}))
}

// counts are outcomes, counted.
type counts map[messenger.Outcome]int

func (c counts) count(o messenger.Outcome, n int) {
	if n > 0 {
		c[o] += n
	}
}
