// Command driver calls the Go library as the lines of its standard input ask, and answers each by a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	phoneproof "github.com/phoneproof/phoneproof/sdk/go"
)

// arguments are those of all operations.
type arguments struct {
	Client, Name, BaseURL, APIKey string
	Timeout                       *float64 // seconds
	After                         float64  // seconds

	ID, Code, IdempotencyKey       string
	Params                         phoneproof.StartParams
	Delivery                       phoneproof.DeliverParams
	Status, Reference, PhoneNumber string
	Kind                           string
	Since                          time.Time
	Limit, Max                     int
	Session, NewSession            string
	Returned                       *string
	Secrets, TestSecrets           []string
	Tolerance                      float64
	Now                            *float64
	Headers                        map[string]string
	Body                           []byte
	As                             string
	BodySignature                  bool
	Op                             string // of later
	Args                           *arguments
}

// set is a set of ids. As a phoneproof.Seen it is used by one request at a time.
type set map[string]bool

func (s set) Has(_ context.Context, id string) (bool, error) { return s[id], nil }
func (s set) Add(_ context.Context, id string) error         { s[id] = true; return nil }

// outcome is what an operation returns.
type outcome struct {
	ok  any
	err error
}

// driver keeps what lasts from one line to the next.
type driver struct {
	clients  map[string]*phoneproof.Client
	sessions phoneproof.MemoryStore
	digests  set

	background chan outcome // of later

	mu            sync.Mutex
	events, tests []json.RawMessage
	failed        bool
}

// record is the callback of handlers. It fails for the first event with the reference "fail".
func (d *driver) record(into *[]json.RawMessage) func(context.Context, *phoneproof.Event) error {
	return func(_ context.Context, event *phoneproof.Event) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if event.Reference == "fail" && !d.failed {
			d.failed = true
			return errors.New("asked to fail")
		}
		*into = append(*into, event.Raw)
		return nil
	}
}

// run carries out an operation.
func (d *driver) run(op string, a arguments) (any, error) {
	ctx := context.Background()
	if a.Client == "" {
		a.Client = "c"
	}
	client := d.clients[a.Client]
	sessions := phoneproof.NewSessions(client, &d.sessions)
	switch op {
	case "client":
		return d.newClient(a)
	case "start":
		a.Params.IdempotencyKey = a.IdempotencyKey
		started, err := client.Start(ctx, a.Params)
		return rawOf(started, err)
	case "deliver":
		a.Delivery.IdempotencyKey = a.IdempotencyKey
		delivered, err := client.Deliver(ctx, a.Delivery)
		return rawOf(delivered, err)
	case "status":
		status, err := client.Status(ctx, a.ID)
		return rawOf(status, err)
	case "wait":
		ctx, cancel := context.WithTimeout(ctx, seconds(*a.Timeout))
		defer cancel()
		status, err := client.Wait(ctx, a.ID)
		return rawOf(status, err)
	case "waitCancel":
		ctx, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(seconds(a.After), cancel).Stop()
		status, err := client.Wait(ctx, a.ID)
		if errors.Is(err, context.Canceled) {
			return map[string]bool{"cancelled": true}, nil
		}
		return rawOf(status, err)
	case "confirm":
		status, err := client.Confirm(ctx, a.ID, a.Code)
		return rawOf(status, err)
	case "cancel":
		status, err := client.Cancel(ctx, a.ID)
		return rawOf(status, err)
	case "get":
		request, err := client.Get(ctx, a.ID)
		return rawOf(request, err)
	case "redeliver":
		request, err := client.Redeliver(ctx, a.ID)
		return rawOf(request, err)
	case "list":
		return collect(client.List(ctx, phoneproof.ListParams{
			Status: a.Status, Reference: a.Reference, Kind: a.Kind, Since: a.Since, Limit: a.Limit,
		}), a.Max)
	case "find":
		return collect(client.Find(ctx, phoneproof.FindParams{
			PhoneNumber: a.PhoneNumber, Status: a.Status, Kind: a.Kind, Since: a.Since, Limit: a.Limit,
		}), a.Max)
	case "later":
		d.background = make(chan outcome, 1)
		go func() {
			ok, err := d.run(a.Op, *a.Args)
			d.background <- outcome{ok, err}
		}()
		return struct{}{}, nil
	case "join":
		o := <-d.background
		return o.ok, o.err
	case "openapi":
		var document struct {
			OpenAPI string `json:"openapi"`
		}
		raw, err := client.OpenAPI(ctx)
		if err != nil {
			return nil, err
		}
		return &document, json.Unmarshal(raw, &document)
	case "receive":
		return d.receive(a)
	case "serve":
		return d.serve(a)
	case "events":
		d.mu.Lock()
		defer d.mu.Unlock()
		none := []json.RawMessage{}
		return map[string]any{"events": append(none, d.events...), "tests": append(none, d.tests...)}, nil
	case "begin":
		started, err := sessions.Begin(ctx, a.Session, a.Params)
		return rawOf(started, err)
	case "redeem":
		redemption := phoneproof.Redemption{SessionID: a.Session, NewSessionID: a.NewSession, Code: a.Code}
		if a.Returned != nil {
			redemption.Code, redemption.Return = "", url.Values{"requestId": {*a.Returned}, "code": {a.Code}}
		}
		status, err := sessions.Redeem(ctx, redemption)
		return rawOf(status, err)
	case "verified":
		number, err := sessions.Verified(ctx, a.Session)
		if number == "" {
			return nil, err
		}
		return number, err
	default:
		return nil, &phoneproof.Error{Code: "unsupported", Message: op}
	}
}

