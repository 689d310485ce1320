package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Etcd is the witness of a Kubernetes store: every revision of every object, from etcd's own log. A watch of the API
// server would lose commits from the moment before it was killed.
type Etcd struct {
	url       string
	namespace string
	admin     client.Client
	changes   *ledger.Writer
	stop      context.CancelFunc
	done      chan struct{}

	mu       sync.Mutex
	open     map[string]ledger.Change
	revision int64
	err      error
}

// WatchEtcd starts recording the changes of a namespace's requests into a folder, from etcd's address. The client must
// be allowed to list them.
func WatchEtcd(ctx context.Context, url, namespace, dir string, admin client.Client) (*Etcd, error) {
	changes, err := ledger.Create(filepath.Join(dir, ledger.StoreFile))
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	w := &Etcd{
		url: url, namespace: namespace, admin: admin, changes: changes, stop: stop, done: make(chan struct{}),
		open: map[string]ledger.Change{},
	}
	events, err := w.startWatch(watching)
	if err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("watch etcd: %w", err), changes.Close())
	}
	go func() { // ends with Conclude, or ctx
		defer close(w.done)
		err := w.followEvents(events)
		w.mu.Lock()
		defer w.mu.Unlock()
		if watching.Err() == nil {
			w.err = fmt.Errorf("watch etcd: %w", err)
		}
	}()
	return w, nil
}

// keyPrefix returns the prefix of the requests' keys in etcd.
func (w *Etcd) keyPrefix() string {
	return "/registry/" + verifyv1.GroupVersion.Group + "/verificationrequests/" + w.namespace + "/"
}

// startWatch watches all changes from now on. The answer is a stream of JSON, by etcd's gRPC gateway.
func (w *Etcd) startWatch(ctx context.Context) (io.ReadCloser, error) {
	from := w.keyPrefix()
	to := from[:len(from)-1] + "0" // the byte after the slash
	body := fmt.Sprintf(`{"create_request":{"key":%q,"range_end":%q,"prev_kv":true}}`,
		base64.StdEncoding.EncodeToString([]byte(from)), base64.StdEncoding.EncodeToString([]byte(to)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v3/watch", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, errors.New(response.Status)
	}
	return response.Body, nil
}

// keyValue is a key with its value, in etcd's encoding.
type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value"`
	Version     string `json:"version"`
	ModRevision string `json:"mod_revision"`
}

type watchMessage struct {
	Result struct {
		Canceled bool   `json:"canceled"`
		Reason   string `json:"cancel_reason"`
		Events   []struct {
			Type   string   `json:"type"`
			Now    keyValue `json:"kv"`
			Before keyValue `json:"prev_kv"`
		} `json:"events"`
	} `json:"result"`
}

func (w *Etcd) followEvents(events io.ReadCloser) error {
	defer func() { _ = events.Close() }()
	stream := json.NewDecoder(events)
	for {
		var m watchMessage
		if err := stream.Decode(&m); err != nil {
			return err
		}
		if m.Result.Canceled {
			return errors.New(m.Result.Reason)
		}
		for _, e := range m.Result.Events {
			op, value := ledger.Updated, e.Now.Value
			switch {
			case e.Type == "DELETE":
				op, value = ledger.Deleted, e.Before.Value
			case e.Now.Version == "1":
				op = ledger.Created
			}
			if err := w.recordChange(op, value, e.Now.ModRevision); err != nil {
				return err
			}
		}
	}
}

func (w *Etcd) recordChange(op string, value []byte, at string) error {
	var object verifyv1.VerificationRequest
	if err := json.NewDecoder(bytes.NewReader(value)).Decode(&object); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	revision, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("parse revision: %w", err)
	}
	c := changeOf(&object)
	c.Op, c.At = op, time.Now()
	if err := w.changes.Note(c); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
	if isOpen(c, c.At.Add(time.Hour)) {
		w.open[c.ID] = c
	} else {
		delete(w.open, c.ID)
	}
	return nil
}

// changeOf returns an object's state. Its phase is spelled as in the API's answers.
func changeOf(o *verifyv1.VerificationRequest) ledger.Change {
	c := ledger.Change{
		Facts: ledger.Facts{
			Phone: o.Spec.PhoneNumber, Actual: o.Status.ActualPhoneNumber, Method: strings.ToUpper(string(o.Spec.Method)),
			Assurance: string(o.Status.Assurance),
		},
		ID: o.Name, Phase: strings.ToUpper(string(o.Status.Phase)),
	}
	if c.Phase == "" { // etcd stores no status before the first write; the schema's default is not in it
		c.Phase = string(verification.Pending)
	}
	if o.Status.VerifiedAt != nil {
		c.Verified = o.Status.VerifiedAt.Time
	}
	if o.Spec.Init != nil {
		c.Expires, c.Deliver = o.Spec.Init.ExpiresAt.Time, strings.ToUpper(string(o.Spec.Init.Deliver))
	}
	if o.Status.CodeDelivery != nil {
		names := map[verifyv1.CodeState]string{verifyv1.CodeStateSent: "SENT", verifyv1.CodeStateNotSent: "NOT_SENT"}
		c.CodeState = names[o.Status.CodeDelivery.State]
	}
	if d := o.Status.Delivery; d != nil {
		c.Attempts, c.Code, c.Delivered, c.Exhausted = int(d.Attempts), int(d.LastStatusCode), d.DeliveredAt != nil, d.ExhaustedAt != nil
		c.Reason = d.LastReason
		if d.LastAttemptAt != nil {
			c.Tried = d.LastAttemptAt.Time
		}
		if d.NextAttemptAt != nil {
			c.Next = d.NextAttemptAt.Time
		}
	}
	return c
}

// Open implements Witness.
func (w *Etcd) Open(context.Context) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count, now := 0, time.Now()
	for _, c := range w.open {
		if isOpen(c, now) {
			count++
		}
	}
	return count, w.err
}

// pageSize is the number of objects on one page of the final list.
const pageSize = 500

// Conclude implements Witness.
func (w *Etcd) Conclude(ctx context.Context, dir string) error {
	final, err := ledger.Create(filepath.Join(dir, ledger.FinalFile))
	if err != nil {
		return err
	}
	page := client.ListOptions{Namespace: w.namespace, Limit: pageSize}
	var list *verifyv1.VerificationRequestList
	for {
		list = &verifyv1.VerificationRequestList{}
		if err := w.admin.List(ctx, list, &page); err != nil {
			return errors.Join(fmt.Errorf("list requests: %w", err), final.Close())
		}
		for i := range list.Items {
			c := changeOf(&list.Items[i])
			c.Op, c.At = ledger.Updated, time.Now()
			if err := final.Note(c); err != nil {
				return err
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	return errors.Join(final.Close(), w.catchUp(ctx, list.ResourceVersion), w.stopWatch())
}

// catchUp returns when the witness has followed etcd's log up to the list's revision, or after eight seconds: nothing
// changes any more, and the list's revision may be that of another kind's write.
func (w *Etcd) catchUp(ctx context.Context, revision string) error {
	want, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return fmt.Errorf("parse revision of list: %w", err)
	}
	deadline := time.NewTimer(8 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		reached := w.revision >= want
		w.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-deadline.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (w *Etcd) stopWatch() error {
	w.stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.changes.Close())
}
