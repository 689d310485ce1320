package faultproxy

// Left returns how many answers are still to be cut.
func (p *Proxy) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut.left
}
