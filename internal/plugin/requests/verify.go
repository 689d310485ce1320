package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// When the QR code is drawn.
const (
	qrAuto   = "auto"
	qrAlways = "always"
	qrNever  = "never"
)

// starting holds the flags of verify.
type starting struct {
	env       *plugin.Env
	key       keyFlags
	method    string
	reference string
	subject   string
	qr        string
	wait      bool
	timeout   time.Duration
}

// started is a verification that waits for its user.
type started struct {
	id, link, text string
	// await returns the final status, a hint while it is pending, or an error.
	await func(context.Context) (status, hint string, err error)
}

// NewVerifyCommand returns the command verify.
func NewVerifyCommand(env *plugin.Env) *cobra.Command {
	c := &starting{env: env, key: keyFlags{Scope: verifyv1.ScopeInit}}
	cmd := &cobra.Command{
		Use:   "verify NAME PHONE",
		Short: "Start a verification, and show its link and a QR code",
		Long: `Start the verification of a phone number, and show the link that its user opens, with a QR code on a terminal. With --wait
follow it to its end: the exit code is 0 if the number was verified.

With storage Kubernetes it creates a manual VerificationRequest with your own rights. With storage PostgreSQL, or with --api-key or
--api-key-file, it calls init at a pod, through a port-forward, with a key that has the scope Init (and Status for --wait).

The link holds the code of the request: show it to the owner of the number alone.`,
		Example: `  # your own phone, as a test from end to end
  kubectl phoneproof verify shop +4915112345678 --wait

  # a project on PostgreSQL, by Telegram
  kubectl phoneproof verify shop +4915112345678 --method telegram --api-key backend`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1]) },
	}
	c.key.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.method, "method", "", "messenger: whatsapp or telegram; by default the one that the project has, or whatsapp")
	flags.StringVar(&c.reference, "reference", "", "your own name for the request")
	flags.StringVar(&c.subject, "subject", "", "whom the limit per subject counts for; only through the API")
	flags.StringVar(&c.qr, "qr", qrAuto, "draw a QR code: auto (on a terminal), always or never")
	flags.BoolVar(&c.wait, "wait", false, "wait for the end of the verification")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait until a server has taken the request up")
	return plugin.DeclareRights(cmd, append([]plugin.Right{
		{Verbs: "get", Resource: plugin.ResourceProjects},
		{Verbs: "create,get", Resource: plugin.ResourceRequests, For: "with storage Kubernetes"},
	}, plugin.RightsForAPI("with storage PostgreSQL or a key")...)...)
}

func (c *starting) run(ctx context.Context, name, number string) error {
	if !slices.Contains([]string{qrAuto, qrAlways, qrNever}, c.qr) {
		return fmt.Errorf("--qr %q is unknown: use auto, always or never", c.qr)
	}
	parsed, err := phone.Parse(number)
	if err != nil {
		return fmt.Errorf("read phone number: %w", err)
	}
	opened, err := plugin.Open(ctx, c.env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	method, err := chooseMethod(opened.Project, c.method)
	if err != nil {
		return err
	}
	start := c.startManual
	if !opened.UsesObjects() || c.key.Named() {
		start = c.startByAPI
	}
	verification, err := start(ctx, opened, parsed, method)
	if err != nil {
		return err
	}
	if err := c.show(&verification); err != nil {
		return err
	}
	if !c.wait {
		return nil
	}
	return c.follow(ctx, &verification)
}

// chooseMethod returns the messenger of the flag, or the one of the project.
func chooseMethod(p *verifyv1.VerificationProject, wanted string) (verifyv1.Method, error) {
	switch {
	case strings.EqualFold(wanted, string(verifyv1.MethodWhatsApp)):
		return verifyv1.MethodWhatsApp, nil
	case strings.EqualFold(wanted, string(verifyv1.MethodTelegram)):
		return verifyv1.MethodTelegram, nil
	case wanted != "":
		return "", fmt.Errorf("--method %q is unknown: use whatsapp or telegram", wanted)
	case p.Spec.WhatsApp == nil && p.Spec.Telegram != nil:
		return verifyv1.MethodTelegram, nil
	default:
		return verifyv1.MethodWhatsApp, nil
	}
}

func (c *starting) show(v *started) error {
	out := c.env.Streams.Out
	if err := c.env.Print("request %s\n\n%s\n", v.id, plugin.Clean(v.link)); err != nil {
		return err
	}
	terminal := printers.IsTerminal(out)
	if c.qr == qrAlways || c.qr == qrAuto && terminal {
		if err := drawQR(out, v.link, terminal); err != nil {
			return err
		}
	}
	return c.env.Print("Open the link with the phone of the number, and send the text that it shows:\n%s", plugin.Clean(v.text))
}

// errNotVerified makes the exit code of a verification that failed.
var errNotVerified = errors.New("the number was not verified")

// follow prints each change until the verification ends.
func (c *starting) follow(ctx context.Context, v *started) error {
	shown := ""
	for {
		status, hint, err := v.await(ctx)
		if err != nil {
			return err
		}
		if line := strings.TrimSpace(status + " " + hint); line != shown {
			shown = line
			if err := c.env.Print("%s", line); err != nil {
				return err
			}
		}
		switch status {
		case statusVerified:
			return nil
		case statusExpired:
			return errNotVerified
		}
	}
}

// startByAPI calls init at a pod.
func (c *starting) startByAPI(ctx context.Context, p *plugin.Client, number phone.Number, method verifyv1.Method) (started, error) {
	api, err := connectAPI(ctx, c.env, p, &c.key)
	if err != nil {
		return started{}, fmt.Errorf("start verification: %w", err)
	}
	invitation, err := api.Init(ctx, Init{
		PhoneNumber: number.E164(), Method: strings.ToUpper(string(method)), Reference: c.reference, Subject: c.subject,
	})
	if err != nil {
		return started{}, fmt.Errorf("start verification: %w", err)
	}
	return started{
		id: invitation.RequestID, link: invitation.Link(), text: invitation.ExpectedText,
		await: func(ctx context.Context) (string, string, error) {
			status, err := api.Await(ctx, invitation.RequestID)
			if err != nil {
				return "", "", fmt.Errorf("await verification: %w", err)
			}
			return status.Status, status.Hint, nil
		},
	}, nil
}