func (d *driver) newClient(a arguments) (any, error) {
	var options []phoneproof.Option
	if a.Timeout != nil {
		options = append(options, phoneproof.WithTimeout(seconds(*a.Timeout)))
	}
	client, err := phoneproof.New(a.BaseURL, a.APIKey, options...)
	if err != nil {
		return nil, err
	}
	if a.Name == "" {
		a.Name = "c"
	}
	d.clients[a.Name] = client
	asJSON, err := json.Marshal(client)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("log", "client", client, "value", *client)
	return map[string]string{"text": fmt.Sprintf("%v %+v %#v %v %#v %s %s", client, client, client, *client, *client, asJSON, &log)}, err
}

// newReceiver returns the receiver of an operation.
func (d *driver) newReceiver(a arguments) *phoneproof.Receiver {
	r := &phoneproof.Receiver{Secrets: a.Secrets, TestSecrets: a.TestSecrets, Tolerance: seconds(a.Tolerance)}
	if a.Now != nil {
		r.Now = func() time.Time { return time.Unix(0, int64(*a.Now*1e9)) }
	}
	if a.BodySignature {
		r.BodySignature = func(digest string) bool {
			seen := d.digests[digest]
			d.digests[digest] = true
			return seen
		}
	}
	return r
}

func (d *driver) receive(a arguments) (any, error) {
	if a.As != "" && a.As != "bytes" {
		return nil, &phoneproof.Error{Code: "unsupported", Message: "Go's compiler refuses anything but bytes"}
	}
	header := http.Header{}
	for name, value := range a.Headers {
		header.Set(name, value)
	}
	event, err := d.newReceiver(a).Receive(header, a.Body)
	return rawOf(event, err)
}

// serve starts a server for webhooks, which ends with the program.
func (d *driver) serve(a arguments) (any, error) {
	d.failed = false
	handler, err := d.newReceiver(a).Handler(phoneproof.HandlerOptions{
		OnEvent: d.record(&d.events), OnTest: d.record(&d.tests), Seen: set{}, BodySignature: a.BodySignature,
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(listener, handler) }()
	return map[string]int{"port": listener.Addr().(*net.TCPAddr).Port}, nil
}

// rawOf returns the JSON that the library keeps of an answer.
func rawOf(answer any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case *phoneproof.Started:
		return a.Raw, nil
	case *phoneproof.Delivered:
		return a.Raw, nil
	case *phoneproof.Status:
		return a.Raw, nil
	case *phoneproof.Request:
		return a.Raw, nil
	case *phoneproof.Event:
		return a.Raw, nil
	default:
		return nil, fmt.Errorf("%T has no JSON", answer)
	}
}

// collect returns the JSON of the first requests, of all if most is 0.
func collect(requests iter.Seq2[*phoneproof.Request, error], most int) (any, error) {
	all := []json.RawMessage{}
	for request, err := range requests {
		if err != nil {
			return nil, err
		}
		if all = append(all, request.Raw); len(all) == most {
			break
		}
	}
	return all, nil
}

// describeError returns an error as the protocol has it.
func describeError(err error) map[string]any {
	text, _ := json.Marshal(err)
	described := map[string]any{"code": "", "kind": "", "text": fmt.Sprintf("%v %+v %#v %s", err, err, err, text)}
	if failure := (*phoneproof.Error)(nil); errors.As(err, &failure) {
		described["code"], described["reason"], described["field"] = failure.Code, failure.Reason, failure.Field
		described["status"], described["httpRequestId"] = failure.Status, failure.HTTPRequestID
		described["retryAfter"] = failure.RetryAfter.Seconds()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		described["code"] = phoneproof.CodeTimedOut // the other libraries have no contexts
	}
	for kind, target := range map[string]error{
		"AlreadyConfirmed": phoneproof.ErrAlreadyConfirmed, "CodesUnsupported": phoneproof.ErrCodesUnsupported,
		"Signature": phoneproof.ErrSignature, "Session": phoneproof.ErrSession,
	} {
		if errors.Is(err, target) {
			described["kind"] = kind
		}
	}
	return described
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func main() {
	d := &driver{clients: map[string]*phoneproof.Client{}, digests: set{}}
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Buffer(nil, 4<<20)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var line struct {
			ID   json.RawMessage
			Op   string
			Args arguments
		}
		answer := map[string]any{}
		err := json.Unmarshal(lines.Bytes(), &line)
		if err == nil {
			answer["ok"], err = d.run(line.Op, line.Args)
		}
		answer["id"] = line.ID
		if err != nil {
			delete(answer, "ok")
			answer["error"] = describeError(err)
		}
		if err := out.Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
