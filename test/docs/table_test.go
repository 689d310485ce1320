package docs

import "testing"

// check checks a block of a page for its reader.
type check func(t *testing.T, r *reader, b block)

// rule assigns a check to the block with a language and a beginning.
type rule struct {
	language, begins string
	check            check
}

// rules lists the blocks that are checked, by page: what readers begin with, what proves something to them, and what a secret, a right or a
// number depends on.
var rules = map[string][]rule{
	"README.md": {
		{"sh", "make demo", makeTargets},
		{"sh", "make build image", checkInstall},
		{"sh", "kubectl create secret generic shop", kubectlBlock("TOKEN_FROM_BOTFATHER", "1:token")},
		{"sh", "kubectl port-forward service/phoneproof-shop", initBlock("", "shop")},
		{"json", `{"requestId"`, answerInShape},
		{"sh", `curl -sS "http://localhost:8080/api/verify/status`, statusBlock},
		{"json", `{"status"`, answerInShape},
	},
	"docs/quickstart.md": {
		{"sh", "kubectl create namespace quickstart", kubectlBlock("TOKEN", "1:token")},
		{"sh", "kubectl -n quickstart apply", kubectlBlock("YOUR_BOT", "hello_world_bot")},
		{"sh", "kubectl -n quickstart port-forward", initBlock("quickstart", "hello")},
		{"sh", `curl -sS "http://localhost:8080/api/verify/status`, statusBlock},
	},
	"docs/session.md": {
		{"yaml", "spec:", projectFragment("")},
		{"js", "async 'POST /start'", inExample(sessionFolder + "node/site.mjs")},
		{"sh", "phoneproof dev", sessionCommands},
	},
	"docs/channels.md": {
		{"text", "Ada's Books asks", sessionMessage},
		{"sh", "# the hex HMAC-SHA256", verifyTokenBlock},
		{"yaml", "spec:\n  texts:", projectFragment("")},
		{"yaml", "spec:\n  apiKeys:", projectFragment("")},
	},
	"docs/webhooks.md": {
		{"js", "// receive checks", inExample(receiverFolder + "node/receiver.mjs")},
		{"js", "import { Webhook }", nodeBlock("event.event === 'verification.success'", "standardwebhooks", "svix")},
		{"sh", "openssl dgst", opensslBlock},
	},
	operationsPage: {
		{"yaml", encryptionBegins, encryptsRequests},
		{"yaml", auditBegins, auditsRequests},
	},
	"docs/page.md":     {{"yaml", "spec:", projectFragment("")}},
	"docs/testing.md":  {{"yaml", "spec:", projectFragment("")}},
	"docs/requests.md": {{"yaml", "spec:", projectFragment("")}},
	"docs/postgresql.md": {
		{"yaml", "spec:", projectFragment("")},
		{"yaml", "apiVersion: networking.k8s.io/v1", manifestBlock},
		{"yaml", "postgresql:", projectFragment("spec:\n  storage:\n    type: PostgreSQL\n")},
	},
	"docs/spec/verificationproject.md": {
		{"yaml", "apiVersion: v1", manifestBlock},
		{"yaml", "spec:", projectFragment("")},
	},
	"docs/identity/authentik.md":       {{"yaml", "spec:", projectFragment("")}},
	"docs/identity/kratos.md":          {{"yaml", "spec:", projectFragment("")}},
	"docs/identity/supabase.md":        {{"yaml", "spec:", projectFragment("")}},
	"docs/identity/zitadel.md":         {{"yaml", "spec:", projectFragment("")}},
	"docs/spec/verificationrequest.md": {{"yaml", "apiVersion: phoneproof.dev/v1alpha1", manifestBlock}},
}
