package port

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

// snapLength is the longest frame that our pcap files declare, libpcap's maximum.
const snapLength = 262144

// linkTypeEthernet is LINKTYPE_ETHERNET of the pcap format.
const linkTypeEthernet = 1

// recordHeader is the size of a record's header in front of each frame of a pcap file: seconds,
// fraction, captured length, length.
const recordHeader = 16

// fileBuffer is the size of a file's buffer in bytes. It exceeds one core's cache, because bytes
// that one core has just written are slow to read for another.
const fileBuffer = 256 << 10

// pcapWriter writes a pcap file of Ethernet frames (draft-ietf-opsawg-pcap). gopacket could do the
// same at several times the cost, and would add 2 MB of decoders to the binary.
//
// A goroutine of its own writes full buffers. So adding records waits for the kernel only if that
// is two buffers behind.
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
	h := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	h = binary.LittleEndian.AppendUint16(h, 2) // version 2.4
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = binary.LittleEndian.AppendUint64(h, 0) // reserved
	h = binary.LittleEndian.AppendUint32(h, snapLength)
	h = binary.LittleEndian.AppendUint32(h, linkTypeEthernet)
	if _, err := file.Write(h); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

// stamp sets the timestamp of the records that follow.
func (w *pcapWriter) stamp(at time.Time) {
	w.at = uint64(uint32(at.Unix())) | uint64(at.Nanosecond()/1000)<<32
}

// write adds a record.
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

// writeFull is the goroutine. After an error it writes no more; flush reports the error.
func (w *pcapWriter) writeFull() {
	for b := range w.full {
		if w.err == nil {
			_, w.err = w.file.Write(b)
		}
		w.empty <- b[:0]
		w.busy.Done()
	}
}

// flush writes all records to the file.
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

// pcapReader reads a pcap or pcapng file one frame ahead. The frame stays in the reader's buffer.
type pcapReader struct {
	path    string
	port    uint32
	file    *os.File
	buf     []byte // bytes read and not used yet, valid until next
	room    []byte // the buffer that buf is part of
	swapped bool   // numbers are big-endian
	unit    int64  // unit of a timestamp's fraction, nanoseconds
	data    []byte // the current frame, valid until next
	at      int64  // nanoseconds since 1970
	end     bool
	ng      *pcapgo.NgReader // of a pcapng file, for which only path, file and the frame's fields above are used
}

func openPcap(path string, port uint32) (*pcapReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &pcapReader{path: path, port: port, file: file, room: make([]byte, fileBuffer)}
	if err := r.header(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: not a pcap file: %w", path, err), file.Close())
	}
	return r, nil
}

// have reads until buf has n bytes. It returns io.EOF if the file ends before the first of them
// and io.ErrUnexpectedEOF if it ends before the last.
func (r *pcapReader) have(n int) error {
	if n > len(r.room) { // a jumbogram
		r.room = make([]byte, recordHeader+snapLength)
	}
	r.buf = r.room[:copy(r.room, r.buf)]
	k, err := io.ReadAtLeast(r.file, r.room[len(r.buf):], n-len(r.buf))
	if len(r.buf) > 0 {
		err = unexpectedEOF(err)
	}
	r.buf = r.room[:len(r.buf)+k]
	return err
}

// number reads a number in the file's byte order.
func (r *pcapReader) number(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if r.swapped {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// header reads the file's header (draft-ietf-opsawg-pcap, section 4).
func (r *pcapReader) header() error {
	const size = 24
	if err := r.have(size); err != nil {
		return err
	}
	magic := r.number(r.buf)
	if magic == 0x0a0d0d0a { // pcapng; the number is the same in either byte order
		var err error
		r.ng, err = pcapgo.NewNgReader(io.MultiReader(bytes.NewReader(r.buf), r.file), pcapgo.DefaultNgReaderOptions)
		return err
	}
	switch magic {
	case 0xa1b2c3d4, 0xa1b23c4d:
	case 0xd4c3b2a1, 0x4d3cb2a1:
		r.swapped = true
	default:
		return fmt.Errorf("magic number %#08x: want 0xa1b2c3d4 or 0xa1b23c4d in either byte order, or pcapng's 0x0a0d0d0a", magic)
	}
	r.unit = 1000
	if r.number(r.buf) == 0xa1b23c4d {
		r.unit = 1
	}
	version := r.number(r.buf[4:])
	major, minor := version&0xffff, version>>16
	if r.swapped {
		major, minor = minor, major
	}
	if major != 2 || minor > 4 {
		return fmt.Errorf("version %d.%d: want 2.4", major, minor)
	}
	r.buf = r.buf[size:]
	return nil
}

// next moves to the next frame, or to the end.
func (r *pcapReader) next() error {
	if r.ng != nil {
		return r.nextNg()
	}
	if len(r.buf) < recordHeader {
		switch err := r.have(recordHeader); {
		case err == io.EOF:
			r.end, r.data = true, nil
			return nil
		case err != nil:
			return fmt.Errorf("%s: a record is cut off: %w", r.path, err)
		}
	}
	captured, length := r.number(r.buf[8:]), r.number(r.buf[12:])
	if err := r.whole(int(captured), int(length)); err != nil {
		return err
	}
	n := recordHeader + int(captured)
	if len(r.buf) < n {
		if err := r.have(n); err != nil {
			return fmt.Errorf("%s: a frame of %d bytes is cut off: %w", r.path, captured, err)
		}
	}
	r.at = int64(r.number(r.buf))*1e9 + int64(r.number(r.buf[4:]))*r.unit
	r.data, r.buf = r.buf[recordHeader:n], r.buf[n:]
	return nil
}

// nextNg does what next does, for a pcapng file (draft-ietf-opsawg-pcapng).
func (r *pcapReader) nextNg() error {
	data, info, err := r.ng.ZeroCopyReadPacketData()
	switch {
	case err == io.EOF:
		r.end, r.data = true, nil
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.data, r.at = data, info.Timestamp.UnixNano()
	return r.whole(info.CaptureLength, info.Length)
}

// whole refuses frames that are too long or were not captured completely.
func (r *pcapReader) whole(captured, length int) error {
	switch {
	case captured > snapLength:
		return fmt.Errorf("%s: a frame of %d bytes: want at most %d", r.path, captured, snapLength)
	case captured != length:
		return fmt.Errorf("%s: a frame of %d bytes was captured with %d bytes only: want whole frames", r.path, length, captured)
	}
	return nil
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
