package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/randfill"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// takeIn does to an object whatever the informer does with it. Nothing of it may panic.
func takeIn(t *testing.T, s *Store, o *rawObject) {
	t.Helper()
	item, err := toEntry(o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := toEntry(item); err != nil || again != item {
		t.Fatal("transform does not accept what it returned")
	}
	e := item.(*entry)
	for _, index := range []cache.IndexFunc{bindingsOf, codesOf} {
		if _, err := index(item); err != nil {
			t.Fatal(err)
		}
	}
	s.limits.addObserved(e, time.Now())
	s.limits.replaceStored(e)
	s.ownWrites.forgetObserved(e)
	s.notifyChange(e)
	s.limits.chooseEvictable(false, verification.Limits{}, time.Now(), 1)
	viewOfEntries([]*entry{e})("binding")
	r, err := e.toRequest()
	s.limits.removeStored(e.Name)
	s.handleDeleted(cache.DeletedFinalStateUnknown{Key: e.Name, Obj: item})
	if err != nil || e.kind != KindRequest {
		return
	}
	roundTrips(t, e, r)
}

// roundTrips checks that what was read is written back as it is.
func roundTrips(t *testing.T, e *entry, r verification.Request) {
	t.Helper()
	o, err := toObject(e.object, &r, time.Now())
	if err != nil {
		return // a count that no object of ours can have
	}
	again, err := toRequest(o)
	if err != nil {
		t.Fatalf("written and not readable: %v", err)
	}
	if !sameState(again, r) {
		t.Fatalf("read %+v\nwrote %+v", r, again)
	}
}

func fuzzStore() *Store { return &Store{limits: newCreationLimits(), clock: clock.RealClock{}} }

// FuzzObject makes objects of our own types, field by field.
func FuzzObject(f *testing.F) {
	for i := range byte(16) {
		f.Add([]byte{i, i + 1, i * 3, 7, 255, 0, i})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := &verifyv1.VerificationRequest{}
		fill := randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 10).MaxDepth(10)
		fill.Fill(&o.ObjectMeta)
		fill.Fill(&o.Spec)
		fill.Fill(&o.Status)
		if len(data) > 0 && data[0]%2 == 0 { // most objects are nearly right
			o.Spec.PhoneNumber, o.Spec.Method = "+15550100199", verifyv1.MethodTelegram
			o.Status.Phase, o.Status.Assurance = verifyv1.PhaseVerified, ""
			o.Status.ActualPhoneNumber = ""
		}
		s := fuzzStore()
		raw := &rawObject{ObjectMeta: o.ObjectMeta}
		var err error
		if raw.Spec, err = json.Marshal(o.Spec); err != nil {
			return
		}
		if raw.Status, err = json.Marshal(o.Status); err != nil {
			return
		}
		takeIn(t, s, raw)
	})
}

// FuzzContent gives spec and status as the text that an API server with another schema might store.
func FuzzContent(f *testing.F) {
	good := `{"projectRef":{"name":"shop"},"phoneNumber":"+15550100199","method":"Telegram","init":{` +
		`"createdAt":"2026-11-21T00:00:00.000001Z","expiresAt":"2026-11-21T00:10:00.000001Z","keyName":"k"}}`
	for _, seed := range [][2]string{
		{good, `{"phase":"Pending"}`}, {good, `null`}, {`null`, `null`}, {`[]`, `"x"`}, {`{}`, `{}`}, {``, ``}, {`{`, `}`},
		{good, `{"phase":7}`}, {good, `{"delivery":{"attempts":-1}}`}, {good, `{"delivery":{"attempts":99999999999}}`},
		{good, `{"phase":"Verified","verifiedAt":"2026-02-30T00:00:00.000000Z"}`}, {good, `{"contacts":[{},{"binding":null}]}`},
		{good, `{"phase":"Verified","verifiedAt":"2026-11-21T00:00:02.000000Z","actualPhoneNumber":"+15550100199",` +
			`"contacts":[{"binding":"b","boundAt":"2026-11-21T00:00:01.000000Z"}],"delivery":{"attempts":1,"deliveredAt":"2026-11-21T00:00:03.000000Z"}}`},
		{strings.Replace(good, `"keyName"`, `"assurance":"Session","purpose":"sign-in","browser":"CHROME/WINDOWS","keyName"`, 1),
			`{"phase":"Pending","provenAt":"2026-11-21T00:00:02.000000Z","wrongCodes":4,"actualPhoneNumber":"+15550100199"}`},
		{strings.Replace(good, `"keyName"`, `"assurance":"Session","deliver":"Code","creator":"0123456789abcdef","keyName"`, 1),
			`{"phase":"Verified","verifiedAt":"2026-11-21T00:00:02.000000Z","via":"Code","code":{"state":"Sent","reason":"undeliverable"}}`},
		{strings.Replace(good, `"keyName"`, `"deliver":"Text","keyName"`, 1), `{"via":"Text"}`}, {good, `{"code":{"reason":"x"}}`},
		{strings.Replace(good, `"keyName"`, `"assurance":"Possession","keyName"`, 1), `{}`}, {good, `{"wrongCodes":-1}`}, {good, `{"provenAt":7}`},
		{`{"projectRef":{"name":"shop"},"phoneNumber":"+15550100199","init":{"createdAt":{},"expiresAt":[]}}`, `{}`},
		{`{"projectRef":"shop","phoneNumber":1}`, `{"init":7}`},
	} {
		f.Add(seed[0], seed[1], "vr", "1")
	}
	f.Fuzz(func(t *testing.T, spec, status, name, version string) {
		o := &rawObject{Spec: json.RawMessage(spec), Status: json.RawMessage(status)}
		o.Name, o.ResourceVersion = name, version
		takeIn(t, fuzzStore(), o)
		// What no informer holds must not break it either.
		s := fuzzStore()
		s.handleObserved(nil)
		s.handleObserved(7)
		s.handleDeleted(cache.DeletedFinalStateUnknown{Key: name})
	})
}
