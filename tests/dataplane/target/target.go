// Package target defines the interface that a data-plane test needs from a switch: a P4Runtime server, frames in
// and out of numbered ports, and queues that can be made slow.
package target

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/units"
)

// DeviceID is the P4Runtime device id of every target.
const DeviceID = 1

// Ports is the number of a target's ports: 1 to Ports.
const Ports = 8

// Target is a switch under test; the test must push the program. It has Headgate's CPU port and eight priority
// queues per port, the highest first.
type Target interface {
	// Dial returns a connection to the P4Runtime server; Close closes it.
	Dial() (*grpc.ClientConn, error)
	// Address returns where the P4Runtime server listens, for a client of the test's own.
	Address() (network, address string)
	// Send hands frames to a port back to back.
	Send(port uint32, frames ...[]byte) error
	// Receive returns the next frame that left the port, waiting for it for at most wait.
	Receive(port uint32, wait time.Duration) (Frame, bool)
	// Shape sets the rate and depth of the queues of a port.
	Shape(port uint32, s Shape) error
	// SetUp tells the switch that a port's link went up or down, as if a cable were plugged in or pulled. The
	// switch may act on it a moment later.
	SetUp(port uint32, up bool) error
	// Close stops the switch.
	Close() error
}

// Timed is a target with its own clock. Tests use this clock instead of the wall clock.
type Timed interface {
	Target
	Now() time.Duration
	Sleep(time.Duration)
}

// Frame is a frame that left a port.
type Frame struct {
	Port uint32
	Data []byte
}

// Any stands for every port in Receive.
const Any = ^uint32(0)

// Shape makes a port slow. BMv2 counts packets and paces every queue separately. The embedded switch counts bits
// and paces the port. Both agree for frames of one size in one queue.
type Shape struct {
	PacketsPerSecond int         // 0 is unlimited
	FrameBytes       units.Bytes // size of every frame that is sent while the shape is in force
	Depth            int         // packets that a queue holds
}

// Dial connects to the P4Runtime server of a target, which may still be starting.
func Dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.WaitForReady(true)))
}

// Inbox keeps the frames that left a switch, in order, until a test asks for them. The
// zero value is empty. Its methods may be called from any goroutine.
type Inbox struct {
	mu     sync.Mutex
	frames []Frame
	change chan struct{} // closed and replaced by Put; nil while nobody waits
}

// Put adds a frame, whose bytes now belong to the inbox.
func (b *Inbox) Put(port uint32, frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = append(b.frames, Frame{port, frame})
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// Take removes the first frame that left the port, or any port, waiting for it for at most
// wait.
func (b *Inbox) Take(port uint32, wait time.Duration) (Frame, bool) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		frame, change := b.take(port)
		if change == nil {
			return frame, true
		}
		select {
		case <-change:
		case <-deadline.C:
			return Frame{}, false
		}
	}
}

// take returns a frame, or a channel that is closed when a new frame comes.
func (b *Inbox) take(port uint32) (Frame, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, f := range b.frames {
		if port == Any || f.Port == port {
			b.frames = slices.Delete(b.frames, i, i+1)
			return f, nil
		}
	}
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return Frame{}, b.change
}
