package docs

import "testing"

// check checks a block of a page for its reader.
type check func(t *testing.T, r *reader, b block)

// rule assigns a check to the block with a language and a beginning.
type rule struct {
	page, language, begins string
	check                  check
}

// rules lists every block of the pages.
var rules = []rule{
	{"README.md", "sh", "make demo", makeTargets},
	{"README.md", "sh", "make build image", checkInstall},
	{"README.md", "sh", "kubectl create secret generic shop", kubectlBlock("TOKEN_FROM_BOTFATHER", "1:token")},
	{"README.md", "sh", "kubectl port-forward service/phoneproof-shop", initBlock("", "shop")},
	{"README.md", "json", `{"requestId"`, answerInShape},
	{"README.md", "sh", `curl -sS "http://localhost:8080/api/verify/status`, statusBlock},
	{"README.md", "json", `{"status"`, answerInShape},
	{"README.md", "js", "async function receive", inExample(receiverFolder + "node/receiver.mjs")},

	{"CONTRIBUTING.md", "sh", "make  ", makeTargets},
	{"CONTRIBUTING.md", "sh", "make release", makeTargets},

	{"docs/adversary.md", "sh", "make adversary", makeTargets},

	{"docs/architecture.md", "mermaid", "sequenceDiagram", notRun("a picture")},
	{"docs/architecture.md", "mermaid", "stateDiagram", notRun("a picture")},
	{"docs/architecture.md", "mermaid", "flowchart", notRun("a picture")},

	{"docs/channels.md", "text", "Ada's Books asks", sessionMessage},
	{"docs/channels.md", "sh", "# the hex HMAC-SHA256", verifyTokenBlock},

	{"docs/clients.md", "sh", "go tool oapi-codegen", runByVerifyClients},
	{"docs/clients.md", "sh", "npx openapi-typescript", runByVerifyClients},
	{"docs/clients.md", "sh", "npx openapi-ts", runByVerifyClients},
	{"docs/clients.md", "json", `{"phoneNumber"`, fitsInitRequest},

	{"docs/conditions.md", "sh", "kubectl patch", removesRate},

	{"docs/doctor.md", "text", "VerificationProject shop/books", notRun("internal/plugin/doctor compares it with its output")},

	{"docs/gitops.md", "yaml", "apiVersion: helm.toolkit.fluxcd.io", yamlOnly("the schemas of Flux are no Go module")},
	{"docs/gitops.md", "yaml", "healthCheckExprs:", yamlOnly("a field of the Kustomization above")},
	{"docs/gitops.md", "yaml", "data:\n  resource.customizations", yamlOnly("Lua that Argo CD runs")},
	{"docs/gitops.md", "yaml", "data:\n  resource.exclusions", yamlOnly("a setting of Argo CD")},

	{"docs/install.md", "sh", "sha256sum --check", checksSignature},
	{"docs/install.md", "sh", "skopeo copy", installsRelease},
	{"docs/install.md", "sh", "mkdir image", unpacksImage},
	{"docs/install.md", "sh", "sed 's|ghcr.io", installsFromRegistry},
	{"docs/install.md", "sh", "sed 's|@sha256", installsManifest},

	{"docs/operator.md", "sh", "kubectl apply --server-side -k config/default", installsWithoutHelm},
	{"docs/operator.md", "sh", "cd config/manager && kustomize edit set image", choosesImage},

	{operationsPage, "console", "$ kubectl delete vproj", checkUninstall},
	{operationsPage, "yaml", encryptionBegins, encryptsRequests},
	{operationsPage, "yaml", auditBegins, auditsRequests},

	{"docs/channels.md", "yaml", "spec:", projectFragment("")},
	{"docs/page.md", "yaml", "spec:", projectFragment("")},
	{"docs/testing.md", "yaml", "spec:", projectFragment("")},
	{"docs/postgresql.md", "yaml", "spec:", projectFragment("")},
	{"docs/postgresql.md", "yaml", "apiVersion: networking.k8s.io/v1", manifestBlock("")},
	{"docs/postgresql.md", "yaml", "postgresql:", projectFragment("spec:\n  storage:\n    type: PostgreSQL\n")},
	{"docs/postgresql.md", "sql", "CREATE ROLE shop", separatesRoles},
	{"docs/postgresql.md", "console", "$ kubectl patch vproj shop", movesDatabase},

	{"docs/quickstart.md", "sh", "kubectl create namespace quickstart", kubectlBlock("TOKEN", "1:token")},
	{"docs/quickstart.md", "sh", "kubectl -n quickstart apply", kubectlBlock("YOUR_BOT", "hello_world_bot")},
	{"docs/quickstart.md", "sh", "kubectl -n quickstart port-forward", initBlock("quickstart", "hello")},
	{"docs/quickstart.md", "sh", `curl -sS "http://localhost:8080/api/verify/status`, statusBlock},

	{"docs/reliability.md", "sh", "make chaos", makeTargets},
	{"docs/reliability.md", "sh", "make mutants", makeTargets},

	{"docs/requests.md", "yaml", "spec:", projectFragment("")},
	{"docs/requests.md", "console", `$ curl -H "Authorization: Bearer $KEY" "$URL`, notRun("internal/httpapi tests the call and its answer against the contract")},
	{"docs/requests.md", "console", `$ curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"phoneNumber":"+49..."}' "$URL/api/verify/requests/find"`, notRun("as above")},
	{"docs/requests.md", "console", `$ curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"requestId":"vr..."}' "$URL/api/verify/cancel"`, notRun("as above")},
	{"docs/requests.md", "console", `$ curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"requestId":"vr..."}' "$URL/api/verify/redeliver"`, notRun("as above")},

	{"docs/runbook.md", "sh", "kubectl create secret", replacesKey},

	{"docs/session.md", "", "your website", notRun("a picture")},
	{"docs/session.md", "yaml", "spec:", projectFragment("")},
	{"docs/session.md", "js", "async 'POST /start'", inExample(sessionFolder + "node/site.mjs")},
	{"docs/session.md", "sh", "phoneproof dev", sessionCommands},

	{"docs/simulator.md", "sh", "phoneproof dev", runsDev},
	{"docs/simulator.md", "sh", "curl -sS -X DELETE", bringsFaults},
	{"docs/simulator.md", "sh", "phoneproof simulator", flagsExist},
	{"docs/simulator.md", "sh", "link=$(curl", checkSimulation},

	{"docs/spec/verificationproject.md", "yaml", "apiVersion: v1", manifestBlock("hello.yaml")},
	{"docs/spec/verificationproject.md", "console", "$ kubectl apply -f hello.yaml", consoleBlock},
	{"docs/spec/verificationproject.md", "yaml", "spec:", projectFragment("")},
	{"docs/spec/verificationproject.md", "console", "$ kubectl wait", consoleOfShop},
	{"docs/spec/verificationproject.md", "console", "$ kubectl get vproj shop", consoleOfShop},
	{"docs/spec/verificationproject.md", "console", "$ kubectl patch", consoleOfShop},
	{"docs/spec/verificationproject.md", "console", "$ kubectl annotate", consoleOfShop},

	{"docs/spec/verificationrequest.md", "yaml", "apiVersion: phoneproof.dev/v1alpha1", manifestBlock("request.yaml")},
	{"docs/spec/verificationrequest.md", "console", "$ kubectl apply -f request.yaml\n$ kubectl get", linksRequest},
	{"docs/spec/verificationrequest.md", "console", "$ kubectl apply -f request.yaml\nWarning", warnsOfRequest},
	{"docs/spec/verificationrequest.md", "console", "$ kubectl get vreq  ", consoleBlock},
	{"docs/spec/verificationrequest.md", "mermaid", "stateDiagram", notRun("a picture")},

	{"docs/upgrade.md", "console", "$ helm upgrade", upgradesRelease},

	{"docs/webhooks.md", "json", `{"event":"verification.success"`, eventInShape},
	{"docs/webhooks.md", "json", `{"event":"verification.attention"`, attentionInShape},
	{"docs/webhooks.md", "js", "// isAuthentic", inExample(receiverFolder + "node/receiver.mjs")},
	{"docs/webhooks.md", "js", "import { Webhook }", nodeBlock("event.event === 'verification.success'", "standardwebhooks", "svix")},
	{"docs/webhooks.md", "sh", "openssl dgst", opensslBlock},
}
