// Package kernel runs congestion laws inside Linux' TCP by eBPF, for applications as they are: Söze, whose
// maxQD travels in a TCP option, and PrioPlus over Swift. The C sources beside this file are compiled into
// the objects beside it, so that building needs Go alone.
//
// A sockops program, attached to cgroups, gives each new connection its congestion control. Maps carry what
// user space wants of connections and what the kernel says of them. All of it is pinned in bpffs, so that
// connections are governed while no agent runs.
package kernel

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -no-global-types -tags linux -cflags "-O2 -g -mcpu=v3 -Wall -Werror" -type params -type soze_params -type prio_params -type prio_channel -type class -type flow_key -type order -type flow program headgate.bpf.c
