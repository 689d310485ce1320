package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/system"
)

// The credentials and the code of the peer's requests.
const (
	peerNamespace = "bench"
	peerSecret    = "a-secret-of-the-benchmark"
	peerCode      = "123456"
)

// peerConfig is the configuration of otpgateway. The provider sends nothing, because no request names a recipient.
const peerConfig = `[app]
address = %q
server_timeout = "10s"
enable_debug_logs = false
otp_ttl = 600
otp_max_attempts = 5
otp_max_resends = 3
otp_max_generate = 3
root_url = "http://localhost"

[store.redis]
host = "127.0.0.1"
port = %s

[auth.bench]
namespace = %q
secret = %q

[webhooks.none]
enabled = true
url = "http://127.0.0.1:1"
id = "none"
subject = "none"
channel_name = "none"
address_name = "number"
max_address_len = 20
max_otp_len = 6
`

// peer is otpgateway, which keeps one-time passwords that it would send by SMS, with a Redis that syncs each write.
type peer struct {
	*child

	redis *child
	made  atomic.Int64
}

// measurePeers measures inits and final statuses beside those of otpgateway, which stores a password and sends it to no one, and beside
// the floor server.
func measurePeers(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return b.withFloor(ctx, x, "", func(f *floorSite) error {
			p, err := b.startPeer(ctx)
			if err != nil {
				return fmt.Errorf("start otpgateway: %w", err)
			}
			defer p.stop()
			return b.comparePeer(ctx, x, f, p)
		})
	})
}

func (b *bench) comparePeer(ctx context.Context, x *site, f *floorSite, p *peer) error {
	final, err := x.verifyNumbers(ctx, statusRequests)
	floor, err2 := f.verifyNumbers(ctx, statusRequests)
	theirs, err3 := p.verifyCodes(ctx, statusRequests)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if _, err := x.sink.awaitEvents(ctx, final); err != nil {
		return err
	}
	for _, operation := range []struct {
		name              string
		ours, peer, floor side
	}{
		{"init", b.maximumOf(x, x.address, x.renderInit), b.maximumOf(p, p.address, p.renderInit), f.measureMaximum(b, f.renderInit)},
		{
			"status, final", b.maximumOf(x, x.address, x.renderStatus(final)), b.maximumOf(p, p.address, p.renderStatus(theirs)),
			f.measureMaximum(b, f.renderStatus(floor)),
		},
	} {
		found, err := b.measureByTurns(ctx, operation.ours, operation.peer, operation.floor)
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: operation.name, unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"), limitIs: "otpgateway",
		})
		for _, part := range []struct{ name, key string }{{"the server", keyServer}, {"the store", keyStore}, {"both", keyBoth}} {
			for i, limit := range []string{"otpgateway", "floor server"} {
				b.addRow(row{
					figure: operation.name + ", CPU for each, " + part.name, unit: "µs", ours: found[0].valuesOf(part.key),
					limit: found[i+1].valuesOf(part.key), limitIs: limit,
				})
			}
		}
	}
	return nil
}

// maximumOf returns a side that measures the most requests a second, and what each costs.
func (b *bench) maximumOf(of payer, address string, render renderer) side {
	return func(ctx context.Context, _ int) (sample, error) {
		found, _, err := b.measureMaximum(ctx, of, load.Expect(address, render))
		return found, err
	}
}

// startPeer starts Debian's Redis and the otpgateway in the folder of -peers, whose pages are beside it.
func (b *bench) startPeer(ctx context.Context) (p *peer, err error) {
	folder, err := filepath.Abs(b.peers)
	if err != nil {
		return nil, err
	}
	p = &peer{}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	dir := filepath.Join(b.dir, "peer")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	redis, err := ports.Reserve() // released when this process ends
	if err != nil {
		return nil, err
	}
	_, redisPort, err := net.SplitHostPort(redis.Address())
	if err != nil {
		return nil, err
	}
	p.redis, err = startPeerProgram(ctx, redis.Address(), dir, "redis-server", "--bind", "127.0.0.1", "--port", redisPort, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	if err != nil {
		return nil, err
	}
	gateway, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.toml")
	content := fmt.Sprintf(peerConfig, gateway.Address(), redisPort, peerNamespace, peerSecret)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return nil, err
	}
	p.child, err = startPeerProgram(ctx, gateway.Address(), folder, filepath.Join(folder, "otpgateway"), "--config", config)
	return p, err
}

// startPeerProgram starts a program in a folder and returns when it accepts connections.
func startPeerProgram(ctx context.Context, address, dir, program string, args ...string) (*child, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return startListening(ctx, cmd, address)
}

func (p *peer) stop() {
	for _, c := range []*child{p.child, p.redis} {
		if c != nil {
			c.kill()
		}
	}
}

// readCost implements payer.
func (p *peer) readCost() (cost, error) {
	used, err := p.child.readCost()
	if err != nil {
		return cost{}, err
	}
	redis, err := p.redis.readCost()
	used.store = redis.server
	return used, err
}

func (p *peer) renderInit(load.Turn) ([]byte, error) { return p.renderNew(p.made.Add(1)), nil }

// renderNew renders the request that stores a password under an id.
func (p *peer) renderNew(id int64) []byte {
	return p.render(http.MethodPut, fmt.Sprintf("/api/otp/number%020d", id), "provider=none&otp="+peerCode)
}

func (p *peer) render(method, path, form string) []byte {
	credentials := base64.StdEncoding.EncodeToString([]byte(peerNamespace + ":" + peerSecret))
	return load.Request(method, path, http.Header{
		"Authorization": {"Basic " + credentials}, "Content-Type": {"application/x-www-form-urlencoded"},
	}, []byte(form))
}

// verifyCodes stores n passwords, enters each, and returns their ids.
func (p *peer) verifyCodes(ctx context.Context, n int) ([]int64, error) {
	ids := make([]int64, n)
	conn, err := load.Dial(ctx, p.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // no longer needed
	for i := range ids {
		ids[i] = p.made.Add(1)
		for _, request := range [][]byte{
			p.renderNew(ids[i]),
			p.render(http.MethodPost, fmt.Sprintf("/api/otp/number%020d", ids[i]), "action=check&skip_delete=true&otp="+peerCode),
		} {
			status, body, err := conn.Do(request)
			if err != nil {
				return nil, err
			}
			if status != http.StatusOK {
				return nil, &load.StatusError{Status: status, Body: string(body)}
			}
		}
	}
	return ids, nil
}

// renderStatus renders a question about each password in turn.
func (p *peer) renderStatus(ids []int64) renderer {
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = p.render(http.MethodPost, fmt.Sprintf("/api/otp/number%020d/status", id), "")
	}
	return func(turn load.Turn) ([]byte, error) { return requests[turn.N%int64(len(requests))], nil }
}
