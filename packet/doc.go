// Package packet builds and reads the frames that hosts exchange: RoCEv2 (InfiniBand
// Architecture Specification, volume 1, annex A17) in UDP over IPv4 or IPv6, with or without the
// maxQD shim in between.
//
//	Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | [maxQD shim 4] | BTH 12 | [AETH 4] | payload, pad 0–3 | ICRC 4
//
// and PFC frames (IEEE Std 802.1Qbb), which a port's MAC exchanges with its peer's.
//
// It has a codec of its own because it is on the hosts' hot path, where a frame is built
// or read for every packet: in place, without an allocation, ICRC included. gopacket has
// neither BTH, AETH nor ICRC nor the shim, so that they would have to be written here
// anyway, and its serialisation prepends layer by layer. Tests hold the two, and tshark
// where it is installed, against each other; a benchmark has gopacket's time beside ours.
package packet
