package bmv2

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
)

// answering is a connection whose other end has sent its answer in advance.
type answering struct {
	net.Conn
	answer io.Reader
}

func (a *answering) Read(b []byte) (int, error)  { return a.answer.Read(b) }
func (a *answering) Write(b []byte) (int, error) { return len(b), nil }

// FuzzReply: for any answer of a switch's Thrift server, a call ends, with or without an error.
func FuzzReply(f *testing.F) {
	reply := func(kind thrift.TMessageType, name string, body ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, thrift.VERSION_1|uint32(kind))
		b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
		b = binary.BigEndian.AppendUint32(append(b, name...), 1)
		return append(b, body...)
	}
	f.Add(reply(thrift.REPLY, setRate, 0))
	f.Add(reply(thrift.REPLY, setRate, 8, 0, 0, 0, 0, 0, 0, 0))
	f.Add(reply(thrift.EXCEPTION, setRate, 11, 0, 1, 0, 0, 0, 1, 'x', 0))
	f.Add(reply(thrift.REPLY, "another", 0))
	f.Add(reply(thrift.REPLY, setRate, 11, 0, 1, 0x7f, 0xff, 0xff, 0xff)) // a text of 2 GB
	f.Add(reply(thrift.REPLY, setRate, bytes.Repeat([]byte{12, 0, 1}, 2000)...))
	f.Fuzz(func(t *testing.T, answer []byte) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := newClient(&answering{ours, bytes.NewReader(answer)})
		if err := c.SetQueueRate(context.Background(), 1, 2); err == nil && len(answer) == 0 {
			t.Error("no answer is success")
		}
		_ = c.Close()
	})
}
