package kubernetes

import "github.com/phoneproof/phoneproof/internal/tokenbucket"

// maxCallers is how many callers of a kind are remembered; the one unused for longest is forgotten.
const maxCallers = 10_000

// readLimits limit reads of ids, codes and bindings that the informer does not know. Honest callers come near none of them: reads
// that find something do not count, and the store is made for about five verifications a second.
type readLimits struct {
	// client is for each API key that asks for ids which were never, or are no longer, stored; clients for all of them.
	client, clients tokenbucket.Rate
	// sender is for each sender of codes that no request has: a few mistakes, and then one in ten seconds.
	sender, senders tokenbucket.Rate
	// codes is for the reads of all manual requests, which unknown codes lead to. All codes of one moment share a read.
	codes tokenbucket.Rate
}

func defaultReadLimits() readLimits {
	return readLimits{
		client: tokenbucket.Rate{PerSecond: 20, Burst: 100}, clients: tokenbucket.Rate{PerSecond: 50, Burst: 200},
		sender: tokenbucket.Rate{PerSecond: 0.1, Burst: 5}, senders: tokenbucket.Rate{PerSecond: 20, Burst: 100},
		codes: tokenbucket.Rate{PerSecond: 2, Burst: 20},
	}
}
