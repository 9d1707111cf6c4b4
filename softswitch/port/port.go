// Package port holds the drivers behind the embedded switch's ports: network interfaces
// by AF_PACKET or AF_XDP, and pairs of pcap files. A driver receives frames in batches on a
// goroutine of its own. It sends frames on the goroutine that runs the switch.
package port

import (
	"context"
	"net"
	"sync/atomic"
)

// Port is where the frames of one switch port leave. The switch's lock guards it.
type Port interface {
	// Send copies a frame and sends the copy, perhaps not before Flush. A frame that cannot
	// be sent is dropped and counted. Send never blocks on a slow interface.
	Send(frame []byte)
	// Flush sends the frames that Send kept.
	Flush() error
	// Counters returns the driver's drop counters, from any goroutine.
	Counters() Counters
	// Up reports whether the interface is there and running, from any goroutine.
	Up() bool
	// Close closes the port. The Run of its Source must have returned before.
	Close() error
}

// Chooser is a Port that chooses its driver by what else uses its interface.
type Chooser interface {
	// Choose decides anew and returns the driver, afpacket or xdp, and why. Any goroutine that
	// may use users may call it.
	Choose(users *IfaceUsers) (driver, why string)
}

// Exists reports whether this network namespace has an interface of that name.
func Exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// Source is where frames come from: one port, or several when their order matters.
type Source interface {
	// Run passes batches to deliver until ctx ends or the source has no more frames. Frames
	// of one port keep their order. deliver owns the batch until it calls Release.
	Run(ctx context.Context, deliver func(*Batch)) error
}

// Counters count what a driver lost, and what it did for senders with offloads.
type Counters struct {
	RxOverruns  uint64 // frames that the kernel dropped because the switch was slow
	RxTruncated uint64 // frames longer than a buffer that no port can cut: not TCP, and longer than the MTU
	TxErrors    uint64 // frames that the interface refused
	RxCompleted uint64 // frames whose checksum the port computed, since their sender left it to its interface
	RxSplit     uint64 // long TCP segments that the port cut, for the same reason
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
