package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// accountIndex finds the projects that have a messenger account.
const accountIndex = "phoneproof.dev/account"

// accounts returns the messenger accounts of a project, as they stand in the index. Telegram's usernames are the same in
// any case.
func accounts(spec *verifyv1.VerificationProjectSpec) []string {
	var out []string
	if spec.WhatsApp != nil {
		out = append(out, "whatsapp/"+spec.WhatsApp.PhoneNumberID)
	}
	if spec.Telegram != nil {
		out = append(out, "telegram/"+strings.ToLower(spec.Telegram.BotUsername))
	}
	return out
}

// holder returns the oldest of the projects with an account, who keeps it: also while it is suspended, or being deleted,
// or stalled for another reason. Of two of the same second it is the first by namespace and name, so every operator
// comes to the same one.
func holder(projects []verifyv1.VerificationProject) *verifyv1.VerificationProject {
	oldest := slices.MinFunc(projects, func(a, b verifyv1.VerificationProject) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &oldest
}

// errOutdated says that the cache does not show yet what is so.
var errOutdated = errors.New("the cache is outdated")

// confirm asks the API server itself whether another project has an account, before pods are stopped for it: where
// namespaces are watched one by one, the news of a project that got the account may come before that of the one that gave it up.
func (c *Controller) confirm(ctx context.Context, of *account) error {
	var now verifyv1.VerificationProject
	err := c.live.Get(ctx, client.ObjectKeyFromObject(of.holder), &now)
	switch {
	case apierrors.IsNotFound(err):
		return errOutdated
	case err != nil:
		return fmt.Errorf("ask whether an account is in use: %w", err)
	case now.UID != of.holder.UID || !slices.Contains(accounts(&now.Spec), of.name):
		return errOutdated
	default:
		return nil
	}
}

// taken says that an account belongs to another project. That project is named only to those who may see it.
func taken(project *verifyv1.VerificationProject, account string, by *verifyv1.VerificationProject) string {
	field := "spec.telegram.botUsername"
	if strings.HasPrefix(account, "whatsapp/") {
		field = "spec.whatsapp.phoneNumberID"
	}
	whose := "an older project of another namespace"
	if by.Namespace == project.Namespace {
		whose = "the older project " + by.Name
	}
	return field + " belongs to " + whose + "; use another account, or delete the other project"
}
