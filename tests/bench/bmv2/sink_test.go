package bmv2

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// tcxDrop is TCX_DROP of <linux/bpf.h>.
const tcxDrop = 2

// newSink drops the frames that arrive at the hosts' ends as soon as they are counted, until the test ends.
// Otherwise the network stack would look for a receiver before it drops them. It needs Linux 6.6.
func newSink(t *testing.T) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "drop", Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxDrop), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("dropping what arrives (needs Linux 6.6): %w", err)
	}
	t.Cleanup(func() { program.Close() })
	for port := 1; port <= ports; port++ {
		l, err := link.AttachTCX(link.TCXOptions{Interface: index(t, hostEnd(port)), Program: program, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return fmt.Errorf("dropping what arrives (needs Linux 6.6): %w", err)
		}
		t.Cleanup(func() { l.Close() })
	}
	return nil
}
