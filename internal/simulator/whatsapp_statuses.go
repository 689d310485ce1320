package simulator

import "time"

// outbound is a message of a business that Meta took, as the statuses of it need it.
type outbound struct {
	business *business
	id       string
	// to is what WhatsApp calls the number that the message was sent to, recipient the user id; one of them is empty.
	to, recipient string
	opaque        string
	// category is that of its price.
	category string
}

// newContactAnswer returns what the answer to a send says of its recipient. A number is repeated as it was given.
func (d *outbound) newContactAnswer(given string) map[string]string {
	if d.recipient != "" {
		return map[string]string{"input": d.recipient, "user_id": d.recipient}
	}
	return map[string]string{"input": given, "wa_id": d.to}
}

// postStatus has a status of a message posted (Meta, "Status messages webhook reference", "Business-scoped user IDs"): the user
// id always, the number unless the business knows the user by the id alone, the price before it is read. The lock is held.
func (wa *whatsApp) postStatus(d *outbound, u *user, status string) {
	b, contact := d.business, u.newContact(d.business)
	st := waStatus{
		ID: d.id, Status: status, Timestamp: unixTime(wa.clock.Now()), RecipientID: d.to, RecipientUserID: contact.UserID, Opaque: d.opaque,
	}
	if d.to == "" {
		st.RecipientID = contact.WaID
	} else {
		contact.WaID = d.to
	}
	if status == "sent" {
		contact.Profile.Username = ""
	}
	if status != "read" {
		st.Pricing = &waPricing{Billable: true, Model: "PMP", Type: "regular", Category: d.category}
	}
	v := b.newValue()
	v.Contacts, v.Statuses = []waContact{contact}, []waStatus{st}
	wa.queueWebhook(b, v, nil, 0)
}

// postFailed has it posted, after a time, that a message could not be delivered. What it was not addressed by, is not in it. The lock
// is held.
func (wa *whatsApp) postFailed(d *outbound, failed *waError, after time.Duration) {
	v := d.business.newValue()
	v.Statuses = []waStatus{{
		ID: d.id, Status: "failed", Timestamp: unixTime(wa.clock.Now().Add(after)), RecipientID: d.to, RecipientUserID: d.recipient,
		Opaque: d.opaque, Errors: []waError{*failed},
	}}
	wa.queueWebhook(d.business, v, nil, after)
}

// freeForm is the category of a free-form message in an open window, which is billed since 1 October 2026 (Meta, "Pricing").
const freeForm = "service"

// newWAError returns an error as statuses have it.
func newWAError(code int, title, details string) *waError {
	return &waError{
		Code: code, Title: title, Message: title, Data: waErrorData{details},
		Href: "https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes/",
	}
}
