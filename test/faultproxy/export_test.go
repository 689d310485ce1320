package faultproxy

// Left is how many answers are to be lost yet.
func (p *Proxy) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut.left
}
