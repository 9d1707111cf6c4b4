package port

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// snapLength is the longest frame that our pcap files declare, libpcap's maximum.
const snapLength = 262144

// recordHeader is the size of a record's header in front of each frame of a pcap file: seconds,
// fraction, captured length, length.
const recordHeader = 16

// fileBuffer is the size of a file's buffer in bytes. It exceeds one core's cache, because bytes
// that one core has just written are slow to read for another.
const fileBuffer = 256 << 10

// pcapWriter writes a pcap file of Ethernet frames (draft-ietf-opsawg-pcap). It writes the records
// itself, because gopacket takes several times as long for them.
//
// A separate goroutine, writeFull, writes full buffers to the file. So adding records waits for the kernel only if the
// goroutine is two buffers behind.
type pcapWriter struct {
	file  *os.File
	buf   []byte // records that were passed neither to the file nor to the goroutine
	at    uint64 // timestamp as in a record: seconds, followed by microseconds
	full  chan []byte
	empty chan []byte
	busy  sync.WaitGroup // full buffers that are not written yet
	err   error          // the goroutine's error; the goroutine owns it while busy is not zero
}

func createPcap(path string) (*pcapWriter, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &pcapWriter{file: file}
	if err := pcapgo.NewWriter(file).WriteFileHeader(snapLength, layers.LinkTypeEthernet); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

func (w *pcapWriter) stamp(at time.Time) {
	w.at = uint64(uint32(at.Unix())) | uint64(at.Nanosecond()/1000)<<32
}

func (w *pcapWriter) write(frame []byte) error {
	if len(frame) > snapLength {
		return fmt.Errorf("a frame of %d bytes: want at most %d", len(frame), snapLength)
	}
	if len(w.buf)+recordHeader+len(frame) > cap(w.buf) {
		w.pass()
	}
	n := uint64(len(frame))
	b := binary.LittleEndian.AppendUint64(w.buf, w.at)
	b = binary.LittleEndian.AppendUint64(b, n|n<<32)
	w.buf = append(b, frame...)
	return nil
}

// pass gives the records to the goroutine and starts an empty buffer.
func (w *pcapWriter) pass() {
	switch {
	case w.buf == nil:
		w.buf = make([]byte, 0, fileBuffer)
		return
	case w.full == nil:
		w.full, w.empty = make(chan []byte, 1), make(chan []byte, 3)
		w.empty <- make([]byte, 0, fileBuffer)
		w.empty <- make([]byte, 0, fileBuffer)
		go w.writeFull()
	}
	w.busy.Add(1)
	w.full <- w.buf
	w.buf = <-w.empty
}

// writeFull runs as the goroutine that writes full buffers to the file. After an error it writes no more; flush reports
// the error.
func (w *pcapWriter) writeFull() {
	for b := range w.full {
		if w.err == nil {
			_, w.err = w.file.Write(b)
		}
		w.empty <- b[:0]
		w.busy.Done()
	}
}

func (w *pcapWriter) flush() error {
	w.busy.Wait()
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.file.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}

func (w *pcapWriter) close() error {
	err := w.flush()
	if w.full != nil {
		close(w.full)
	}
	return errors.Join(err, w.file.Close())
}

// pcapReader reads a pcap or pcapng file one frame ahead.
type pcapReader struct {
	path    string
	port    uint32
	file    *os.File
	packets gopacket.ZeroCopyPacketDataSource
	data    []byte // the current frame, valid until next
	at      int64  // nanoseconds since 1970
	end     bool
}

func openPcap(path string, port uint32) (*pcapReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &pcapReader{path: path, port: port, file: file}
	in := bufio.NewReaderSize(file, fileBuffer)
	if magic, _ := in.Peek(4); string(magic) == "\x0a\x0d\x0d\x0a" {
		r.packets, err = pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
	} else {
		var old *pcapgo.Reader
		if old, err = pcapgo.NewReader(in); err == nil {
			old.SetSnaplen(snapLength) // some programs write longer frames than they declare
		}
		r.packets = old
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: not a pcap file: want version 2.4 or pcapng: %w", path, unexpectedEOF(err)), file.Close())
	}
	return r, nil
}

func (r *pcapReader) next() error {
	data, info, err := r.packets.ZeroCopyReadPacketData()
	switch captured, length := info.CaptureLength, info.Length; {
	case err == io.EOF && length == 0:
		r.end, r.data = true, nil
		return nil
	case captured > snapLength:
		return fmt.Errorf("%s: a frame of %d bytes: want at most %d", r.path, captured, snapLength)
	case err != nil:
		return fmt.Errorf("%s: a frame of %d bytes is cut off: %w", r.path, captured, unexpectedEOF(err))
	case captured != length:
		return fmt.Errorf("%s: a frame of %d bytes was captured with %d bytes only: want whole frames", r.path, length, captured)
	}
	r.data, r.at = data, info.Timestamp.UnixNano()
	return nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
