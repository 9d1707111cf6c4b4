// Package packet builds and reads the frames that hosts exchange: RoCEv2 (InfiniBand
// Architecture Specification, volume 1, annex A17) in UDP over IPv4 or IPv6, with or without the
// maxQD shim in between.
//
//	Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | [maxQD shim 4] | BTH 12 | [AETH 4] | payload, pad 0–3 | ICRC 4
//
// and PFC frames (IEEE Std 802.1Qbb), which a port's MAC exchanges with its peer's.
//
// Hosts build or read a frame for every packet, so the codec works in place, without an allocation,
// ICRC included. gopacket has no BTH, AETH, ICRC or shim, and its serialisation prepends layer by
// layer. Tests compare this codec with gopacket and, where it is installed, with tshark; a benchmark
// compares the times.
//
// Start at frame.go, which lays out a data frame; bth.go has the InfiniBand headers, cnp.go and pfc.go the
// control frames.
package packet
