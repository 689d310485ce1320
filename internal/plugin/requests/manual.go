package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

const (
	// objectInterval is how often an object is read while something is awaited: the right to watch is not needed then.
	objectInterval = 500 * time.Millisecond
	// maxPrefix leaves room for what the API server appends to a generated name.
	maxPrefix = 200
)

// startManual creates a manual request, and waits until a server has put the link into its status.
func (c *starting) startManual(ctx context.Context, p *plugin.Client, number phone.Number, method verifyv1.Method) (started, error) {
	if c.subject != "" {
		return started{}, errors.New("--subject counts through the API only: name a key with --api-key or --api-key-file, too")
	}
	prefix := p.Project.Name
	object := &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Project.Namespace, GenerateName: prefix[:min(len(prefix), maxPrefix)] + "-"},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: p.Project.Name}, PhoneNumber: number.E164(), Method: method, Reference: c.reference,
		},
	}
	if err := p.Create(ctx, object); err != nil {
		return started{}, fmt.Errorf("create VerificationRequest: %w", err)
	}
	key := client.ObjectKeyFromObject(object)
	err := wait.PollUntilContextTimeout(ctx, objectInterval, c.timeout, true, func(ctx context.Context) (bool, error) {
		if err := p.Get(ctx, key, object); err != nil {
			return false, fmt.Errorf("read VerificationRequest: %w", err)
		}
		if refused := meta.FindStatusCondition(object.Status.Conditions, verifyv1.ConditionAccepted); refused != nil &&
			refused.Status == metav1.ConditionFalse {
			return false, fmt.Errorf("request %s was refused: %s: %s", object.Name, refused.Reason, plugin.Clean(refused.Message))
		}
		return object.Status.Link != "", nil
	})
	if wait.Interrupted(err) {
		return started{}, fmt.Errorf("no server has taken request %s up within %s; kubectl phoneproof status %s says why",
			object.Name, c.timeout, p.Project.Name)
	}
	if err != nil {
		return started{}, fmt.Errorf("wait for the link: %w", err)
	}
	return started{
		id: object.Name, link: object.Status.Link, text: object.Status.ExpectedText,
		await: func(ctx context.Context) (string, string, error) { return awaitObject(ctx, p, key) },
	}, nil
}

// awaitObject returns the phase in the words of the API, after one interval.
func awaitObject(ctx context.Context, p *plugin.Client, key client.ObjectKey) (status, hint string, err error) {
	timer := time.NewTimer(objectInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", "", ctx.Err()
	case <-timer.C:
	}
	var object verifyv1.VerificationRequest
	if err := p.Get(ctx, key, &object); err != nil {
		return "", "", fmt.Errorf("read VerificationRequest: %w", err)
	}
	if hints := object.Status.Hints; len(hints) > 0 && object.Status.Phase != verifyv1.PhaseVerified {
		hint = string(hints[len(hints)-1].Kind)
	}
	return strings.ToUpper(string(object.Status.Phase)), hint, nil
}
