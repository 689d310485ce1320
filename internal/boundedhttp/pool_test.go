package boundedhttp

import (
	"errors"
	"net"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// newPoolWithConns returns a pool with room for that many connections, and connections that are not in it yet.
func newPoolWithConns(t *testing.T, room, many int) (*pool, []*conn) {
	t.Helper()
	p := newPool(int64(room)*ConnectionCost, false)
	conns := make([]*conn, many)
	for i := range conns {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
		conns[i] = newConn(a, nil, p)
	}
	return p, conns
}

// leavingConns returns the indices of the leaving connections.
func (p *pool) leavingConns(conns []*conn) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []int
	for i, c := range conns {
		if c.seat.state == leaving {
			left = append(left, i)
		}
	}
	return left
}

// The test follows the table in the package documentation: the transitions, and which connection is evicted in each state.
func TestPool_states(t *testing.T) {
	const body, noBody = true, false
	for name, test := range map[string]struct {
		steps func(p *pool, c *conn)
		state state
		goes  bool
	}{
		"new":                 {func(*pool, *conn) {}, awaiting, true},
		"header came":         {func(p *pool, c *conn) { p.trackState(c, http.StateActive) }, awaiting, true},
		"handler begins":      {func(p *pool, c *conn) { p.beginHandler(c, noBody) }, working, false},
		"handler awaits body": {func(p *pool, c *conn) { p.beginHandler(c, body) }, receiving, true},
		"body came":           {func(p *pool, c *conn) { p.beginHandler(c, body); p.finishBody(c) }, working, false},
		"answer":              {func(p *pool, c *conn) { p.beginHandler(c, noBody); p.beginAnswer(c) }, answering, true},
		"answer before body":  {func(p *pool, c *conn) { p.beginHandler(c, body); p.beginAnswer(c) }, answering, true},
		"body during answer":  {func(p *pool, c *conn) { p.beginHandler(c, body); p.beginAnswer(c); p.finishBody(c) }, answering, true},
		"answered":            {func(p *pool, c *conn) { p.beginHandler(c, noBody); p.beginAnswer(c); p.trackState(c, http.StateIdle) }, awaiting, true},
		"next request": {func(p *pool, c *conn) {
			p.trackState(c, http.StateIdle)
			p.trackState(c, http.StateActive)
			p.beginHandler(c, noBody)
		}, working, false},
		"long header at work":  {func(p *pool, c *conn) { p.beginHandler(c, noBody); p.addCost(c, ConnectionCost/2) }, working, false},
		"refused by its limit": {func(p *pool, c *conn) { p.markUnserved(c) }, awaiting, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, conns := newPoolWithConns(t, 1, 2)
			p.trackState(conns[0], http.StateNew)
			test.steps(p, conns[0])
			g.Expect(conns[0].seat.state).To(Equal(test.state))
			p.trackState(conns[1], http.StateNew)
			if test.goes {
				g.Expect(p.leavingConns(conns)).To(Equal([]int{0}))
			} else {
				g.Expect(p.leavingConns(conns)).To(Equal([]int{1}), "a request in progress must not be evicted")
			}
			for _, late := range []func(){func() { p.finishBody(conns[0]) }, func() { p.trackState(conns[0], http.StateIdle) }} {
				late()
			}
			if test.goes {
				g.Expect(conns[0].seat.state).To(Equal(leaving), "an evicted connection must stay leaving")
			}
			p.trackState(conns[0], http.StateClosed)
			p.trackState(conns[1], http.StateClosed)
			g.Expect([]int64{int64(p.open), p.cost, p.parting, int64(p.waiting.Len())}).To(Equal([]int64{0, 0, 0, 0}))
		})
	}
}

func TestPool_theLongestWaitingMakesRoom(t *testing.T) {
	g := NewWithT(t)
	p, conns := newPoolWithConns(t, 3, 5)
	for i := range 3 {
		p.trackState(conns[i], http.StateNew)
	}
	p.trackState(conns[0], http.StateActive) // moves to the end of the queue
	p.trackState(conns[3], http.StateNew)
	g.Expect(p.leavingConns(conns)).To(Equal([]int{1}))
	p.trackState(conns[4], http.StateNew)
	g.Expect(p.leavingConns(conns)).To(Equal([]int{1, 2}))
}

func TestPool_costs(t *testing.T) {
	g := NewWithT(t)
	p, conns := newPoolWithConns(t, 4, 4)
	for _, c := range conns {
		p.trackState(c, http.StateNew)
	}
	p.addCost(conns[3], 2*ConnectionCost)
	g.Expect(p.leavingConns(conns)).To(Equal([]int{0, 1}), "a growing header must evict others")
	p.addCost(conns[3], 2*ConnectionCost)
	g.Expect(p.leavingConns(conns)).To(HaveLen(2), "the same cost must count once")
	g.Expect(p.cost).To(BeEquivalentTo(6 * ConnectionCost))
	p.trackState(conns[3], http.StateIdle)
	g.Expect(p.cost).To(BeEquivalentTo(4*ConnectionCost), "the cost must end with the request")
	p.addCost(conns[3], 100*ConnectionCost)
	g.Expect(p.leavingConns(conns)).To(Equal([]int{0, 1, 2, 3}), "a connection over the whole budget must be evicted itself")
}

// A leaving connection counts until net/http has released it, and none is accepted in its place before that.
func TestPool_acceptsNoFasterThanOthersLeave(t *testing.T) {
	g := NewWithT(t)
	p, conns := newPoolWithConns(t, 4, 6)
	for _, c := range conns {
		p.trackState(c, http.StateNew)
	}
	g.Expect(p.leavingConns(conns)).To(HaveLen(2))
	room := make(chan struct{})
	go func() {
		p.awaitRoom()
		close(room)
	}()
	g.Consistently(room).ShouldNot(BeClosed())
	p.trackState(conns[0], http.StateClosed)
	g.Eventually(room).Should(BeClosed())

	p.addCost(conns[5], 2*ConnectionCost) // evicts two more
	closed := make(chan struct{})
	go func() {
		p.awaitRoom()
		close(closed)
	}()
	p.close()
	g.Eventually(closed).Should(BeClosed())
}

func TestBudget(t *testing.T) {
	const mebibyte = 1 << 20
	for name, test := range map[string]struct {
		limit  int64
		cgroup string
		want   int64
	}{
		"the usual pod":       {240 * mebibyte, "268435456\n", 80 * mebibyte},
		"a container alone":   {1<<63 - 1, "125829120\n", 40 * mebibyte},
		"a tiny pod":          {1 * mebibyte, "max\n", minConnections * ConnectionCost},
		"a large pod":         {1 << 40, "max\n", maxConnections * ConnectionCost},
		"a machine":           {1<<63 - 1, "max\n", usualMemory / connectionsShare},
		"no cgroup at all":    {1<<63 - 1, "", usualMemory / connectionsShare},
		"Go's limit is lower": {90 * mebibyte, "268435456\n", 30 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(computeBudget(test.limit, test.cgroup)).To(Equal(test.want))
		})
	}
}
