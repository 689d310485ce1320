package operator

import (
	"net/netip"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

// takeReview reports whether the API server may be asked about a stranger's token for the caller at this address, as net/http has it.
func (h *guard) takeReview(address string) bool {
	each := tokenbucket.Rate{PerSecond: callerRate, Burst: callerBurst}
	all := tokenbucket.Rate{PerSecond: reviewRate, Burst: reviewBurst}
	return h.callers.TakeBoth(prefixOf(address), each, all, h.Clock.Now()) == tokenbucket.BoundOfNone
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
