package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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
	deliverKinds = map[verifyv1.Deliver]verification.DeliverKind{
		"": verification.DeliverNothing, verifyv1.DeliverCode: verification.DeliverCode, verifyv1.DeliverGiven: verification.DeliverGiven,
	}
	vias       = map[verifyv1.Via]verification.Via{"": verification.ViaMessage, verifyv1.ViaCode: verification.ViaCode}
	codeStates = map[verifyv1.CodeState]verification.CodeState{
		verifyv1.CodeStateSent: verification.CodeSent, verifyv1.CodeStateNotSent: verification.CodeNotSent,
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
	deliver, known := deliverKinds[accepted.Deliver]
	if !known {
		return none, fmt.Errorf("init.deliver %q is unknown", accepted.Deliver)
	}
	r.Terms = verification.Terms{Level: level, Purpose: accepted.Purpose, Browser: accepted.Browser, Deliver: deliver}
	if r.OtherMethods, known = toMethods(accepted.OtherMethods); !known {
		return none, errors.New("init.otherMethods has one that is unknown")
	}
	if r.CreatedAt.IsZero() || !r.ExpiresAt.After(r.CreatedAt) {
		return none, errors.New("init has no valid times")
	}
	err = readStatus(&o.Status, &r)
	if r.IsDelivery() {
		r.Phase = verification.Expired // an object begins as Pending, because no creation writes its status
	}
	return r, err
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
	if r.Via, known = vias[status.Via]; !known {
		return fmt.Errorf("status.via %q is unknown", status.Via)
	}
	if c := status.CodeDelivery; c != nil {
		if r.Code.State, known = codeStates[c.State]; !known {
			return fmt.Errorf("status.codeDelivery.state %q is unknown", c.State)
		}
		r.Code.Reason = c.Reason
	}
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
	s.Via, s.CodeDelivery = nameOf(vias, r.Via), nil
	if r.Code.State != "" {
		s.CodeDelivery = &verifyv1.CodeDelivery{State: nameOf(codeStates, r.Code.State), Reason: r.Code.Reason}
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

// Kind is what an object of the project is to a controller.
type Kind int

const (
	// KindRequest is a request like any other.
	KindRequest Kind = iota
	// KindIncomplete is a manual request that is not completed yet and cannot be verified. See CompleteManual.
	KindIncomplete
	// KindMalformed is an object whose content is no request. It is skipped everywhere; see RejectManual.
	KindMalformed
	// KindGone is an object that was deleted, or is about to be.
	KindGone
)

// MalformedError means that an object's content is no request. Except to controllers the request does not exist, so the error
// matches verification.ErrNotFound. It also matches verification.ErrContent, because a retry does not help.
type MalformedError struct {
	// Name is the object's.
	Name string
	Err  error
}

// Error names the object and what is wrong. It may quote the object's content, so it is only for logs that may hold that;
// conditions have the reason alone.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("object %s is malformed: %v", e.Name, e.Err)
}

// Unwrap makes the error match its cause and verification.ErrNotFound.
func (e *MalformedError) Unwrap() []error { return []error{verification.ErrNotFound, e.Err} }

// Is makes the error match verification.ErrContent.
func (e *MalformedError) Is(target error) bool { return target == verification.ErrContent }

// errIncomplete means that a manual request is not completed yet.
var errIncomplete = errors.New("the request is not completed yet")

// entry is an object as it is held in memory: decoded once, without managedFields, and never changed. Informers key it by the
// embedded metadata.
type entry struct {
	metav1.ObjectMeta

	project string
	kind    Kind
	// object is nil if the content is malformed.
	object *verifyv1.VerificationRequest
	// request is set if kind is KindRequest, or was before the deletion.
	request verification.Request
	// accepted is the condition Accepted, if there is one.
	accepted *metav1.Condition
	err      error
}

// typeMeta is required of objects that are written. Clients of client-go remove it from those that they read.
var typeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationRequestKind}

