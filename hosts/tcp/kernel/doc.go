// Package kernel runs congestion laws inside Linux' TCP by eBPF, so that applications need no change. The laws are
// Söze, whose maxQD travels in a TCP option, and PrioPlus over Swift. The compiled objects are in the repository
// beside their C sources, so that the build needs only Go.
//
// A sockops program, attached to cgroups, gives each new connection its congestion control. Maps carry orders from
// user space to connections, and the connections' state back. Everything is pinned in bpffs, so that connections
// stay governed while no agent runs.
//
// Start reading at Open, which attaches the programs, and then at Kernel.Tell and Kernel.Flows.
package kernel

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -no-global-types -tags linux -cflags "-O2 -g -mcpu=v3 -Wall -Werror" -type params -type soze_params -type prio_params -type prio_channel -type class -type flow_key -type order -type flow program headgate.bpf.c
