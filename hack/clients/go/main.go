// Calls a running `phoneproof dev` with the client that oapi-codegen generates, and prints PASS or FAIL for each check.
// It is run by hack/verify-clients.sh, which generates the client first. hack/clients/npm/checks.ts does the same.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"time"

	"github.com/phoneproof/phoneproof/hack/clients/go/phoneproof"
)

// phone is the number of a user whom the simulator knows from the start.
const phone = "+4915112345678"

var (
	whatsApp = phoneproof.InitRequest{PhoneNumber: phone, Subject: new("user-1")}
	telegram = phoneproof.InitRequest{PhoneNumber: phone, Subject: new("user-1"), Method: new(phoneproof.TELEGRAM)}
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := newClient(os.Getenv("API_KEY"))
	if err == nil {
		err = runChecks(ctx, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newClient returns a generated client that presents an API key.
func newClient(key string) (*phoneproof.ClientWithResponses, error) {
	return phoneproof.NewClientWithResponses(os.Getenv("API_URL"), phoneproof.WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
}

func runChecks(ctx context.Context, c *phoneproof.ClientWithResponses) error {
	stranger, err := newClient("a-key-that-no-project-has-0123456789")
	if err != nil {
		return err
	}
	check := func(name string, run func() error) {
		if err := run(); err != nil {
			fmt.Printf("FAIL oapi-codegen: %s: %v\n", name, err)
			return
		}
		fmt.Printf("PASS oapi-codegen: %s\n", name)
	}
	check("init without method, PENDING, send, VERIFIED", func() error { return verify(ctx, c, whatsApp) })
	check("init with TELEGRAM, PENDING, send and share, VERIFIED", func() error { return verify(ctx, c, telegram) })
	check("reference and metadata come back", func() error { return checkOwnData(ctx, c) })
	check("headers of an answer", func() error { return checkHeaders(ctx, c) })
	check("400 with code and field", func() error {
		a, err := c.InitVerificationWithResponse(ctx, nil, phoneproof.InitRequest{PhoneNumber: "+49", Subject: new("user-1")})
		if err != nil {
			return err
		}
		return expectError(a.JSON400, "invalid_phone_number", "phoneNumber")
	})
	check("401 with code", func() error {
		a, err := stranger.InitVerificationWithResponse(ctx, nil, whatsApp)
		if err != nil {
			return err
		}
		return expectError(a.JSON401, "unknown_api_key", "")
	})
	check("404 with code", func() error {
		a, err := c.GetVerificationStatusWithResponse(ctx, &phoneproof.GetVerificationStatusParams{Id: "unknown"})
		if err != nil {
			return err
		}
		return expectError(a.JSON404, "request_not_found", "")
	})
	return nil
}

// verify starts a verification, acts as its user, and waits until it is VERIFIED.
func verify(ctx context.Context, c *phoneproof.ClientWithResponses, body phoneproof.InitRequest) error {
	started, err := c.InitVerificationWithResponse(ctx, nil, body)
	if err != nil {
		return err
	}
	if started.JSON200 == nil {
		return fmt.Errorf("init answered %s %s", started.Status(), started.Body)
	}
	link := started.JSON200.WaLink
	if body.Method != nil {
		link = started.JSON200.TgLink
	}
	if link == nil {
		return fmt.Errorf("no link of the method in %s", started.Body)
	}
	query := &phoneproof.GetVerificationStatusParams{Id: started.JSON200.RequestId}
	if err := expectStatus(ctx, c, query, phoneproof.PENDING); err != nil {
		return err
	}
	if err := simulate(ctx, "send", map[string]string{"link": *link}); err != nil {
		return err
	}
	if body.Method != nil {
		if err := simulate(ctx, "share-contact", map[string]string{"wait": "20s"}); err != nil {
			return err
		}
	}
	query.Wait = new("20s")
	return expectStatus(ctx, c, query, phoneproof.VERIFIED)
}

func expectStatus(ctx context.Context, c *phoneproof.ClientWithResponses, query *phoneproof.GetVerificationStatusParams,
	want phoneproof.Status,
) error {
	a, err := c.GetVerificationStatusWithResponse(ctx, query)
	if err != nil {
		return err
	}
	if a.JSON200 == nil || a.JSON200.Status != want || a.JSON200.PhoneNumber != phone {
		return fmt.Errorf("status answered %s %s, want %s", a.Status(), a.Body, want)
	}
	return nil
}

// checkOwnData sends data of the client's own, and a number as users paste it.
func checkOwnData(ctx context.Context, c *phoneproof.ClientWithResponses) error {
	metadata := map[string]string{"cart": "3", "campaign": "spring"}
	started, err := c.InitVerificationWithResponse(ctx, nil, phoneproof.InitRequest{
		PhoneNumber: "\u202a+49\u00a0151\u201112345678\u202c", Subject: new("user-1"),
		Reference: new("order-7"), Metadata: &metadata, Locale: new("es"),
	})
	if err != nil {
		return err
	}
	if started.JSON200 == nil {
		return fmt.Errorf("init answered %s %s", started.Status(), started.Body)
	}
	a, err := c.GetVerificationStatusWithResponse(ctx, &phoneproof.GetVerificationStatusParams{Id: started.JSON200.RequestId})
	if err != nil {
		return err
	}
	got := a.JSON200
	if got == nil || got.PhoneNumber != phone || got.Reference == nil || *got.Reference != "order-7" ||
		got.Metadata == nil || !maps.Equal(*got.Metadata, metadata) {
		return fmt.Errorf("status answered %s %s", a.Status(), a.Body)
	}
	return nil
}

func checkHeaders(ctx context.Context, c *phoneproof.ClientWithResponses) error {
	a, err := c.InitVerificationWithResponse(ctx, &phoneproof.InitVerificationParams{XRequestId: new("check-1")}, whatsApp)
	if err != nil {
		return err
	}
	h := a.Headers200
	if h == nil || h.XRequestId != "check-1" || h.PhoneProofSimulated == nil || h.RateLimit == nil || h.RateLimitPolicy == nil {
		return fmt.Errorf("init answered %s with the headers %v", a.Status(), a.HTTPResponse.Header)
	}
	return nil
}

func expectError(e *phoneproof.Error, code, field string) error {
	if e == nil {
		return fmt.Errorf("not answered with %s", code)
	}
	got := ""
	if e.Error.Field != nil {
		got = *e.Error.Field
	}
	if e.Error.Code != code || got != field {
		return fmt.Errorf("code %q and field %q, want %q and %q", e.Error.Code, got, code, field)
	}
	return nil
}

// simulate has the simulated user do something.
func simulate(ctx context.Context, action string, body map[string]string) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("SIMULATOR_URL")+"/sim/users/"+phone+"/"+action, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if a.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("the simulator answered %s to %s", a.Status, action)
	}
	return errors.Join(err, a.Body.Close())
}
