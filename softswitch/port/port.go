// Package port holds the drivers behind the embedded switch's ports: network interfaces by
// AF_PACKET or AF_XDP, and pairs of pcap files. A driver receives frames in batches on a goroutine
// of its own. It sends frames on the goroutine that runs the switch. Start reading at Port and
// Source.
package port

import (
	"context"
	"net"
	"sync/atomic"
)

// Port sends the frames of one switch port. The switch's lock guards it.
type Port interface {
	// Send copies a frame and sends the copy, at the latest in Flush. A frame that cannot be sent
	// is dropped and counted. Send never blocks on a slow interface.
	Send(frame []byte)
	// Flush sends the frames that Send kept.
	Flush() error
	// Counters returns the driver's drop counters. Any goroutine may call it.
	Counters() Counters
	// Up reports whether the interface exists and is running. Any goroutine may call it.
	Up() bool
	// Close closes the port. Call it after the Run of its Source has returned.
	Close() error
}

// Chooser is a Port with several drivers, which chooses one by the other users of its interface.
type Chooser interface {
	// Choose chooses again and returns the driver, afpacket or xdp, and the reason. Any goroutine
	// that may use users may call it.
	Choose(users *IfaceUsers) (driver, why string)
}

// Exists reports whether this network namespace has an interface of that name.
func Exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// Source receives the frames of one port, or of several ports whose order matters.
type Source interface {
	// Run passes batches to deliver until ctx ends or the source has no more frames. Frames
	// of one port keep their order. deliver owns the batch until it calls Release.
	Run(ctx context.Context, deliver func(*Batch)) error
}

// Counters holds a driver's losses, and the work that it did for senders with offloads.
type Counters struct {
	RxOverruns  uint64 // frames that the kernel dropped because the switch was slow
	RxTruncated uint64 // frames longer than a buffer that no port can cut: longer than the MTU and not TCP
	TxErrors    uint64 // frames that the interface refused
	RxCompleted uint64 // frames whose sender left the checksum to its interface, so that the port computed it
	RxSplit     uint64 // long TCP segments whose sender left the cutting to its interface, so that the port cut them
}

// counters are the atomic form of Counters. The driver writes them; any goroutine may read them.
type counters struct {
	rxOverruns, rxTruncated, txErrors, rxCompleted, rxSplit atomic.Uint64

	offload func() // see OnOffload
}

// OnOffload makes the driver call f when it completes the first checksum, on its reader's goroutine. It
// must be called before the Source runs.
func (c *counters) OnOffload(f func()) { c.offload = f }

func (c *counters) Counters() Counters {
	return Counters{c.rxOverruns.Load(), c.rxTruncated.Load(), c.txErrors.Load(), c.rxCompleted.Load(), c.rxSplit.Load()}
}
