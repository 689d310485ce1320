package callback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	messengers "github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// maxBusinessAccounts is how many business accounts of an access token are asked for the project's number.
const maxBusinessAccounts = 8

// businessAccount is a WhatsApp Business account, and the app that must be subscribed to it.
type businessAccount struct {
	id    string // empty if it was not found
	appID string // empty if Meta does not tell it
	// mismatch is why it is not the account of the number; empty if it is. Then id is empty.
	mismatch string
	// remedy is the command that subscribes the app.
	remedy string
	// of identifies what both were found by.
	of [sha256.Size]byte
}

// Why an account is another one than the number's, and what to do.
const (
	otherAccountNamed = "spec.whatsapp.businessAccountID is the id of a WhatsApp Business account without the number of " +
		"spec.whatsapp.phoneNumberID, so a subscription there delivers none of its messages; correct one of the two"
	otherAccountsOfToken = "the access token manages WhatsApp Business accounts, but none of them has the number of " +
		"spec.whatsapp.phoneNumberID; use a token for the number's account, and name that account in spec.whatsapp.businessAccountID"
)

// Why a subscription is not checked, and what to do.
const (
	accountNotFound = "the access token names no WhatsApp Business account with this number; set spec.whatsapp.businessAccountID"
	accountRefused  = "the access token may not read it; give its system user the permission whatsapp_business_management for the " +
		"WhatsApp Business account, and check spec.whatsapp.businessAccountID"
	tokenUnreadable   = "the access token cannot be read; see SecretsReady"
	accountUnanswered = "Meta's Graph API does not answer; it is asked again"
)

// readSubscription asks for the apps that are subscribed to the business account. What cannot be read is no failure.
func (m *graph) readSubscription(ctx context.Context, s *settings.Settings) subscription {
	account, err := m.findBusinessAccount(ctx, s.WhatsApp)
	if err != nil {
		return m.explainUnchecked(err)
	}
	switch {
	case account.mismatch != "":
		return subscription{mismatch: account.mismatch}
	case account.id == "":
		return subscription{unchecked: accountNotFound}
	}
	apps, err := m.client.SubscribedApps(ctx, s.WhatsApp, account.id)
	if err != nil {
		return m.explainUnchecked(err)
	}
	return subscription{missing: !includesApp(apps, account.appID), remedy: account.remedy}
}

// includesApp reports whether an app is among others. An unknown app is taken for any, and one that has no id for ours.
func includesApp(apps []string, appID string) bool {
	return appID == "" && len(apps) > 0 || slices.Contains(apps, appID) || slices.Contains(apps, "")
}

// explainUnchecked describes an error of the calls for a subscription.
func (m *graph) explainUnchecked(err error) subscription {
	failure, ok := errors.AsType[*whatsapp.Error](err)
	switch {
	case errors.Is(err, messengers.ErrNoSimulator):
		return subscription{unchecked: noSimulator}
	case ok && !failure.Temporary():
		return subscription{unchecked: accountRefused}
	default:
		return subscription{unchecked: accountUnanswered, unanswered: true, wait: m.requestedWait(err)}
	}
}

// findBusinessAccount returns the business account of the number. An account that has the number is asked for once, as long as
// neither spec nor token change; a mismatch is asked for again, because it may be corrected at Meta.
func (m *graph) findBusinessAccount(ctx context.Context, a *settings.WhatsApp) (businessAccount, error) {
	of := sha256.Sum256([]byte(a.PhoneNumberID + "/" + a.BusinessAccountID + "/" + string(a.AccessToken.Current())))
	if m.known.id != "" && m.known.of == of {
		return m.known, nil
	}
	var found businessAccount
	token, err := m.client.InspectToken(ctx, a)
	switch {
	case err == nil:
		found.appID, found.of = token.AppID, of
	case a.BusinessAccountID == "" || isTemporary(err):
		return businessAccount{}, fmt.Errorf("find business account: %w", err)
	}
	if a.BusinessAccountID != "" {
		found.id, found.mismatch, err = m.checkNamedAccount(ctx, a)
	} else {
		found.id, found.mismatch, err = m.pickBusinessAccount(ctx, a, token.BusinessAccounts)
	}
	if err != nil {
		return businessAccount{}, fmt.Errorf("find business account: %w", err)
	}
	found.remedy = m.client.SubscribeCommand(a, found.id)
	m.known = found
	return found, nil
}

// checkNamedAccount returns the business account of the spec if it has the number, and else why not.
func (m *graph) checkNamedAccount(ctx context.Context, a *settings.WhatsApp) (id, mismatch string, err error) {
	owns, err := m.client.OwnsNumber(ctx, a, a.BusinessAccountID)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("read numbers: %w", err)
	case !owns:
		return "", otherAccountNamed, nil
	default:
		return a.BusinessAccountID, "", nil
	}
}

// pickBusinessAccount returns the one of the token's business accounts that has the number. If all were read and none has it, it
// returns why; if some were not read, it returns neither.
func (m *graph) pickBusinessAccount(ctx context.Context, a *settings.WhatsApp, ids []string) (id, mismatch string, err error) {
	readAll := len(ids) > 0 && len(ids) <= maxBusinessAccounts
	var refused error
	for _, id := range ids[:min(len(ids), maxBusinessAccounts)] {
		owns, err := m.client.OwnsNumber(ctx, a, id)
		switch {
		case err != nil && isTemporary(err):
			return "", "", fmt.Errorf("read numbers: %w", err)
		case err != nil:
			readAll, refused = false, err
		case owns:
			return id, "", nil
		}
	}
	switch {
	case readAll:
		return "", otherAccountsOfToken, nil
	case len(ids) == 1:
		return "", "", fmt.Errorf("read numbers: %w", refused)
	default:
		return "", "", nil
	}
}

// isTemporary reports whether the same call may succeed later without any change.
func isTemporary(err error) bool {
	failure, ok := errors.AsType[*whatsapp.Error](err)
	return ok && failure.Temporary()
}

func (m *graph) subscribeApp(ctx context.Context, s *settings.Settings) error {
	return m.client.SubscribeApp(ctx, s.WhatsApp, m.known.id)
}

// subscriptionRemedy returns the command that subscribes the app to the account that was found last.
func (m *graph) subscriptionRemedy() string { return m.known.remedy }
