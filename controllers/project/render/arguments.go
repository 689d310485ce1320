package render

import (
	"slices"
	"strings"
)

// drainDelay is how long a stopping pod still answers, and asks each client to reconnect elsewhere.
const drainDelay = "5s"

// listArguments returns the arguments of serve. What a project may change without a restart is not among them: serve reads it from
// the project.
func (w *workload) listArguments(o Options) []string {
	args := slices.Concat([]string{"serve"}, w.served, []string{"--secrets-dir=" + secretsDir})
	for _, paths := range w.mountedPaths() {
		args = append(args, "--mounted-secrets="+strings.Join(paths, ","))
	}
	args = append(args, "--drain-delay="+drainDelay)
	for _, l := range w.logos {
		if l.dir == logoDir { // that of a member is in its own argument
			args = append(args, "--logo-file="+l.dir+"/"+logoFile)
		}
	}
	for _, flag := range []struct{ name, value string }{
		{"whatsapp-url", o.WhatsAppURL},
		{"telegram-url", o.TelegramURL},
		{"simulator-url", o.SimulatorURL},
		{"log-format", o.LogFormat},
		{"log-level", o.LogLevel},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	for _, rule := range o.WebhookAllow {
		if rule.Namespace == "" || rule.Namespace == w.namespace {
			args = append(args, "--webhook-allow="+rule.String())
		}
	}
	for _, prefix := range o.WebhookDeny {
		args = append(args, "--webhook-deny="+prefix.String())
	}
	return args
}
