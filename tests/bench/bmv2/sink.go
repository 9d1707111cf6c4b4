package main

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// tcxDrop is TCX_DROP of <linux/bpf.h>.
const tcxDrop = 2

// sink drops what arrives at the hosts' ends as soon as it is counted. The network stack
// would go on to look for someone to give it to before it drops it.
type sink struct {
	program *ebpf.Program
	links   []link.Link
}

// newSink attaches a program that drops everything to the hosts' ends. It needs Linux 6.6.
func newSink() (*sink, error) {
	s := &sink{}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("dropping what arrives (needs Linux 6.6): %w", err), s.close())
	}
	return s, nil
}

func (s *sink) open() (err error) {
	s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "drop", Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxDrop), asm.Return()},
	})
	if err != nil {
		return err
	}
	for port := 1; port <= ports; port++ {
		at, err := index(hostEnd(port))
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: at, Program: s.program, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		s.links = append(s.links, l)
	}
	return nil
}

func (s *sink) close() (err error) {
	for _, l := range s.links {
		err = errors.Join(err, l.Close())
	}
	return errors.Join(err, s.program.Close())
}
