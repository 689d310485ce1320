package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/chaos/commits"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/pgproxy"
	"github.com/phoneproof/phoneproof/test/system"
)

// lines are what the replicas reach others through.
type lines struct {
	store *faultproxy.Proxy
	sink  *faultproxy.Proxy
	// transactions stands between the store's line and a database, calls between it and an API server; the other one is nil.
	transactions *pgproxy.Proxy
	calls        *apiproxy.Proxy
	// project has the replicas that come over the lines; nil before there is one.
	project atomic.Pointer[system.Project]
	err     error

	mu      sync.Mutex
	unnamed error // why somebody could not be named
}

// nameOwner names the replica that connects.
func (l *lines) nameOwner(client net.Conn) string {
	p := l.project.Load()
	if p == nil {
		return ""
	}
	name, err := p.Owner(client)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unnamed = fmt.Errorf("name the owner of a connection: %w", err)
	}
	return name
}

// checkNames returns why somebody could not be named: the judge would take him for everybody.
func (l *lines) checkNames() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unnamed
}

// nameCaller names the replica that comes over the store's line from an address.
func (l *lines) nameCaller(address string) string { return l.store.Caller(address) }

// sender names the replica whose event comes to the receiver from an address.
func (l *lines) sender(address string) string { return l.sink.Caller(address) }

func (l *lines) toSink(ctx context.Context, address string) (string, error) {
	var err error
	if l.sink, err = faultproxy.Listen(ctx, address, l.nameOwner); err != nil {
		return "", err
	}
	return l.sink.Address, nil
}

// database leads a URI over the line of the store, and from there through what knows transactions.
func (l *lines) database(uri string) string {
	u, err := url.Parse(uri)
	if err == nil && l.store == nil {
		err = l.toDatabase(context.Background(), u.Host)
	}
	if err != nil {
		l.err = errors.Join(l.err, err)
		return uri
	}
	u.Host = l.store.Address
	return u.String()
}

func (l *lines) toDatabase(ctx context.Context, address string) error {
	var err error
	if l.transactions, err = pgproxy.Listen(ctx, address, operationOf, l.nameCaller); err != nil {
		return err
	}
	l.store, err = faultproxy.Listen(ctx, l.transactions.Address, l.nameOwner)
	return err
}

// operationOf names the operation of a transaction by its statements. A claim raises the epoch of a request.
func operationOf(statement string) string {
	switch {
	case strings.HasPrefix(statement, "INSERT INTO phoneproof_requests"):
		return commits.Insert
	case !strings.Contains(statement, "UPDATE phoneproof_requests"):
		return ""
	case strings.Contains(statement, "epoch = epoch + 1"):
		return commits.Claim
	default:
		return commits.Update
	}
}

// apiServer leads clients over the line of the store, and from there through what knows their calls. The line carries bytes
// that are encrypted: it loses the answers to any requests.
func (l *lines) apiServer(config *rest.Config) error {
	var err error
	if l.store == nil {
		if l.calls, err = apiproxy.Listen(config, requests, l.nameCaller); err != nil {
			return err
		}
		if l.store, err = faultproxy.Listen(context.Background(), l.calls.Address, l.nameOwner); err != nil {
			return err
		}
	}
	config.Host, config.CAData = "https://"+l.store.Address, l.calls.CA
	return nil
}

// requests is the resource whose calls are broken.
const requests = "verificationrequests"

// clear ends every fault of the network.
func (l *lines) clear() {
	for _, line := range []*faultproxy.Proxy{l.store, l.sink} {
		line.CutAnswers(0, nil)
		line.Set(faultproxy.Weather{})
	}
}

func (l *lines) close() error {
	var all error
	for _, line := range []*faultproxy.Proxy{l.store, l.sink} {
		if line != nil {
			all = errors.Join(all, line.Close())
		}
	}
	if l.transactions != nil {
		all = errors.Join(all, l.transactions.Close())
	}
	if l.calls != nil {
		l.calls.Close()
	}
	return all
}
