package operator

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// callers bound how often the API server is asked about tokens of strangers, for each address and in all.
type callers struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	all       *rate.Limiter
	byAddress map[netip.Prefix]*rate.Limiter
}

func newCallers(c clock.PassiveClock) *callers {
	return &callers{
		clock: c, all: rate.NewLimiter(reviewRate, reviewBurst), byAddress: make(map[netip.Prefix]*rate.Limiter),
	}
}

// takeReview reports whether a question may be asked for the caller at this address, as net/http has it.
func (c *callers) takeReview(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now() // after the lock: an earlier time would set a limiter back
	caller := prefixOf(address)
	limiter := c.byAddress[caller]
	if limiter == nil {
		if len(c.byAddress) >= maxCallers {
			c.forgetIdle()
		}
		if len(c.byAddress) >= maxCallers {
			return false
		}
		limiter = rate.NewLimiter(callerRate, callerBurst)
		c.byAddress[caller] = limiter
	}
	return limiter.AllowN(now, 1) && c.all.AllowN(now, 1)
}

// forgetIdle forgets the addresses that have asked for nothing for so long that it makes no difference.
func (c *callers) forgetIdle() {
	now := c.clock.Now()
	for caller, limiter := range c.byAddress {
		if limiter.TokensAt(now) >= callerBurst {
			delete(c.byAddress, caller)
		}
	}
}

// prefixOf returns the part of a host:port that counts; what is no address counts as one.
func prefixOf(address string) netip.Prefix {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip := parsed.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = ipv6Bits
	}
	return netip.PrefixFrom(ip, bits).Masked()
}
