package pgproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Types of messages: first those of the client, then those of the server.
const (
	typeBind    = 'B'
	typeClose   = 'C'
	typeExecute = 'E'
	typeParse   = 'P'
	typeQuery   = 'Q'
	typeSync    = 'S'

	typeCommandComplete    = 'C'
	typeEmptyQueryResponse = 'I'
	typeErrorResponse      = 'E'
	typePortalSuspended    = 's'
	typeReadyForQuery      = 'Z'
)

// Codes with which a connection may begin instead of a version.
const (
	codeCancel    = 80877102
	codeTLS       = 80877103
	codeGSS       = 80877104
	codeMinLength = 8
)

// maxMessage is larger than any message of a test, in bytes.
const maxMessage = 64 << 20

// flush requests the results of the statements that were sent so far.
var flush = []byte{'H', 0, 0, 0, 4} //nolint:gochecknoglobals // a constant

// message is one message with its header.
type message struct {
	kind byte
	raw  []byte
}

// body returns the message without its type and length.
func (m message) body() []byte { return m.raw[5:] }

// errorOf returns the message of an ErrorResponse; empty if it is none.
func errorOf(m message) string {
	var response pgproto3.ErrorResponse
	if m.kind != typeErrorResponse || response.Decode(m.body()) != nil {
		return ""
	}
	return response.Message
}

// readMessage reads one message.
func readMessage(from *bufio.Reader) (message, error) {
	var header [5]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return message{}, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if length < 4 || length > maxMessage {
		return message{}, fmt.Errorf("a message of type %q has length %d", header[0], length)
	}
	raw := make([]byte, 1+length)
	copy(raw, header[:])
	_, err := io.ReadFull(from, raw[5:])
	return message{kind: header[0], raw: raw}, err
}

// readStartup reads the first message of a connection, which has no type, and returns it with its code.
func readStartup(from *bufio.Reader) (raw []byte, code uint32, err error) {
	head, err := from.Peek(codeMinLength)
	if err != nil {
		return nil, 0, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < codeMinLength || length > maxMessage {
		return nil, 0, fmt.Errorf("a startup message has length %d", length)
	}
	raw = make([]byte, length)
	_, err = io.ReadFull(from, raw)
	return raw, binary.BigEndian.Uint32(raw[4:]), err
}
