package tcpline

import "maps"

// Hit is a connection or call that a proxy broke.
type Hit struct {
	// What is the operation, as the proxy's user names it.
	What string
	// Client is the client, as the proxy's user names it; without a name, its address as host:port.
	Client string
}

// Hits counts hits.
type Hits map[Hit]int

// Count returns a copy with one hit more. Callers that hold the previous counts keep them unchanged.
func (h Hits) Count(what, client string) Hits {
	counted := maps.Clone(h)
	if counted == nil {
		counted = Hits{}
	}
	counted[Hit{what, client}]++
	return counted
}

// Of returns the number of hits of an operation.
func (h Hits) Of(what string) (n int) {
	for hit, count := range h {
		if hit.What == what {
			n += count
		}
	}
	return n
}
