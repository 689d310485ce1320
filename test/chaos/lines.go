package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/faultproxy"
	"github.com/phoneproof/phoneproof/test/pgproxy"
	"github.com/phoneproof/phoneproof/test/system"
)

// lines are the network lines from the replicas to the store and the receiver.
type lines struct {
	store *faultproxy.Proxy
	sink  *faultproxy.Proxy
	// transactions is between the store's line and a database, calls between it and an API server; the other one is
	// nil.
	transactions *pgproxy.Proxy
	calls        *apiproxy.Proxy
	// servers are the lines to a database and its standby, by port, if it has one; store is one of them.
	servers map[int]*faultproxy.Proxy
	// project has the replicas whose connections come over the lines; nil before it is created.
	project atomic.Pointer[system.Project]
	err     error

	mu      sync.Mutex
	unnamed error // why the owner of a connection could not be named
}

// nameOwner returns the name of the replica that connects.
func (l *lines) nameOwner(client net.Conn) string {
	p := l.project.Load()
	if p == nil {
		return ""
	}
	name, err := p.Owner(client)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unnamed = fmt.Errorf("name owner of connection: %w", err)
	}
	return name
}

// checkNames returns why the owner of a connection could not be named: the judge would take it for any process.
func (l *lines) checkNames() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unnamed
}

// nameCaller returns the name of the replica that calls over the store's line from an address.
func (l *lines) nameCaller(address string) string { return l.store.Caller(address) }

// nameSender returns the name of the replica whose event comes to the receiver from an address.
func (l *lines) nameSender(address string) string { return l.sink.Caller(address) }

func (l *lines) listenForSink(ctx context.Context, address string) (string, error) {
	var err error
	if l.sink, err = faultproxy.Listen(ctx, address, l.nameOwner); err != nil {
		return "", err
	}
	return l.sink.Address, nil
}

// routeDatabase routes a URI over the store's line to the proxy that knows transactions.
func (l *lines) routeDatabase(uri string) string {
	if strings.Contains(uri, ",") {
		return l.routePair(uri)
	}
	u, err := url.Parse(uri)
	if err == nil && l.store == nil {
		err = l.listenForDatabase(context.Background(), u.Host)
	}
	if err != nil {
		l.err = errors.Join(l.err, err)
		return uri
	}
	u.Host = l.store.Address
	return u.String()
}

// routePair routes a URI with two hosts over a line to each server.
func (l *lines) routePair(uri string) string {
	if l.servers == nil {
		l.servers = map[int]*faultproxy.Proxy{}
		for _, port := range portOfHost.FindAllStringSubmatch(uri, -1) {
			line, err := faultproxy.Listen(context.Background(), "127.0.0.1:"+port[1], l.nameOwner)
			if err != nil {
				l.err = errors.Join(l.err, err)
				return uri
			}
			number, _ := strconv.Atoi(port[1]) // it matches
			l.servers[number], l.store = line, line
		}
	}
	return portOfHost.ReplaceAllStringFunc(uri, func(host string) string {
		number, _ := strconv.Atoi(portOfHost.FindStringSubmatch(host)[1]) // it matches
		return l.servers[number].Address
	})
}

var portOfHost = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)

func (l *lines) listenForDatabase(ctx context.Context, address string) error {
	var err error
	if l.transactions, err = pgproxy.Listen(ctx, address, operationOf, l.nameCaller); err != nil {
		return err
	}
	l.store, err = faultproxy.Listen(ctx, l.transactions.Address, l.nameOwner)
	return err
}

// operationOf returns the operation of a transaction by its statements. A claim raises the epoch of a request.
func operationOf(statement string) string {
	switch {
	case strings.HasPrefix(statement, "INSERT INTO phoneproof_requests"):
		return opInsert
	case !strings.Contains(statement, "UPDATE phoneproof_requests"):
		return ""
	case strings.Contains(statement, "epoch = epoch + 1"):
		return opClaim
	default:
		return opUpdate
	}
}

// routeAPIServer routes clients over the store's line to the proxy that knows their calls. The line carries encrypted
// bytes, so it loses the answers to any requests.
func (l *lines) routeAPIServer(config *rest.Config) error {
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

// The resources of an API server: the watches of requests are broken.
const (
	requests = "verificationrequests"
	leases   = "leases"
)

// listUnanswered returns the calls that the API server did not answer; none if the store is a database.
func (l *lines) listUnanswered() []apiproxy.Unanswered {
	if l.calls == nil {
		return nil
	}
	return l.calls.Unanswered()
}

// clearFaults ends every fault of the network.
func (l *lines) clearFaults() {
	for _, line := range []*faultproxy.Proxy{l.store, l.sink} {
		line.CutAnswers(0)
		line.Set(faultproxy.Weather{})
	}
}

func (l *lines) close() error {
	var all error
	for _, line := range append(slices.Collect(maps.Values(l.servers)), l.store, l.sink) { // closing twice is harmless
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
