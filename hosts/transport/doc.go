// Package transport is RoCE's reliable connection as two small state machines, a go-back-N
// sender and its receiver (InfiniBand Architecture Specification, volume 1, §9.7). Packet
// sequence numbers have 24 bits. Each packet gets a cumulative ACK, and the first packet out of
// order a NAK. A timeout with back-off covers what neither reports. A law.Law decides how much
// may be in flight and how fast it is paced.
//
// A law that stops its flow's data may ask for probes instead (law.Allowance.Probe). Ready returns the probe's
// time, and Send returns a Segment with Probe set, which the driver sends without payload. The receiving driver
// answers immediately with the same number, without calling the Receiver. The answer comes back as Feedback
// with Probe set. Lost probes are found by the retransmission timeout.
//
// There is no clock, socket or goroutine here: the host agent and the fabric simulator hand
// in the time and carry the packets. A flow's bytes are cut into packets of equal size, so
// packet i always holds the same bytes and the packet number alone says which.
package transport
