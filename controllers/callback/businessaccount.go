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
	// remedy is the command that subscribes the app.
	remedy string
	// of identifies what both were found by.
	of [sha256.Size]byte
}

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
	if account.id == "" {
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

// findBusinessAccount returns the business account of the number. It is asked for once, as long as neither spec nor token change.
func (m *graph) findBusinessAccount(ctx context.Context, a *settings.WhatsApp) (businessAccount, error) {
	of := sha256.Sum256([]byte(a.PhoneNumberID + "/" + a.BusinessAccountID + "/" + string(a.AccessToken.Current())))
	if m.known.id != "" && m.known.of == of {
		return m.known, nil
	}
	found := businessAccount{id: a.BusinessAccountID}
	token, err := m.client.InspectToken(ctx, a)
	switch {
	case err == nil:
		found.appID, found.of = token.AppID, of
	case found.id == "" || isTemporary(err):
		return businessAccount{}, fmt.Errorf("find business account: %w", err)
	}
	if found.id == "" {
		if found.id, err = m.pickBusinessAccount(ctx, a, token.BusinessAccounts); err != nil {
			return businessAccount{}, fmt.Errorf("find business account: %w", err)
		}
	}
	found.remedy = m.client.SubscribeCommand(a, found.id)
	m.known = found
	return found, nil
}

// pickBusinessAccount returns the one of several business accounts that has the number; empty if none has it, as far as they were
// asked.
func (m *graph) pickBusinessAccount(ctx context.Context, a *settings.WhatsApp, ids []string) (string, error) {
	if len(ids) == 1 {
		return ids[0], nil
	}
	for _, id := range ids[:min(len(ids), maxBusinessAccounts)] {
		owns, err := m.client.OwnsNumber(ctx, a, id)
		switch {
		case err != nil && isTemporary(err):
			return "", fmt.Errorf("read numbers: %w", err)
		case owns:
			return id, nil
		}
	}
	return "", nil
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
