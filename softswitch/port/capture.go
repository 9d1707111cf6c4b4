package port

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Direction is the direction of a frame through a port.
type Direction uint8

// The directions, as BMv2 names its capture files.
const (
	In Direction = iota
	Out
)

// Capture writes the frames of ports to the files DIR/NAME_in.pcap and DIR/NAME_out.pcap, as
// BMv2's --pcap does. The switch's lock guards it.
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

// Named is a port's number and the name of its interface.
type Named struct {
	Number uint32
	Name   string
}

// Frame records a frame. It ignores frames of ports without a file. The first error stops the
// capture; Flush and Close return it.
func (c *Capture) Frame(port uint32, d Direction, frame []byte, at time.Time) {
	if pair := c.ports[port]; pair != nil && c.err == nil {
		pair[d].stamp(at)
		c.err = pair[d].write(frame)
	}
}

// Flush writes the recorded frames to the files.
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
