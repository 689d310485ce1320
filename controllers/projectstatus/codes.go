package projectstatus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// codesPeriod is how often the store is asked for the codes that were started, less some jitter.
const codesPeriod = time.Minute

// watchCodes keeps the condition CodesLimited current until ctx ends. A project that sends no codes costs nothing.
func (c *Controller) watchCodes(ctx context.Context) error {
	changes, cancel := c.Projects.Subscribe()
	defer cancel()
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) {
			s := c.Projects.Current()
			if !s.Limits.Codes.Limited() && !s.Limits.GatewayCodes.Limited() {
				c.Board.Withdraw(verifyv1.ConditionCodesLimited)
				return 0, nil
			}
			c.checkCodes(ctx, s)
			return controllers.Jitter(codesPeriod), nil
		},
		Changes: []<-chan struct{}{changes}, MinGap: codesPeriod, Log: c.Log,
	})
}

// checkCodes compares what each API key started with its share. What the store does not answer, StorageReady reports.
func (c *Controller) checkCodes(ctx context.Context, s *settings.Settings) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	present := s.Keys.DeliverNames()
	var used []string
	for _, messenger := range [...]struct {
		field  string
		method verification.Method
	}{{"spec.whatsapp.codes", verification.WhatsApp}, {"spec.telegram.codes", verification.Telegram}} {
		limits := s.Limits.CodesOf(messenger.method)
		share := limits.PerDay
		if !share.Limited() {
			continue
		}
		started, err := c.CodesStarted(ctx, messenger.method, c.StoreClock.Now().Add(-share.Period))
		if err != nil {
			c.Log.V(1).Info("count codes failed, will retry", "error", err.Error())
			return
		}
		var keys []string
		removed := 0 // what they started counts in the project's limit all the same
		for _, key := range slices.Sorted(maps.Keys(started)) {
			switch {
			case !present[key]:
				removed += started[key]
			case 2*started[key] >= share.Requests:
				keys = append(keys, key)
			}
		}
		if limits.Project.Limited() && 2*removed >= limits.Project.Requests {
			keys = append(keys, "those that were removed")
		}
		if len(keys) > 0 {
			used = append(used, messenger.field+".maxPerDay was used within 24h by the API keys: "+strings.Join(keys, ", "))
		}
	}
	if len(used) == 0 {
		c.Board.Withdraw(verifyv1.ConditionCodesLimited)
		return
	}
	condition := conditionTrue(verifyv1.ConditionCodesLimited, verifyv1.ReasonCodesHalfUsed, fmt.Sprintf(
		"half or more of the share of %s; at its end init answers 429 codes_limited for codes, and links go on; "+
			"find out who starts the requests, or raise maxPerDay", strings.Join(used, "; of ")))
	condition.ObservedGeneration = s.Generation
	c.Board.Set(condition)
}
