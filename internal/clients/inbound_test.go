package clients

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// sender is a client that controls how its messages are split.
type sender struct {
	net.Conn
	*http2.Framer
	t *testing.T
}

// newSender opens a connection with n streams, numbered 1, 3, 5 …
func newSender(t *testing.T, l *bufconn.Listener, streams int) *sender {
	conn, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go io.Copy(io.Discard, conn) //nolint:errcheck // ends with the connection
	s := &sender{conn, http2.NewFramer(conn, nil), t}
	_, err = conn.Write([]byte(http2.ClientPreface))
	s.check(err)
	s.check(s.WriteSettings())
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/Endless/Get"}, {":authority", "test"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		s.check(encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	for i := range streams {
		s.check(s.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true}))
		encoder.SetMaxDynamicTableSize(0)
	}
	return s
}

func (s *sender) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestMessagesInPart: the partly received messages of all clients are bounded in memory. The connection with most
// of them is closed and the others stay. A complete message no longer counts.
func TestMessagesInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := New(64<<20), bufconn.Listen(1<<16)
		b.maxReceiving = 1 << 20
		s := grpc.NewServer(append(ServerOptions(b, nil, nil), grpc.MaxRecvMsgSize(1<<20))...)
		s.RegisterService(&endless, nil)
		go s.Serve(Limit(l, Options{Name: "test", Budget: b, Log: slog.New(slog.DiscardHandler)})) //nolint:errcheck // ends with Stop
		t.Cleanup(s.Stop)
		honest := newSender(t, l, 2)
		honest.check(honest.WriteData(1, false, []byte{0, 0, 0, 128, 0, 1, 2, 3})) // three bytes of 32 KiB
		synctest.Wait()
		if s := b.Stats(); s.Receiving != 8+cost {
			t.Errorf("8 bytes of a message: %+v", s)
		}
		for range 4 {
			greedy := newSender(t, l, 40)
			part := append(binary.BigEndian.AppendUint32([]byte{0}, 1<<19), make([]byte, 16000)...)
			for i := 0; i < 80 && greedy.WriteData(uint32(i|1), false, part[i&1*5:]) == nil; i++ {
			}
			synctest.Wait()
			if s := b.Stats(); s.Receiving > 1<<20 {
				t.Errorf("%+v", s)
			}
		}
		if s := b.Stats(); s.Closed != 4 {
			t.Errorf("%d connections were closed, want the 4 with many messages", s.Closed)
		}
		honest.check(honest.WriteData(1, true, make([]byte, 1000)))
		honest.check(honest.WriteRSTStream(3, http2.ErrCodeCancel))
		synctest.Wait()
		if s := b.Stats(); s.Receiving != 0 || s.Listeners[0].Open != 1 {
			t.Errorf("messages that ended too early: %+v", s)
		}
		dial := serve(t, b)
		for range 3 {
			if err := dial().Invoke(t.Context(), "/Endless/Get", wrapperspb.Bytes(make([]byte, 900<<10)), &wrapperspb.BytesValue{}); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if s := b.Stats(); s.Receiving != 0 || s.Closed != 4 {
			t.Errorf("whole messages: %+v", s)
		}
	})
}

// reference counts the bytes of partly received messages by reading the same frames again with http2.Framer. It returns
// false for frames that end a connection.
func reference(stream []byte) (sum int64, legal bool) {
	r := bytes.NewReader(stream)
	f := http2.NewFramer(nil, r)
	f.AllowIllegalReads = true
	f.SetMaxReadFrameSize(1<<24 - 1)
	partial := map[uint32][]byte{}
	for {
		frame, err := f.ReadFrame()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, false
		}
		id := frame.Header().StreamID
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			delete(partial, id)
		case *http2.DataFrame:
			m := append(partial[id], frame.Data()...)
			for len(m) >= 5 && int64(len(m)) >= 5+int64(binary.BigEndian.Uint32(m[1:])) {
				m = m[5+binary.BigEndian.Uint32(m[1:]):]
			}
			if partial[id] = m; len(m) == 0 || frame.StreamEnded() {
				delete(partial, id)
			}
		}
	}
	for _, m := range partial {
		sum += int64(len(m)) + cost
	}
	return sum, true
}

// FuzzInbound: for any input, split in any way, the count of partly received bytes equals that of a reader of whole
// frames.
func FuzzInbound(f *testing.F) {
	var frames bytes.Buffer
	w := http2.NewFramer(&frames, nil)
	_ = w.WriteSettings()
	_ = w.WriteData(1, false, []byte{0, 0, 0, 0, 9, 1, 2, 3})
	_ = w.WriteDataPadded(3, false, []byte{0, 0, 0, 0, 2, 1, 2, 0, 0}, make([]byte, 7))
	_ = w.WriteRSTStream(1, http2.ErrCodeCancel)
	_ = w.WriteDataPadded(5, true, []byte{0, 0, 0, 1, 2, 1, 2, 0, 0}, nil)
	_ = w.WriteData(7, true, nil)
	f.Add(frames.Bytes(), uint8(1))
	f.Add(frames.Bytes(), uint8(200))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		c := &inbound{streams: map[uint32]*partial{}}
		got := int64(0)
		for p := stream; len(p) > 0; {
			n := min(len(p), max(1, int(piece)))
			got += c.follow(p[:n])
			p = p[n:]
		}
		sum := int64(0)
		for _, m := range c.streams {
			sum += m.bytes
		}
		if got != sum || got < 0 {
			t.Fatalf("%d bytes were counted, and %d are kept", got, sum)
		}
		if c.has > 0 || c.skip > 0 || c.data > 0 || c.padded { // the framer returns no incomplete frame
			return
		}
		if want, legal := reference(stream); legal && got != want {
			t.Fatalf("%d bytes in part, want %d", got, want)
		}
	})
}
