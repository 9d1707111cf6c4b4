package clients

import (
	"encoding/binary"
	"errors"
	"net"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// maxReceiving bounds the bytes of messages that have arrived in part, of all clients. It has room for the largest
// message of P4Runtime (128 MiB).
const maxReceiving = 160 << 20

// Bounds of what gRPC keeps for a connection and for a stream whose handler does not read it, in bytes. A message that a
// handler reads may be larger.
const (
	connWindow   = 1 << 20
	streamWindow = 1 << 16
)

var errReceiving = errors.New("messages that have arrived in part use all of their memory, and this connection has the most")

// counted are credentials whose connections count the bytes of messages that have arrived in part. gRPC offers no
// hook before a message is whole.
type counted struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(raw)
	if a, ok := raw.RemoteAddr().(addr); ok && err == nil {
		secured = &inbound{Conn: secured, of: a.conn, skip: len(http2.ClientPreface), streams: map[uint32]*partial{}}
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (c counted) Clone() credentials.TransportCredentials {
	return counted{c.TransportCredentials.Clone()}
}

// inbound follows the HTTP/2 frames (RFC 9113, section 4.1) that a client sends, and in them gRPC's messages.
type inbound struct {
	net.Conn
	of *conn

	skip    int     // bytes until the next frame's header, or until the end of the padding
	header  [9]byte // of the current frame
	has     int     // bytes of header that have arrived
	data    int     // bytes of the current DATA frame that are still to come
	padding int     // bytes after them
	padded  bool    // the length of the padding comes next
	last    bool    // the DATA frame ends its stream
	streams map[uint32]*partial
}

// partial is a message that has arrived in part.
type partial struct {
	prefix [prefixBytes]byte // compressed or not, and the length
	has    int               // bytes of prefix that have arrived
	left   int64             // bytes that are still to come
	bytes  int64             // bytes that have arrived, and the cost of this entry
}

const (
	prefixBytes = 5  // of a message in gRPC
	cost        = 64 // bytes of memory of a message's entry, so that many short ones count too
)

// Read implements net.Conn.
func (c *inbound) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if d := c.follow(p[:n]); d != 0 && !c.of.receive(d) {
		return 0, errReceiving
	}
	return n, err
}

// follow returns by how many bytes the messages grew that have arrived in part.
func (c *inbound) follow(p []byte) (grown int64) {
	for len(p) > 0 {
		var n int
		switch {
		case c.skip > 0:
			n = min(c.skip, len(p))
			c.skip -= n
		case c.padded:
			n, c.padded = 1, false
			c.padding = min(int(p[0]), c.data)
			c.data -= c.padding
			grown += c.ended()
		case c.data > 0:
			n = min(c.data, len(p))
			grown += c.message(p[:n])
			c.data -= n
			grown += c.ended()
		default:
			n = copy(c.header[c.has:], p)
			if c.has += n; c.has == len(c.header) {
				c.has = 0
				grown += c.frame()
			}
		}
		p = p[n:]
	}
	return grown
}

// ended ends a DATA frame of which only padding is left.
func (c *inbound) ended() (grown int64) {
	if c.data > 0 {
		return 0
	}
	c.skip, c.padding = c.padding, 0
	if c.last {
		grown = c.drop(c.stream())
	}
	return grown
}

// frame begins a frame whose header has arrived.
func (c *inbound) frame() (grown int64) {
	length := int(binary.BigEndian.Uint32(c.header[:]) >> 8)
	flags := http2.Flags(c.header[4])
	switch http2.FrameType(c.header[3]) {
	case http2.FrameData:
		c.data, c.last = length, flags.Has(http2.FlagDataEndStream)
		if c.padded = length > 0 && flags.Has(http2.FlagDataPadded); c.padded {
			c.data--
		} else {
			grown = c.ended()
		}
	case http2.FrameRSTStream:
		grown = c.drop(c.stream())
		c.skip = length
	default:
		c.skip = length
	}
	return grown
}

// stream is the stream of the current frame.
func (c *inbound) stream() uint32 { return binary.BigEndian.Uint32(c.header[5:]) & (1<<31 - 1) }

// drop forgets a stream's message.
func (c *inbound) drop(stream uint32) (grown int64) {
	if m := c.streams[stream]; m != nil {
		grown = -m.bytes
		delete(c.streams, stream)
	}
	return grown
}

// message follows bytes of a stream's messages.
func (c *inbound) message(p []byte) (grown int64) {
	id := c.stream()
	m := c.streams[id]
	for len(p) > 0 {
		if m == nil {
			if n := whole(p); n > 0 { // most messages arrive in one frame
				p = p[n:]
				continue
			}
			m = &partial{bytes: cost}
			c.streams[id] = m
			grown += cost
		}
		var n int64
		if m.has < len(m.prefix) {
			n = int64(copy(m.prefix[m.has:], p))
			if m.has += int(n); m.has == len(m.prefix) {
				m.left = int64(binary.BigEndian.Uint32(m.prefix[1:]))
			}
		} else {
			n = min(m.left, int64(len(p)))
			m.left -= n
		}
		m.bytes += n
		grown += n
		if p = p[n:]; m.has == len(m.prefix) && m.left == 0 {
			grown += c.drop(id)
			m = nil
		}
	}
	return grown
}

// whole returns the length of the message at the front of p with its prefix, 0 if p has not all of it.
func whole(p []byte) int {
	if len(p) < prefixBytes {
		return 0
	}
	if n := int64(binary.BigEndian.Uint32(p[1:])); n <= int64(len(p)-prefixBytes) {
		return prefixBytes + int(n)
	}
	return 0
}

// receive counts bytes of messages that have arrived in part. When these take too much memory it closes the connection with the
// most, and it returns false if that is c.
func (c *conn) receive(grown int64) bool {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.receiving += grown
	}
	c.mu.Unlock()
	if closed || c.budget.receiving.Add(grown) <= c.budget.maxReceiving || grown < 0 {
		return !closed
	}
	most := c.budget.largest()
	if most == nil { // closed meanwhile
		return false
	}
	if most.listener != nil {
		most.listener.Log.Warn("a connection is closed: messages that have arrived in part use all of their memory, and it has the most",
			"listener", most.listener.Name, "client", most.RemoteAddr().String(), "limit", c.budget.maxReceiving)
	}
	c.budget.closed.Add(1)
	_ = most.Close()
	return most != c
}

// largest returns the open connection whose messages that have arrived in part are the largest together.
func (b *Budget) largest() (most *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := int64(0)
	for c := range b.conns {
		c.mu.Lock()
		if c.receiving > bytes {
			most, bytes = c, c.receiving
		}
		c.mu.Unlock()
	}
	return most
}
