package main

import (
	"bytes"
	"context"
	"errors"
	"net/url"

	"github.com/phoneproof/phoneproof/test/faultproxy"
)

// lines are what the replicas reach others through.
type lines struct {
	store *faultproxy.Proxy
	sink  *faultproxy.Proxy
	// commits tells a request to the store whose answer is worth losing.
	commits func([]byte) bool
	err     error
}

func (l *lines) toSink(ctx context.Context, address string) (string, error) {
	var err error
	if l.sink, err = faultproxy.Listen(ctx, address); err != nil {
		return "", err
	}
	return l.sink.Address, nil
}

// database leads a URI over a line.
func (l *lines) database(uri string) string {
	// The protocol is plain: the end of a transaction, and the statements that are one by themselves.
	l.commits = func(request []byte) bool {
		lower := bytes.ToLower(request)
		return bytes.Contains(lower, []byte("commit")) || bytes.Contains(lower, []byte("update"))
	}
	return l.reroute(uri)
}

// apiServer leads a URL over a line. What is sent over it is encrypted: any request will do.
func (l *lines) apiServer(to string) string { return l.reroute(to) }

func (l *lines) reroute(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		l.err = errors.Join(l.err, err)
		return to
	}
	if l.store == nil {
		if l.store, err = faultproxy.Listen(context.Background(), u.Host); err != nil {
			l.err = errors.Join(l.err, err)
			return to
		}
	}
	u.Host = l.store.Address
	return u.String()
}

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
	return all
}
