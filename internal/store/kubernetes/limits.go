package kubernetes

// maxCallers is how many callers of a kind are told apart at once; of the one unused for longest nothing is remembered.
const maxCallers = 10_000

// limits are those on reads for what the informer does not know. Honest callers come near none of them: what is found
// counts for nothing, and the store is made for about five verifications a second.
type limits struct {
	// client is for each API key that asks for ids which were never, or are no longer, stored; clients for all of them.
	client, clients allowance
	// sender is for each sender of codes that no request has: a few mistakes, and then one in ten seconds.
	sender, senders allowance
	// codes is for the reads of all manual requests, which unknown codes lead to. All codes of one moment share a read.
	codes allowance
}

func defaultLimits() limits {
	return limits{
		client: allowance{perSecond: 20, burst: 100}, clients: allowance{perSecond: 50, burst: 200},
		sender: allowance{perSecond: 0.1, burst: 5}, senders: allowance{perSecond: 20, burst: 100},
		codes: allowance{perSecond: 2, burst: 20},
	}
}
