//go:build linux

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkSignatures checks both signatures of a webhook as docs/webhooks.md describes them, with none of the sender's code.
func checkSignatures(secret string, header http.Header, body []byte, now time.Time) error {
	if want := hex.EncodeToString(sign([]byte(secret), body)); !hmac.Equal([]byte(header.Get("X-Webhook-Signature")), []byte(want)) {
		return errors.New("x-webhook-signature is not the HMAC-SHA256 of the body")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("decode secret: %w", err)
	}
	stamp := header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return fmt.Errorf("webhook-timestamp is %q, which is not now", stamp)
	}
	signed := append([]byte(header.Get("Webhook-Id")+"."+stamp+"."), body...)
	want := "v1," + base64.StdEncoding.EncodeToString(sign(key, signed))
	if !slices.Contains(strings.Fields(header.Get("Webhook-Signature")), want) {
		return errors.New("webhook-signature is not the HMAC-SHA256 of webhook-id, webhook-timestamp and the body")
	}
	return nil
}

func sign(key, content []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return mac.Sum(nil)
}
