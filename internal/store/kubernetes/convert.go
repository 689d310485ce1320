package kubernetes

import (
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var (
	methods = map[verifyv1.Method]verification.Method{
		verifyv1.MethodWhatsApp: verification.WhatsApp, verifyv1.MethodTelegram: verification.Telegram,
	}
	testMethods = map[verifyv1.Method]verification.Method{
		verifyv1.MethodTestWhatsApp: verification.WhatsApp, verifyv1.MethodTestTelegram: verification.Telegram,
	}
	phases = map[verifyv1.Phase]verification.Phase{
		"": verification.Pending, verifyv1.PhasePending: verification.Pending,
		verifyv1.PhaseVerified: verification.Verified, verifyv1.PhaseExpired: verification.Expired,
	}
	assurances = map[verifyv1.Assurance]verification.Assurance{
		"": verification.AssuranceUsual, verifyv1.AssuranceSharedContact: verification.AssuranceSharedContact,
		verifyv1.AssuranceEcho: verification.AssuranceEcho,
	}
	levels = map[verifyv1.AssuranceLevel]verification.Level{
		"": verification.LevelPossession, verifyv1.AssuranceLevelSession: verification.LevelSession,
	}
	contactKinds = map[verifyv1.ContactKind]verification.ContactKind{
		"": verification.ContactShare, verifyv1.ContactKindShare: verification.ContactShare,
		verifyv1.ContactKindConfirm: verification.ContactConfirm, verifyv1.ContactKindEcho: verification.ContactEcho,
	}
)

// toRequest returns the request that an object holds. It fails with errIncomplete for a manual request that is not completed
// yet, and with another error for an object that our own writes cannot have made.
func toRequest(o *verifyv1.VerificationRequest) (verification.Request, error) {
	none := verification.Request{}
	claimed, err := phone.FromE164(o.Spec.PhoneNumber)
	if err != nil {
		return none, errors.New("spec.phoneNumber is no number")
	}
	method, known := methods[o.Spec.Method]
	test := o.Spec.Method.IsTest()
	if test {
		method, known = testMethods[o.Spec.Method], o.Spec.Init != nil // a manual request is none of a test key
	}
	if !known {
		return none, fmt.Errorf("spec.method %q is unknown", o.Spec.Method)
	}
	accepted := o.Spec.Init
	if accepted == nil {
		accepted = o.Status.Init
	}
	if accepted == nil {
		if o.Status.Phase != "" && o.Status.Phase != verifyv1.PhasePending {
			return none, fmt.Errorf("phase %q without init", o.Status.Phase)
		}
		return none, errIncomplete
	}
	r := verification.Request{
		ID: o.Name, Phone: claimed, Method: method, Version: o.ResourceVersion,
		CreatedAt: fromMicroTime(&accepted.CreatedAt), ExpiresAt: fromMicroTime(&accepted.ExpiresAt),
		KeyName: accepted.KeyName, BodyHash: accepted.BodyHash, Test: test, DisplayName: accepted.DisplayName,
		ClientData: toClientData(&o.Spec),
	}
	r.ReturnURL = accepted.ReturnURL
	level, known := levels[accepted.Assurance]
	if !known {
		return none, fmt.Errorf("init.assurance %q is unknown", accepted.Assurance)
	}
	r.Terms = verification.Terms{Level: level, Purpose: accepted.Purpose, Browser: accepted.Browser}
	if r.OtherMethods, known = toMethods(accepted.OtherMethods); !known {
		return none, errors.New("init.otherMethods has one that is unknown")
	}
	if r.CreatedAt.IsZero() || !r.ExpiresAt.After(r.CreatedAt) {
		return none, errors.New("init has no valid times")
	}
	return r, readStatus(&o.Status, &r)
}

// methodName returns the name of a method in the spec. A test key's has one of its own.
func methodName(m verification.Method, test bool) verifyv1.Method {
	if test {
		return nameOf(testMethods, m)
	}
	return nameOf(methods, m)
}

func toClientData(spec *verifyv1.VerificationRequestSpec) verification.ClientData {
	d := verification.ClientData{Reference: spec.Reference, Locale: spec.Locale}
	if len(spec.Metadata) > 0 {
		d.Metadata = make(map[string]string, len(spec.Metadata))
		for key, value := range spec.Metadata {
			d.Metadata[key] = string(value)
		}
	}
	return d
}

// toMethods returns false if one of them is unknown.
func toMethods(names []verifyv1.Method) ([]verification.Method, bool) {
	var found []verification.Method
	for _, name := range names {
		method, known := methods[name]
		if !known || name == "" {
			return nil, false
		}
		found = append(found, method)
	}
	return found, true
}

func fromMethods(some []verification.Method) []verifyv1.Method {
	var names []verifyv1.Method
	for _, method := range some {
		names = append(names, nameOf(methods, method))
	}
	return names
}

func fromMetadata(metadata map[string]string) map[string]verifyv1.MetadataValue {
	if len(metadata) == 0 {
		return nil
	}
	values := make(map[string]verifyv1.MetadataValue, len(metadata))
	for key, value := range metadata {
		values[key] = verifyv1.MetadataValue(value)
	}
	return values
}

func readStatus(status *verifyv1.VerificationRequestStatus, r *verification.Request) error {
	var known bool
	if r.Phase, known = phases[status.Phase]; !known {
		return fmt.Errorf("status.phase %q is unknown", status.Phase)
	}
	if status.VerifiedBy != "" {
		if r.VerifiedBy, known = methods[status.VerifiedBy]; !known {
			return fmt.Errorf("status.verifiedBy %q is unknown", status.VerifiedBy)
		}
	}
	if r.Assurance, known = assurances[status.Assurance]; !known {
		return fmt.Errorf("status.assurance %q is unknown", status.Assurance)
	}
	if status.ActualPhoneNumber != "" {
		actual, err := phone.FromE164(status.ActualPhoneNumber)
		if err != nil {
			return errors.New("status.actualPhoneNumber is no number")
		}
		r.Actual = actual
	}
	r.VerifiedAt, r.Redelivered = fromMicroTime(status.VerifiedAt), status.ObservedRedeliver
	if r.Phase == verification.Verified && r.VerifiedAt.IsZero() {
		return errors.New("status.phase is Verified without verifiedAt")
	}
	if status.WrongCodes < 0 {
		return errors.New("status.wrongCodes is negative")
	}
	r.ProvenAt, r.WrongCodes = fromMicroTime(status.ProvenAt), int(status.WrongCodes)
	for _, c := range status.Contacts {
		kind, known := contactKinds[c.Kind]
		if !known {
			return fmt.Errorf("status.contacts: kind %q is unknown", c.Kind)
		}
		r.Contacts = append(r.Contacts, verification.Contact{Binding: c.Binding, BoundAt: fromMicroTime(&c.BoundAt), Kind: kind, Nonce: c.Nonce})
	}
	for _, h := range status.Hints {
		r.Hints = append(r.Hints, verification.Hint{Kind: verification.HintKind(h.Kind), At: fromMicroTime(&h.At)})
	}
	if d := status.Delivery; d != nil {
		if d.Attempts < 0 {
			return errors.New("status.delivery.attempts is negative")
		}
		r.Delivery = verification.Delivery{
			Attempts: int(d.Attempts), NextAttemptAt: fromMicroTime(d.NextAttemptAt), LastAttemptAt: fromMicroTime(d.LastAttemptAt),
			LastStatusCode: int(d.LastStatusCode), LastReason: d.LastReason,
			DeliveredAt: fromMicroTime(d.DeliveredAt), ExhaustedAt: fromMicroTime(d.ExhaustedAt), ExtraFrom: fromMicroTime(d.ExtraFrom),
		}
	}
	return readAttempts(status.EarlierAttempts, r)
}

// toObject returns the object with the state of r, decided at now.
func toObject(o *verifyv1.VerificationRequest, r *verification.Request, now time.Time) (*verifyv1.VerificationRequest, error) {
	if r.Delivery.Attempts > math.MaxInt32 || r.Delivery.LastStatusCode > math.MaxInt32 || r.WrongCodes > math.MaxInt32 {
		return nil, fmt.Errorf("a count is too large: %w", verification.ErrContent)
	}
	o = o.DeepCopy()
	s := &o.Status
	s.Phase, s.Assurance = nameOf(phases, r.Phase), nameOf(assurances, r.Assurance)
	s.VerifiedAt, s.ActualPhoneNumber = toMicroTime(r.VerifiedAt), r.Actual.E164()
	s.ProvenAt, s.WrongCodes = toMicroTime(r.ProvenAt), int32(r.WrongCodes) //nolint:gosec // checked above
	s.VerifiedBy = ""
	if r.VerifiedBy != "" {
		s.VerifiedBy = nameOf(methods, r.VerifiedBy)
	}
	s.Contacts = nil
	for _, c := range r.Contacts {
		contact := verifyv1.Contact{Binding: c.Binding, BoundAt: metav1.NewMicroTime(c.BoundAt), Nonce: c.Nonce}
		if c.Kind != verification.ContactShare {
			contact.Kind = nameOf(contactKinds, c.Kind)
		}
		s.Contacts = append(s.Contacts, contact)
	}
	s.Hints = nil
	for _, h := range r.Hints {
		s.Hints = append(s.Hints, verifyv1.Hint{Kind: verifyv1.HintKind(h.Kind), At: metav1.NewMicroTime(h.At)})
	}
	s.EarlierAttempts = fromAttempts(r)
	s.Delivery, s.ObservedRedeliver = toDelivery(r.Delivery), r.Redelivered
	if r.Phase.Final() {
		s.ExpectedText, s.Link = "", "" // they hold the code
	}
	setConditions(o, r, now)
	return o, nil
}

func toDelivery(d verification.Delivery) *verifyv1.Delivery {
	if d == (verification.Delivery{}) {
		return nil
	}
	return &verifyv1.Delivery{
		Attempts:      int32(d.Attempts), //nolint:gosec // toObject checked it
		NextAttemptAt: toMicroTime(d.NextAttemptAt), LastAttemptAt: toMicroTime(d.LastAttemptAt),
		LastStatusCode: int32(d.LastStatusCode), //nolint:gosec // toObject checked it
		LastReason:     d.LastReason, DeliveredAt: toMicroTime(d.DeliveredAt), ExhaustedAt: toMicroTime(d.ExhaustedAt),
		ExtraFrom: toMicroTime(d.ExtraFrom),
	}
}

// nameOf returns the name of a value. The empty name, by which objects omit a default, is returned only if there is no other.
func nameOf[K ~string, V comparable](m map[K]V, value V) K {
	found := K("")
	for k, v := range m {
		if v == value && k > found {
			found = k
		}
	}
	return found
}

func toMicroTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	kept := metav1.NewMicroTime(t)
	return &kept
}

func fromMicroTime(t *metav1.MicroTime) time.Time {
	if t == nil || t.IsZero() {
		return time.Time{}
	}
	return verification.TruncateTime(t.Time)
}
