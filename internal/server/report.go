package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/internal/note"
)

// report returns what writes the conditions that serve answers for, out of what a term learns and what its store says.
func (c *cluster) report(board *projectstatus.Board, storage func(context.Context) error) projectstatus.Options {
	options := projectstatus.Options{
		Projects: c.source, Client: c.client, Board: board, Storage: storage, StoragePeriod: c.dependencies.StoragePeriod,
		Tell: c.tellCondition, Log: c.log.WithName("report"),
	}
	if c.database != nil {
		options.Unencrypted = c.database.Unencrypted
	}
	return options
}

// room reports whether one more request could be stored as an object.
func (c *cluster) room(ctx context.Context) error {
	if err := c.store.Ready(ctx); err != nil {
		return err
	}
	return c.objects.Room(c.current().Limits)
}

func (c *cluster) tellCondition(project *verifyv1.VerificationProject, condition metav1.Condition, bad bool) {
	kind := corev1.EventTypeNormal
	if bad {
		kind = corev1.EventTypeWarning
	}
	c.recorder.Eventf(project, nil, kind, condition.Reason, "Report", "%s", note.Fit(condition.Message))
}
