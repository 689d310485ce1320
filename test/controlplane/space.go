package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// FillUp raises etcd's NOSPACE alarm, as etcd itself does when its quota is used up: etcd then refuses every write until free
// clears the alarm, as an administrator does after making room.
func (c *ControlPlane) FillUp(ctx context.Context) (free func(context.Context) error, err error) {
	var status struct {
		Header struct {
			MemberID string `json:"member_id"` //nolint:tagliatelle // etcd's
		} `json:"header"`
	}
	if err := c.callEtcd(ctx, "status", map[string]string{}, &status); err != nil {
		return nil, err
	}
	alarm := func(ctx context.Context, action string) error {
		return c.callEtcd(ctx, "alarm", map[string]string{
			"action": action, "memberID": status.Header.MemberID, "alarm": "NOSPACE",
		}, nil)
	}
	return func(ctx context.Context) error { return alarm(ctx, "DEACTIVATE") }, alarm(ctx, "ACTIVATE")
}

// callEtcd calls etcd's maintenance service.
func (c *ControlPlane) callEtcd(ctx context.Context, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("call etcd %s: %w", method, err)
	}
	address := c.env.ControlPlane.Etcd.URL.JoinPath("v3", "maintenance", method)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call etcd %s: %w", method, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("call etcd %s: %w", method, err)
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("call etcd %s: %w", method, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("call etcd %s: %s: %s", method, response.Status, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("call etcd %s: %w", method, err)
	}
	return nil
}
