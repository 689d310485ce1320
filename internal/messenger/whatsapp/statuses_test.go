package whatsapp

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// statusesOf returns a webhook with statuses for the business number.
func statusesOf(statuses ...any) []byte {
	return encode(envelopeOf(changeOf(object{
		"messaging_product": "whatsapp",
		"metadata":          object{"display_phone_number": businessNumber, "phone_number_id": numberID},
		"statuses":          statuses,
	})))
}

func statusOf(id, state string, more object) object {
	s := object{"id": id, "status": state, "timestamp": "1795168830", "recipient_id": user}
	maps.Copy(s, more)
	return s
}

func pricingOf(billable any, kind, category string) object {
	p := object{"pricing_model": "PMP", "type": kind, "category": category}
	if billable != nil {
		p["billable"] = billable
	}
	return object{"pricing": p}
}

func failedWith(codes ...any) object {
	var all []any
	for _, code := range codes {
		all = append(all, object{"code": code, "title": "canary title", "error_data": object{"details": "canary " + user}})
	}
	return object{"errors": all}
}

// countedLabels returns the counts of a metric that are not zero, by its label.
func countedLabels(f *fixture, vector *prometheus.CounterVec, labels ...string) map[string]int {
	counts := map[string]int{}
	for _, label := range labels {
		if n := int(testutil.ToFloat64(vector.WithLabelValues(label))); n > 0 {
			counts[label] = n
		}
	}
	f.Expect(testutil.CollectAndCount(vector)).To(Equal(len(labels)), "a closed set")
	return counts
}

func (f *fixture) billedMessages() map[string]int {
	return countedLabels(f, f.hook.statuses.billed, categories[:]...)
}

func (f *fixture) notDelivered() map[string]int {
	return countedLabels(f, f.hook.statuses.failed, failedNoWindow, failedUndeliverable, failedOther)
}

func TestHook_billedMessages(t *testing.T) {
	paid := pricingOf(true, "regular", "service")
	for name, c := range map[string]struct {
		statuses []any
		want     map[string]int
	}{
		"delivered":                     {[]any{statusOf("1", "delivered", paid)}, map[string]int{"service": 1}},
		"read, and never delivered":     {[]any{statusOf("1", "read", paid)}, map[string]int{"service": 1}},
		"delivered, then read":          {[]any{statusOf("1", "delivered", paid), statusOf("1", "read", paid)}, map[string]int{"service": 1}},
		"sent alone":                    {[]any{statusOf("1", "sent", paid)}, nil},
		"failed":                        {[]any{statusOf("1", "failed", paid)}, nil},
		"two messages":                  {[]any{statusOf("1", "delivered", paid), statusOf("2", "delivered", paid)}, map[string]int{"service": 2}},
		"without an id":                 {[]any{statusOf("", "delivered", paid)}, nil},
		"not billed":                    {[]any{statusOf("1", "delivered", pricingOf(false, "free_customer_service", "service"))}, nil},
		"not billed, of a type that is": {[]any{statusOf("1", "delivered", pricingOf(false, "regular", "service"))}, nil},
		"free, then billed":             {[]any{statusOf("1", "delivered", pricingOf(false, "regular", "utility")), statusOf("1", "read", pricingOf(true, "regular", "utility"))}, map[string]int{"utility": 1}},
		"by its type":                   {[]any{statusOf("1", "delivered", pricingOf(nil, "regular", "utility"))}, map[string]int{"utility": 1}},
		"free by its type":              {[]any{statusOf("1", "delivered", pricingOf(nil, "free_entry_point", "utility"))}, nil},
		"as a text":                     {[]any{statusOf("1", "delivered", pricingOf("true", "regular", "utility"))}, map[string]int{"utility": 1}},
		"a category with a dash":        {[]any{statusOf("1", "delivered", pricingOf(true, "regular", "authentication-international"))}, map[string]int{"authentication_international": 1}},
		"a category in capitals":        {[]any{statusOf("1", "delivered", pricingOf(true, "regular", "MARKETING"))}, map[string]int{"marketing": 1}},
		"a category that is unknown":    {[]any{statusOf("1", "delivered", pricingOf(true, "regular", "canary"))}, map[string]int{"other": 1}},
		"without a price":               {[]any{statusOf("1", "delivered", nil)}, nil},
		"a price that is none":          {[]any{statusOf("1", "delivered", object{"pricing": "canary"})}, nil},
		"beside what is no status": {[]any{"odd", statusOf("1", "delivered", object{"id": 7}), nil, statusOf("2", "delivered", paid)},
			map[string]int{"service": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOfflineFixture(t)
			for range 3 { // copies count once
				f.Expect(f.post(statusesOf(c.statuses...)).Code).To(Equal(http.StatusOK))
			}
			if c.want == nil {
				c.want = map[string]int{}
			}
			f.Expect(f.billedMessages()).To(Equal(c.want))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeStatus: 3 * len(c.statuses)}))
		})
	}
}

