package boundedhttp

import "bytes"

// header counts what was sent of one request before its body.
type header struct {
	bytes int
	lines int // that ended, the request line among them and the blank one not
	// length is how much of the current line was sent, and carriage reports whether that is a lone CR.
	length   int
	carriage bool
	ended    bool // the blank line came
	ahead    bool // and a byte after it
}

// scan counts p up to the end of the header. It returns how much of p belongs to it.
func (h *header) scan(p []byte) int {
	n := 0
	if h.ended && !h.ahead && len(p) > 0 {
		// net/http reads one byte ahead before the handler begins, and that must not be one too many.
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

// endLine reports whether the line was the blank one.
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

// long reports whether the header costs more than ConnectionCost has room for.
func (h *header) long() bool { return h.bytes > longHeaderBytes || h.lines > longHeaderFields+1 }

// tooLarge reports whether the header is over a limit. The request line is no field.
func (h *header) tooLarge() bool { return h.bytes > MaxHeaderBytes || h.lines > MaxHeaderFields+1 }
