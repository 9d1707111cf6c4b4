package port

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// snapLength is what our pcap files declare as the longest frame, libpcap's own maximum.
const snapLength = 262144

// pcapWriter writes a pcap file of Ethernet frames.
type pcapWriter struct {
	file *os.File
	buf  *bufio.Writer
	pcap *pcapgo.Writer
}

func createPcap(path string) (*pcapWriter, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &pcapWriter{file: file, buf: bufio.NewWriterSize(file, 64<<10)}
	w.pcap = pcapgo.NewWriter(w.buf)
	if err := w.pcap.WriteFileHeader(snapLength, layers.LinkTypeEthernet); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, w.flush()
}

func (w *pcapWriter) write(frame []byte, at time.Time) error {
	return w.pcap.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame)}, frame)
}

func (w *pcapWriter) flush() error { return w.buf.Flush() }

func (w *pcapWriter) close() error { return errors.Join(w.flush(), w.file.Close()) }

// pcapReader reads a pcap file, one frame ahead.
type pcapReader struct {
	path string
	port uint32
	file *os.File
	pcap *pcapgo.Reader
	data []byte // the current frame, valid until next
	at   time.Time
	end  bool
}

func openPcap(path string, port uint32) (*pcapReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &pcapReader{path: path, port: port, file: file}
	if r.pcap, err = pcapgo.NewReader(bufio.NewReaderSize(file, 256<<10)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: not a pcap file: %w", path, err), file.Close())
	}
	return r, nil
}

// next moves to the next frame, or to the end.
func (r *pcapReader) next() error {
	data, info, err := r.pcap.ZeroCopyReadPacketData()
	if errors.Is(err, io.EOF) {
		r.end = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	if info.CaptureLength != info.Length {
		return fmt.Errorf("%s: a frame of %d bytes was captured with %d bytes only: want whole frames", r.path, info.Length, info.CaptureLength)
	}
	r.data, r.at = data, info.Timestamp
	return nil
}

// Direction is a frame's way through a port.
type Direction uint8

// The directions, as BMv2 names its capture files.
const (
	In Direction = iota
	Out
)

// Capture writes the frames of ports to files DIR/NAME_in.pcap and DIR/NAME_out.pcap, as
// BMv2's --pcap does. One goroutine owns it.
type Capture struct {
	ports map[uint32]*[2]*pcapWriter
	err   error
}

// NewCapture makes the files of the named ports in an existing directory.
func NewCapture(dir string, ports []Named) (*Capture, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("pcap directory %q: want an existing directory", dir)
	}
	c := &Capture{ports: map[uint32]*[2]*pcapWriter{}}
	for _, p := range ports {
		pair := new([2]*pcapWriter)
		c.ports[p.Number] = pair
		for d, suffix := range []string{"_in.pcap", "_out.pcap"} {
			w, err := createPcap(filepath.Join(dir, p.Name+suffix))
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			pair[d] = w
		}
	}
	return c, nil
}

// Named is a port number and its interface's name.
type Named struct {
	Number uint32
	Name   string
}

// Frame records a frame; frames of ports without a file are ignored. The first error
// stops the capture, and Flush and Close return it.
func (c *Capture) Frame(port uint32, d Direction, frame []byte, at time.Time) {
	if pair := c.ports[port]; pair != nil && c.err == nil {
		c.err = pair[d].write(frame, at)
	}
}

// Flush writes what was recorded to the files.
func (c *Capture) Flush() error {
	for _, pair := range c.ports {
		for _, w := range pair {
			if c.err == nil {
				c.err = w.flush()
			}
		}
	}
	return c.err
}

// Close ends the capture.
func (c *Capture) Close() error {
	err := c.err
	for _, pair := range c.ports {
		for _, w := range pair {
			if w != nil {
				err = errors.Join(err, w.close())
			}
		}
	}
	c.ports = nil
	return err
}
