// Package nic runs a host agent on a real interface, such as a Mininet host's: frames go
// in and out through a packet socket (packet(7)), the clock is the machine's. Addresses
// and ARP stay the kernel's business: the next hop's MAC address is configured or read
// from the kernel's neighbour table. It needs CAP_NET_RAW.
package nic
