package settings

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func FuzzReadContent(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "\r\n", "\r", "\n\n", "a", "a\n", "a\r\n", "a\n\n", "a\r\r\n", " a ", "sim_a", "1:a", "\x00", "\xff\n",
		"whsec_", "whsec_!!!", "whsec_" + strings.Repeat("A", 32), "whsec_" + strings.Repeat("A\n", 32),
		"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", apiKey(""), apiKey("\n"), "pp_" + strings.Repeat("0", 49), strings.Repeat("x", maxSecret+3),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r := readContent(content)
		if (r.reason == "") != (len(r.value) > 0 && len(r.value) <= maxSecret) || r.unknown {
			t.Fatalf("readContent(%q) returned %d bytes and reason %q", content, len(r.value), r.reason)
		}
		if rest, ok := bytes.CutPrefix(content, r.value); r.reason == "" && (!ok || !slices.Contains([]string{"", "\n", "\r\n"}, string(rest))) {
			t.Fatalf("readContent(%q) returned %q", content, r.value)
		}
		for k := kindAPIKey; k <= kindAuthority; k++ {
			checkAccept(t, k, r.value)
		}
	})
}

func checkAccept(t *testing.T, k kind, value []byte) {
	t.Helper()
	kept, reason := k.acceptValue(value)
	switch {
	case (reason == "") != (len(kept) > 0):
		t.Fatalf("kind %d: acceptValue(%q) returned %d bytes and reason %q", k, value, len(kept), reason)
	case reason != "":
	case k == kindWebhook || k == kindTestWebhook || k == kindSigning:
		if key, err := WebhookKey(kept); err != nil || len(key) < minWebhookKey {
			t.Fatalf("%q was accepted as a webhook secret: %v", value, err)
		}
	case k == kindPreviousWebhook: // any bytes
	case k == kindAuthority:
		if !bytes.Contains(value, []byte("-----BEGIN CERTIFICATE-----")) {
			t.Fatalf("%q was accepted as a certificate", value)
		}
	case bytes.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' }):
		t.Fatalf("kind %d accepts %q", k, value)
	case k == kindAPIKey:
		found, err := NewKeys(newKey("x", string(value))).Find(string(value), start)
		if err != nil || found.Hash != [32]byte(kept) {
			t.Fatalf("%q was accepted but Keys.Find does not find it: %v", value, err)
		}
	}
}

func FuzzCheckFormat(f *testing.F) {
	for _, seed := range []string{
		"", "pp_", "pp_" + strings.Repeat("0", 49), "pp_" + strings.Repeat("0", 43) + "2CBep1", "pp_\xff", "PP_", apiKey(""),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := CheckFormat([]byte(key))
		if !strings.HasPrefix(key, "pp_") {
			if err != nil {
				t.Fatalf("key %q without our prefix was rejected: %v", key, err)
			}
			return
		}
		if err == nil && len(key) != keyLength {
			t.Fatalf("key %q of wrong length was accepted", key)
		}
		// Exactly one last character is valid.
		if len(key) == keyLength && err == nil {
			other := []byte(key)
			other[keyLength-1] = base62[(strings.IndexByte(base62, other[keyLength-1])+1)%len(base62)]
			if CheckFormat([]byte(string(other))) == nil {
				t.Fatalf("%q and %q are both right", key, other)
			}
		}
	})
}

func FuzzProjectFile(f *testing.F) {
	for _, seed := range []string{
		"", "---", "---\n---\n", "a: b", "- a", "null", "{}", projectYAML, projectYAML + "---\n" + projectYAML,
		projectYAML + "  request: {ttl: 5m}\n", "a: &a [*a]", "&a [*a,*a]", "apiVersion: phoneproof.dev/v1alpha1\nkind: VerificationProject\nspec: null",
		"apiVersion: phoneproof.dev/v1alpha1\nkind: VerificationProject\nmetadata: {name: a, namespace: b}\nspec: {webhook: {}, telegram: {}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		project, err := decodeProject(content)
		if err != nil {
			return
		}
		project.Default()
		if validateChange(project, nil) != nil {
			return
		}
		s := FromProject(project, Secrets{}.applyReadings(listUses(&project.Spec), nil, start))
		if s.WhatsApp == nil && s.Telegram == nil || s.TTL <= 0 || s.Retention <= 0 || strings.Count(s.Project, "/") != 1 {
			t.Fatalf("valid project has wrong settings: %+v", s)
		}
	})
}
