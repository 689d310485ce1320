package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// managementScope is the permission to read business accounts, and to subscribe apps to them.
const managementScope = "whatsapp_business_management"

// Token is what Meta reports about an access token.
type Token struct {
	// AppID is the id of the app that it was made for.
	AppID string
	// BusinessAccounts are the ids of the WhatsApp Business accounts that it may manage; empty if it may manage none, or all.
	BusinessAccounts []string
}

// InspectToken reads what the account's access token is for (Graph API, "Debug-Token").
func (c *Client) InspectToken(ctx context.Context, account *settings.WhatsApp) (Token, error) {
	var answer struct {
		Data struct {
			AppID  string `json:"app_id"`
			Scopes []struct {
				Scope     string   `json:"scope"`
				TargetIDs []string `json:"target_ids"`
			} `json:"granular_scopes"`
		} `json:"data"`
	}
	query := url.Values{"input_token": {string(account.AccessToken.Current())}}
	err := c.callGraph(ctx, account, call{operation: readToken, method: http.MethodGet, node: "debug_token", query: query}, &answer)
	if err != nil {
		return Token{}, fmt.Errorf("inspect access token: %w", err)
	}
	token := Token{AppID: answer.Data.AppID}
	for _, scope := range answer.Data.Scopes {
		if scope.Scope == managementScope {
			token.BusinessAccounts = append(token.BusinessAccounts, scope.TargetIDs...)
		}
	}
	return token, nil
}

// maxNumberPages bounds the pages of a business account's numbers that are read, a hundred each. Meta allows far fewer numbers.
const maxNumberPages = 10

// OwnsNumber reports whether the account's number is one of a business account.
func (c *Client) OwnsNumber(ctx context.Context, account *settings.WhatsApp, businessAccountID string) (bool, error) {
	query := url.Values{"fields": {"id"}, "limit": {"100"}}
	for range maxNumberPages {
		var page numbersPage
		k := call{operation: readNumbers, method: http.MethodGet, path: "/phone_numbers", query: query}
		if err := c.callBusinessAccount(ctx, account, businessAccountID, k, &page); err != nil {
			return false, fmt.Errorf("read numbers of business account: %w", err)
		}
		for _, number := range page.Data {
			if number.ID == account.PhoneNumberID {
				return true, nil
			}
		}
		if !page.Paging.hasMore() {
			return false, nil
		}
		query.Set("after", page.Paging.Cursors.After)
	}
	return false, errTooManyNumbers
}

// errTooManyNumbers is returned for a business account whose numbers are more than are read.
var errTooManyNumbers = errors.New("business account has too many numbers")

// numbersPage is a page of a business account's numbers (Graph API, "Paginated Results").
type numbersPage struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	Paging paging `json:"paging"`
}

// paging leads from one page to the next.
type paging struct {
	Cursors struct {
		After string `json:"after"`
	} `json:"cursors"`
	Next string `json:"next"`
}

func (p paging) hasMore() bool { return p.Next != "" && p.Cursors.After != "" }

// SubscribedApps reads the ids of the apps that get the webhooks of a business account (WhatsApp Business Management API,
// "Subscribe to a WhatsApp Business Account"). An app without an id is an empty one.
func (c *Client) SubscribedApps(ctx context.Context, account *settings.WhatsApp, businessAccountID string) ([]string, error) {
	var answer struct {
		Data []struct {
			App struct {
				ID string `json:"id"`
			} `json:"whatsapp_business_api_data"`
		} `json:"data"`
	}
	k := call{operation: readSubscription, method: http.MethodGet, path: subscribedApps}
	if err := c.callBusinessAccount(ctx, account, businessAccountID, k, &answer); err != nil {
		return nil, fmt.Errorf("read subscribed apps: %w", err)
	}
	apps := make([]string, len(answer.Data))
	for i, app := range answer.Data {
		apps[i] = app.App.ID
	}
	return apps, nil
}

// SubscribeApp subscribes the app of the access token to a business account.
func (c *Client) SubscribeApp(ctx context.Context, account *settings.WhatsApp, businessAccountID string) error {
	k := call{operation: subscribeApp, method: http.MethodPost, path: subscribedApps}
	if err := c.callBusinessAccount(ctx, account, businessAccountID, k, &confirmation{}); err != nil {
		return fmt.Errorf("subscribe app: %w", err)
	}
	return nil
}

const subscribedApps = "/subscribed_apps"

// SubscribeCommand returns the command by which a user subscribes the app, with a placeholder for the access token.
func (c *Client) SubscribeCommand(account *settings.WhatsApp, businessAccountID string) string {
	base, err := c.platform.BaseURL(account.AccessToken.Current(), account.Simulated)
	if err != nil {
		base = DefaultGraphURL
	}
	return "curl -X POST -H 'Authorization: Bearer ACCESS_TOKEN' " + base + "/" + GraphVersion + "/" + businessAccountID + subscribedApps
}

// callBusinessAccount makes a call below a business account. An empty id would be the account's number.
func (c *Client) callBusinessAccount(ctx context.Context, account *settings.WhatsApp, id string, k call, into any) error {
	if id == "" {
		return errors.New("id of the business account is missing")
	}
	k.node = id
	return c.callGraph(ctx, account, k, into)
}
