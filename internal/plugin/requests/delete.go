package requests

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// deleteObject deletes an object, unless something would be lost that the user did not agree to.
func deleteObject(ctx context.Context, env *plugin.Env, c *plugin.Client, id string, force bool) error {
	object, err := readObject(ctx, c, id)
	if err != nil {
		return err
	}
	request := convertObject(object, time.Now())
	if reason := keepReason(&request); reason != "" && !force {
		return fmt.Errorf("request %s is not deleted: %s; use --force to delete it all the same", id, reason)
	}
	// The version: what was read is what is deleted.
	preconditions := client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion}
	if err := c.Delete(ctx, object, preconditions); err != nil {
		return fmt.Errorf("delete VerificationRequest: %w", err)
	}
	return env.Print("request %s deleted", id)
}
