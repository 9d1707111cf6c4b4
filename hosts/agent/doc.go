// Package agent is an end host: it sends flows of RoCEv2 data with a maxQD shim under a
// congestion law, answers data with acknowledgements that echo maxQD, and recovers
// losses. Like the laws it has no clock, socket or goroutine: its owner hands in frames
// and the time, takes frames from a function, and calls back when Next says.
//
//	for {
//		wait for a frame or until a.Next()
//		frame: a.Receive(now, frame)
//		then:  a.Wake(now)
//	}
//
// Host drives an agent on a clock.Loop, package hosts/nic on a real interface; package
// hosts/agent/remote connects one to the controller.
//
// Laws that probe (PrioPlus) send and answer frames without payload, of opcodes of their
// own; see probeOpcode for their form. Hosts do not share a clock, so laws see round trips and
// no one-way delays.
//
// # The NIC
//
// The agent is its NIC's only queue: it hands out frames no faster than the link's rate,
// acknowledgements first, then data of the flows that their laws allow to send, by
// weight (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996). So where the host's
// own link is the bottleneck its flows share it by weight at once, without a queue that
// maxQD would have to report.
//
// PFC frames (IEEE Std 802.1Qbb) stop the packets of their classes for quanta of 512 bit
// times at the link's rate, by the class of the DSCP that they leave with. Packets of other
// classes, such as acknowledgements and congestion notifications, go on, and the one on the
// wire is not cut.
//
// # Channels
//
// A flow with a virtual priority runs PrioPlus in the channel that belongs to it, which may
// be moved while it runs (SetChannel): the controller hands channels out and computes them
// anew when noise or the number of flows is configured anew.
package agent
