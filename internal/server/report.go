package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// statusOptions returns the options of the writer of serve's conditions, which reads the board of a term and its store.
func (c *cluster) statusOptions(board *projectstatus.Board, storage func(context.Context) error) projectstatus.Options {
	options := projectstatus.Options{
		Projects: c.source, Client: c.client, Board: board, Storage: storage, StoragePeriod: c.dependencies.StoragePeriod,
		Tell: c.recordCondition, StoreClock: c.clock, Log: c.log.WithName("report"),
		Activity: func(ctx context.Context, since time.Time) (verification.Activity, error) {
			return c.store.Activity(ctx, verification.WhatsApp, since)
		},
		CodesStarted: c.store.CodesStarted,
	}
	if c.database != nil {
		options.Unencrypted = c.database.Unencrypted
	}
	return options
}

// checkRoom returns an error if no further request can be stored as an object.
func (c *cluster) checkRoom(ctx context.Context) error {
	if err := c.store.Ready(ctx); err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	if err := c.objects.Room(c.current().Limits); err != nil {
		return fmt.Errorf("check room for requests: %w", err)
	}
	return nil
}

func (c *cluster) recordCondition(project *verifyv1.VerificationProject, condition metav1.Condition, bad bool) {
	kind := corev1.EventTypeNormal
	if bad {
		kind = corev1.EventTypeWarning
	}
	c.recorder.Eventf(project, nil, kind, condition.Reason, "Report", "%s", controllers.FitNote(condition.Message))
}