func TestHook_failedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		status object
		want   string
	}{
		"no window":             {failedWith(131047), failedNoWindow},
		"undeliverable":         {failedWith(131026), failedUndeliverable},
		"another":               {failedWith(131049), failedOther},
		"the second of two":     {failedWith(131049, 131047), failedNoWindow},
		"none":                  {nil, failedOther},
		"an empty list":         {object{"errors": []any{}}, failedOther},
		"no list":               {object{"errors": "canary"}, failedOther},
		"a code that is a text": {failedWith("131047"), failedOther},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOfflineFixture(t)
			for range 3 {
				f.Expect(f.post(statusesOf(statusOf("wamid.1", "failed", c.status))).Code).To(Equal(http.StatusOK))
			}
			f.Expect(f.notDelivered()).To(Equal(map[string]int{c.want: 1}))
			f.Expect(f.billedMessages()).To(BeEmpty())
			f.Expect(string(f.logs.Contents())).NotTo(Or(ContainSubstring("canary"), ContainSubstring(user)))
		})
	}
}

// TestHook_statusesOfOthers are those of another number of the app.
func TestHook_statusesOfOthers(t *testing.T) {
	f := newOfflineFixture(t)
	f.change(func(s *settings.Settings) { s.WhatsApp.PhoneNumberID = "1" })
	f.Expect(f.post(golden(t, "in/status_billed")).Code).To(Equal(http.StatusOK))
	f.Expect(f.billedMessages()).To(BeEmpty())
}

// TestStatusCounter_forgets counts more messages than are remembered: the memory is bounded, and the latest are in it.
func TestStatusCounter_forgets(t *testing.T) {
	g := NewWithT(t)
	c, err := newStatusCounter(nil)
	g.Expect(err).NotTo(HaveOccurred())
	at := func(now time.Time, id string) {
		c.countStatus(now, &status{ID: id, Status: statusDelivered, Pricing: []byte(`{"billable":true,"category":"service"}`)})
	}
	billed := func() int { return int(testutil.ToFloat64(c.billed.WithLabelValues("service"))) }
	for i := range maxStatuses + 1 {
		at(started, strconv.Itoa(i))
	}
	at(started, strconv.Itoa(maxStatuses))
	g.Expect(billed()).To(Equal(maxStatuses + 1))
	at(started, "0")
	g.Expect(billed()).To(Equal(maxStatuses+2), "the oldest one is forgotten")
	at(started.Add(statusMemory-time.Second), "0")
	g.Expect(billed()).To(Equal(maxStatuses + 2))
	at(started.Add(statusMemory), "0")
	g.Expect(billed()).To(Equal(maxStatuses + 3))
}

// TestDecode_statuses reads all that a status of Meta's holds.
func TestDecode_statuses(t *testing.T) {
	g := NewWithT(t)
	in := decodeWebhook(golden(t, "in/status_failed"), numberID, counts{}.count)
	g.Expect(in.statuses).To(HaveLen(1))
	s := in.statuses[0]
	g.Expect([]string{s.ID, s.Status, s.RecipientID, s.RecipientUserID, s.CallbackData, s.failureReason()}).To(Equal([]string{
		"wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTAzODEwMTQ0RgA=", "failed", user, hiddenUser, "echo:1", failedNoWindow,
	}))
	category, billed := decodeWebhook(golden(t, "in/status_billed"), numberID, counts{}.count).statuses[0].billedCategory()
	g.Expect(category).To(Equal("service"))
	g.Expect(billed).To(BeTrue())
	g.Expect(slices.Contains(categories[:], categoryOther)).To(BeTrue())
}
