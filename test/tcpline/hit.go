package tcpline

import "maps"

// Hit is something that a line broke.
type Hit struct {
	// What is an operation, as the line's user names it.
	What string
	// Client is who it came from, by the name that the line's user gives; without one, the address as host:port.
	Client string
}

// Hits counts them.
type Hits map[Hit]int

// Count adds one to a copy, so that who holds the former counts keeps them.
func (h Hits) Count(what, client string) Hits {
	counted := maps.Clone(h)
	if counted == nil {
		counted = Hits{}
	}
	counted[Hit{what, client}]++
	return counted
}

// Of returns how many of one thing there are.
func (h Hits) Of(what string) (n int) {
	for hit, count := range h {
		if hit.What == what {
			n += count
		}
	}
	return n
}
