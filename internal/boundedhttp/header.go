package boundedhttp

import "bytes"

// header counts the bytes and lines of a request before its body.
type header struct {
	bytes int
	lines int // complete ones, with the request line and without the blank line
	// length is the number of bytes of the current line, and carriage reports whether it is a single CR.
	length   int
	carriage bool
	ended    bool // the blank line was read
	ahead    bool // and one byte after it
}

// countBytes counts p up to the end of the header. It returns how many bytes of p belong to the header.
func (h *header) countBytes(p []byte) int {
	n := 0
	if h.ended && !h.ahead && len(p) > 0 {
		// net/http reads one byte ahead before the handler starts, which must not count against the limit.
		h.ahead = true
		n = 1
	}
	uncounted := n
	for n < len(p) {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			h.addToLine(p[n:])
			n = len(p)
			break
		}
		h.addToLine(p[n : n+i])
		n += i + 1
		if h.endLine() {
			break
		}
	}
	h.bytes += n - uncounted
	return n
}

func (h *header) addToLine(p []byte) {
	if len(p) == 0 {
		return
	}
	h.carriage = h.length == 0 && len(p) == 1 && p[0] == '\r'
	h.length += len(p)
}

// endLine counts the current line, and reports whether it was the blank line.
func (h *header) endLine() bool {
	blank := h.length == 0 || h.carriage
	h.length, h.carriage = 0, false
	if blank && !h.ended {
		h.ended = true
		return true
	}
	h.lines++
	return blank
}

// isLong reports whether the header uses more memory than ConnectionCost includes.
func (h *header) isLong() bool { return h.bytes > longHeaderBytes || h.lines > longHeaderFields+1 }

// isTooLarge reports whether the header is over a limit. The request line does not count as a field.
func (h *header) isTooLarge() bool { return h.bytes > MaxHeaderBytes || h.lines > MaxHeaderFields+1 }
