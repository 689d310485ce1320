package render

import (
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// drainDelay is how long a stopping pod still answers, and asks each client to reconnect elsewhere.
const drainDelay = "5s"

// listArguments returns the arguments of serve. What the project may change without a restart is not among them: serve reads it
// from the project.
func listArguments(p *verifyv1.VerificationProject, o Options) []string {
	args := []string{
		"serve",
		"--project=" + p.Namespace + "/" + p.Name,
		"--store=" + storageName(p),
		"--secrets-dir=" + secretsDir,
		"--mounted-secrets=" + strings.Join(mountedPaths(p), ","),
		"--drain-delay=" + drainDelay,
	}
	if logoRef(p) != nil {
		args = append(args, "--logo-file="+logoDir+"/"+logoFile)
	}
	for _, flag := range []struct{ name, value string }{
		{"whatsapp-url", o.WhatsAppURL},
		{"telegram-url", o.TelegramURL},
		{"telegram-gateway-url", o.GatewayURL},
		{"simulator-url", o.SimulatorURL},
		{"log-format", o.LogFormat},
		{"log-level", o.LogLevel},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	for _, rule := range o.WebhookAllow {
		if rule.Namespace == "" || rule.Namespace == p.Namespace {
			args = append(args, "--webhook-allow="+rule.String())
		}
	}
	for _, prefix := range o.WebhookDeny {
		args = append(args, "--webhook-deny="+prefix.String())
	}
	return args
}
