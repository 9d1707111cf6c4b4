package mininet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// decode decodes the frames of a capture that match a filter with tshark, a line of fields per frame. An empty
// capture has none.
func decode(t *testing.T, file, filter string, fields ...string) (lines [][]string) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		return nil
	}
	args := []string{"-n", "-r", file, "-Y", filter, "-T", "fields", "-E", "separator=;"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("tshark %v: %v", args, err)
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSpace(line), ";"))
	}
	return lines
}

// pauses passes the PFC frames between switches, decoded by tshark, to the wires' meters.
func (r *recorder) pauses(t *testing.T, dir string, meters emulation.Meters) {
	t.Helper()
	fields := []string{"frame.time_epoch", "macc.cbfc.enbv"}
	for class := range packet.PFCClasses {
		fields = append(fields, fmt.Sprintf("macc.cbfc.pause_time.c%d", class))
	}
	for i, l := range r.config.Links {
		for wire, from := range []string{l.A.Node, l.B.Node} {
			number := []uint32{l.A.Port, l.B.Port}[wire]
			if r.config.Switch(from) == nil {
				continue
			}
			file := filepath.Join(dir, fmt.Sprintf("%s-eth%d_out.pcap", from, number))
			for _, f := range decode(t, file, "eth.dst == 01:80:c2:00:00:01 && macc.opcode == 0x0101", fields...) {
				seconds, err := strconv.ParseFloat(f[0], 64)
				pfc := packet.PFC{Enabled: uint8(number16(t, f[1]))}
				for class := range pfc.Quanta {
					if pfc.Enabled>>class&1 == 1 {
						pfc.Quanta[class] = number16(t, f[2+class])
					}
				}
				if err != nil {
					t.Fatalf("%s: %q: %v", file, f, err)
				}
				// The meters start at zero, like the play's time.
				when := units.FromDuration(time.Duration(seconds*1e9) - time.Duration(r.began.UnixNano()))
				meters[2*i+wire].Saw(&pfc, when)
			}
		}
	}
}

func number16(t *testing.T, s string) uint16 {
	t.Helper()
	v, err := strconv.ParseUint(s, 0, 16)
	if err != nil {
		t.Fatalf("tshark's %q is no number of 16 bits", s)
	}
	return uint16(v)
}
