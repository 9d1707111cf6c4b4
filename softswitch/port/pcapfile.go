package port

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// snapLength is what our pcap files declare as the longest frame, libpcap's own maximum.
const snapLength = 262144

// linkTypeEthernet is LINKTYPE_ETHERNET of the pcap format.
const linkTypeEthernet = 1

// recordHeader is the size of what precedes each frame in a pcap file: seconds, fraction,
// captured length, length.
const recordHeader = 16

// pcapWriter writes a pcap file of Ethernet frames (draft-ietf-opsawg-pcap). gopacket does the same
// at several times the cost, with decoders of all protocols in the binary, 2 MB of it.
type pcapWriter struct {
	file *os.File
	buf  *bufio.Writer
	at   uint64 // timestamp as in a record: seconds, followed by microseconds
}

func createPcap(path string) (*pcapWriter, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &pcapWriter{file: file, buf: bufio.NewWriterSize(file, fileBuffer)}
	h := w.buf.AvailableBuffer()
	h = binary.LittleEndian.AppendUint32(h, 0xa1b2c3d4)
	h = binary.LittleEndian.AppendUint16(h, 2) // version 2.4
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = binary.LittleEndian.AppendUint64(h, 0) // reserved
	h = binary.LittleEndian.AppendUint32(h, snapLength)
	h = binary.LittleEndian.AppendUint32(h, linkTypeEthernet)
	w.buf.Write(h) // an error stays until flush
	if err := w.flush(); err != nil {
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
	n := uint64(len(frame))
	h := w.buf.AvailableBuffer()
	h = binary.LittleEndian.AppendUint64(h, w.at)
	h = binary.LittleEndian.AppendUint64(h, n|n<<32)
	if _, err := w.buf.Write(h); err != nil {
		return err
	}
	_, err := w.buf.Write(frame)
	return err
}

func (w *pcapWriter) flush() error { return w.buf.Flush() }

func (w *pcapWriter) close() error { return errors.Join(w.flush(), w.file.Close()) }

// pcapReader reads a pcap file one frame ahead. The frame stays in the reader's buffer.
type pcapReader struct {
	path  string
	port  uint32
	file  *os.File
	buf   *bufio.Reader
	order binary.ByteOrder
	nanos bool   // timestamps are in nanoseconds, not microseconds
	data  []byte // the current frame, valid until next
	used  int    // bytes of buf that belong to it
	at    int64  // nanoseconds since 1970
	end   bool
}

// fileBuffer is the size of a file's buffer, small enough that those of several files stay
// in a core's cache.
const fileBuffer = 64 << 10

func openPcap(path string, port uint32) (*pcapReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &pcapReader{path: path, port: port, file: file, buf: bufio.NewReaderSize(file, fileBuffer)}
	if err := r.header(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: not a pcap file: %w", path, err), file.Close())
	}
	return r, nil
}

// header reads the file's header (draft-ietf-opsawg-pcap, section 4).
func (r *pcapReader) header() error {
	var h [24]byte
	if _, err := io.ReadFull(r.buf, h[:]); err != nil {
		return err
	}
	magic := binary.LittleEndian.Uint32(h[:])
	switch magic {
	case 0xa1b2c3d4, 0xa1b23c4d:
		r.order, r.nanos = binary.LittleEndian, magic == 0xa1b23c4d
	case 0xd4c3b2a1, 0x4d3cb2a1:
		r.order, r.nanos = binary.BigEndian, magic == 0x4d3cb2a1
	default:
		return fmt.Errorf("magic number %#08x: want 0xa1b2c3d4 or 0xa1b23c4d in either byte order", magic)
	}
	if major, minor := r.order.Uint16(h[4:]), r.order.Uint16(h[6:]); major != 2 || minor > 4 {
		return fmt.Errorf("version %d.%d: want 2.4", major, minor)
	}
	return nil
}

// next moves to the next frame, or to the end.
func (r *pcapReader) next() error {
	if _, err := r.buf.Discard(r.used); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.used = 0
	h, err := r.buf.Peek(recordHeader)
	if len(h) == 0 && errors.Is(err, io.EOF) {
		r.end, r.data = true, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: a record is cut off: %w", r.path, unexpectedEOF(err))
	}
	var captured, length, seconds, fraction uint32
	if r.order == binary.ByteOrder(binary.LittleEndian) {
		seconds, fraction = binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:])
		captured, length = binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	} else {
		seconds, fraction = binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:])
		captured, length = binary.BigEndian.Uint32(h[8:]), binary.BigEndian.Uint32(h[12:])
	}
	if captured > snapLength {
		return fmt.Errorf("%s: a frame of %d bytes: want at most %d", r.path, captured, snapLength)
	}
	if captured != length {
		return fmt.Errorf("%s: a frame of %d bytes was captured with %d bytes only: want whole frames", r.path, length, captured)
	}
	if recordHeader+int(captured) > r.buf.Size() { // a jumbogram
		r.buf = bufio.NewReaderSize(r.buf, recordHeader+snapLength)
	}
	b, err := r.buf.Peek(recordHeader + int(captured))
	if err != nil {
		return fmt.Errorf("%s: a frame of %d bytes is cut off: %w", r.path, captured, unexpectedEOF(err))
	}
	if !r.nanos {
		fraction *= 1000
	}
	r.data, r.used = b[recordHeader:], len(b)
	r.at = int64(seconds)*1e9 + int64(fraction)
	return nil
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
