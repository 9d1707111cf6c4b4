package experiment

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	gotime "time"

	"github.com/headgate/headgate/plotting"
	"github.com/headgate/headgate/units"
)

var growthFile = flag.String("growth", "", "measure fat-trees of 54 to 8192 hosts, and draw the result into this file, .svg or .png")

// TestGrowth runs bench-fat-tree for 0.2 ms with fat-trees of growing size, on one processor and on two.
func TestGrowth(t *testing.T) {
	if *growthFile == "" {
		t.Skip("needs -growth FILE: it takes minutes")
	}
	text, err := Text("bench-fat-tree")
	if err != nil {
		t.Fatal(err)
	}
	speed := plotting.Line{Name: "one processor"}
	both := plotting.Line{Name: "times as fast on two processors"}
	memory := plotting.Line{Name: "largest resident memory"}
	for _, k := range []int{6, 8, 12, 16, 24, 32} {
		f, err := parse("growth.yaml", []byte(strings.Replace(string(text), "k: 16", fmt.Sprint("k: ", k), 1)), false)
		if err != nil {
			t.Fatal(err)
		}
		p, hosts := f.Plans[0], float64(k*k*k/4)
		p.Until = 200 * units.Microsecond
		var wall [2]float64
		for i := range wall {
			debug.FreeOSMemory()
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM begins anew
				t.Fatal(err)
			}
			p.Config.Cores = i + 1
			before, _ := usage()
			began := gotime.Now()
			o, err := p.Run(t.Context(), "x", 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			wall[i] = gotime.Since(began).Seconds()
			if cpu, _ := usage(); i == 0 {
				speed.X, speed.Y = append(speed.X, hosts), append(speed.Y, float64(o.Stats.PacketHops)/1e6/(cpu-before))
				memory.X, memory.Y = append(memory.X, hosts), append(memory.Y, peakMemory(t)/1e6)
			}
		}
		both.X, both.Y = append(both.X, hosts), append(both.Y, wall[0]/wall[1])
		n := len(speed.Y) - 1
		t.Logf("%5.0f hosts: %.2f million packet-hops a processor second, %.0f MB, %.2f times as fast on two", hosts, speed.Y[n], memory.Y[n], both.Y[n])
	}
	err = plotting.Save(*growthFile,
		plotting.Panel{Title: "work", X: "hosts", Y: "million packet-hops a CPU s", Lines: []plotting.Line{speed}, LogX: true, Points: true},
		plotting.Panel{Title: "memory", X: "hosts", Y: "MB", Lines: []plotting.Line{memory}, LogX: true, Points: true},
		plotting.Panel{Title: "speed-up", X: "hosts", Y: "times", Lines: []plotting.Line{both}, LogX: true, Points: true})
	if err != nil {
		t.Fatal(err)
	}
}

// peakMemory returns the largest resident memory since clear_refs in bytes.
func peakMemory(t *testing.T) (kb float64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(after, &kb); err != nil {
		t.Fatal(err)
	}
	return kb * 1024
}
