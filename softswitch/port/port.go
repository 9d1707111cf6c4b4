// Package port holds the drivers behind the embedded switch's ports: network interfaces
// by AF_PACKET, and pairs of pcap files. A driver brings frames in batches from a
// goroutine of its own and sends frames for whichever goroutine runs the switch.
package port

import (
	"context"
	"sync/atomic"
)

// Port is where the frames of one switch port leave. The switch's lock guards it.
type Port interface {
	// Send takes a copy of a frame. It may hold it until Flush. A frame that cannot be
	// sent is dropped and counted; Send never blocks on a slow interface.
	Send(frame []byte)
	// Flush sends what Send held.
	Flush() error
	// Counters returns the driver's drop counters, from any goroutine.
	Counters() Counters
	// Up reports whether the interface is there and running, from any goroutine.
	Up() bool
	// Close ends the port. The Source that belongs to it must have ended before.
	Close() error
}

// Source is where frames come from: one port, or several when their order matters.
type Source interface {
	// Run hands batches to deliver until ctx ends or the source has no more. Frames of one
	// port keep their order. deliver takes ownership; the batch's Release gives it back.
	Run(ctx context.Context, deliver func(*Batch)) error
}

// Counters count what a driver lost.
type Counters struct {
	RxOverruns  uint64 // frames that the kernel dropped because the switch was slow
	RxTruncated uint64 // frames longer than a buffer, such as those of segmentation offload
	TxErrors    uint64 // frames that the interface refused
}

// counters are Counters under construction, written by the driver, read by anyone.
type counters struct {
	rxOverruns, rxTruncated, txErrors atomic.Uint64
}

func (c *counters) Counters() Counters {
	return Counters{c.rxOverruns.Load(), c.rxTruncated.Load(), c.txErrors.Load()}
}
