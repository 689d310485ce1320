package kubernetes

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// formed is a store whose free words (bindings, body hashes, reasons) may be any text, as the suite's are: objects
// hold them in the form that the schema demands and that the service gives them.
type formed struct{ *Store }

func (f formed) Create(ctx context.Context, n verification.New, l verification.Limits) (verification.Created, error) {
	n.BodyHash, n.Subject = form(n.BodyHash, 64), form(n.Subject, 24)
	created, err := f.Store.Create(ctx, n, l)
	created.Request = free(created.Request)
	return created, err
}

func (f formed) Read(ctx context.Context, id string) (verification.Request, error) {
	r, err := f.Store.Read(ctx, id)
	return free(r), err
}

func (f formed) ReadFinal(ctx context.Context, id string) (verification.Request, error) {
	r, err := f.Store.ReadFinal(ctx, id)
	return free(r), err
}

func (f formed) ReadCached(ctx context.Context, id string) (verification.Request, error) {
	r, err := f.Store.ReadCached(ctx, id)
	return free(r), err
}

func (f formed) List(ctx context.Context, q verification.ListQuery) (verification.ListPage, error) {
	page, err := f.Store.List(ctx, q)
	for i, r := range page.Requests {
		page.Requests[i] = free(r)
	}
	return page, err
}

func (f formed) Awaiting(ctx context.Context, binding string) (verification.Request, error) {
	r, err := f.Store.Awaiting(ctx, form(binding, 32))
	return free(r), err
}

func (f formed) Update(
	ctx context.Context, id string, mutate func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	r, err := f.Store.Update(ctx, id, func(r *verification.Request, now time.Time) error {
		*r = free(*r)
		err := mutate(r, now)
		*r = bound(*r)
		return err
	})
	return free(r), err
}

func bound(r verification.Request) verification.Request {
	r.BodyHash = form(r.BodyHash, 64)
	if r.Delivery.LastReason != "" {
		r.Delivery.LastReason = "r" + form(r.Delivery.LastReason, 0)
	}
	r.EarlierAttempts = slices.Clone(r.EarlierAttempts)
	for i, a := range r.EarlierAttempts {
		if a.Reason != "" {
			r.EarlierAttempts[i].Reason = "r" + form(a.Reason, 0)
		}
	}
	r.Contacts = slices.Clone(r.Contacts)
	for i := range r.Contacts {
		r.Contacts[i].Binding = form(r.Contacts[i].Binding, 32)
	}
	return r
}

func free(r verification.Request) verification.Request {
	r.BodyHash = text(r.BodyHash)
	r.Delivery.LastReason = text(strings.TrimPrefix(r.Delivery.LastReason, "r"))
	r.EarlierAttempts = slices.Clone(r.EarlierAttempts)
	for i, a := range r.EarlierAttempts {
		r.EarlierAttempts[i].Reason = text(strings.TrimPrefix(a.Reason, "r"))
	}
	r.Contacts = slices.Clone(r.Contacts)
	for i := range r.Contacts {
		r.Contacts[i].Binding = text(r.Contacts[i].Binding)
	}
	return r
}

// form is a word in hexadecimal, with zeros before it.
func form(word string, least int) string {
	if word == "" {
		return ""
	}
	digits := hex.EncodeToString([]byte(word))
	return strings.Repeat("0", max(0, least-len(digits))) + digits
}

func text(digits string) string {
	word, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return strings.TrimLeft(string(word), "\x00")
}