// newEntry decodes an object, with any content.
func newEntry(o *rawObject) *entry {
	e := &entry{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels,
		Generation:        o.Generation,
		DeletionTimestamp: o.DeletionTimestamp, CreationTimestamp: o.CreationTimestamp, Finalizers: o.Finalizers,
	}}
	typed := &verifyv1.VerificationRequest{TypeMeta: typeMeta, ObjectMeta: *o.DeepCopy()}
	typed.ManagedFields = nil
	var ref struct {
		ProjectRef verifyv1.ProjectRef `json:"projectRef"`
	}
	if json.Unmarshal(o.Spec, &ref) == nil {
		e.project = ref.ProjectRef.Name
	}
	err := errors.Join(unmarshalField("spec", o.Spec, &typed.Spec), unmarshalField("status", o.Status, &typed.Status))
	if err == nil {
		e.request, err = toRequest(typed)
	}
	var seen struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if json.Unmarshal(o.Status, &seen) == nil {
		e.accepted = meta.FindStatusCondition(seen.Conditions, verifyv1.ConditionAccepted)
	}
	switch {
	case errors.Is(err, errIncomplete):
		e.kind, e.object = KindIncomplete, typed
	case err != nil:
		e.kind, e.err = KindMalformed, &MalformedError{Name: o.Name, Err: err}
	default:
		e.object = typed
	}
	if o.DeletionTimestamp != nil {
		e.kind = KindGone
	}
	return e
}

// counted returns the creation as limits count it.
func (e *entry) countedCreation() verification.Counted {
	c := verification.Counted{
		ID: e.Name, KeyName: e.request.KeyName, Phone: e.request.Phone, Test: e.request.Test, Deliver: e.request.Terms.Deliver,
		Method: e.request.Method,
	}
	if accepted := e.object.EffectiveInit(); accepted != nil {
		c.Subject = accepted.SubjectHash
	}
	return c
}

func unmarshalField(field string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", field, err)
	}
	return nil
}

// toRequest returns the request as a copy of the caller's own.
func (e *entry) toRequest() (verification.Request, error) {
	switch e.kind {
	case KindRequest:
		return e.request.Clone(), nil
	case KindMalformed:
		return verification.Request{}, e.err
	default:
		return verification.Request{}, verification.ErrNotFound
	}
}

// requestOf returns the request of the object that a read returned, or the error of the read.
func requestOf(e *entry, err error) (verification.Request, error) {
	if err != nil {
		return verification.Request{}, err
	}
	return e.toRequest()
}

// isTest reports whether the entry is a request of a test key; false for nil.
func (e *entry) isTest() bool { return e != nil && e.request.Test }

// isFinal reports whether the entry is a request that never changes its phase again.
func (e *entry) isFinal() bool { return e.kind == KindRequest && e.request.Phase.Final() }

// isNewer reports whether a is a later version than b. Versions of one resource are ordered (KEP-5504). If an API server breaks
// that contract by versions that are no numbers, none is newer than another.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// keptAttempts is how many attempts an object keeps, the last one in status.delivery included: with the usual reasons it then stays
// below 2 KiB.
const keptAttempts = 4

// fromAttempts names the kind of event only where it is not the present one of the request, which is rare.
func fromAttempts(r *verification.Request) []verifyv1.EarlierAttempt {
	var earlier []verifyv1.EarlierAttempt
	present := r.Event().Kind
	for _, a := range r.EarlierAttempts {
		kept := verifyv1.EarlierAttempt{
			At: metav1.NewMicroTime(a.At), Reason: a.Reason,
			Code: int32(a.StatusCode), //nolint:gosec // it was LastStatusCode once, which toObject checks
		}
		if a.Event != present {
			kept.Event = verifyv1.Event(a.Event)
		}
		earlier = append(earlier, kept)
	}
	return earlier
}

// readAttempts sets the earlier attempts of a request whose other state is read.
func readAttempts(earlier []verifyv1.EarlierAttempt, r *verification.Request) error {
	present := r.Event().Kind
	for _, a := range earlier {
		kept := verification.PastAttempt{At: fromMicroTime(&a.At), Event: present, StatusCode: int(a.Code), Reason: a.Reason}
		if a.Event != "" {
			kept.Event = verification.EventKind(a.Event)
		}
		if kept.At.IsZero() {
			return errors.New("status.earlierAttempts has one without a time")
		}
		r.EarlierAttempts = append(r.EarlierAttempts, kept)
	}
	return nil
}
