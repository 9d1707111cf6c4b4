package standalone

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

// needXDP skips where the kernel or the user's rights do not allow AF_XDP.
func needXDP(t testing.TB, name string) {
	t.Helper()
	p, _, err := port.OpenXDP(port.Named{Name: name})
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("skipped: no AF_XDP here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPortDriverFlag(t *testing.T) {
	for args, want := range map[string]string{"--no-p4": "auto", "--no-p4 --port-driver afpacket": "afpacket", "--no-p4 --port-driver xdp": "xdp", "--no-p4 --port-driver auto": "auto"} {
		f, err := parse(strings.Fields(args))
		if err != nil || f.options.Driver != want {
			t.Errorf("%s: %+v, %v, want driver %s", args, f.options, err, want)
		}
	}
	if _, err := parse([]string{"--no-p4", "--port-driver", "dpdk"}); err == nil || err.Error() != `--port-driver "dpdk": want auto, afpacket or xdp` {
		t.Errorf("error %v", err)
	}
	f, err := parse([]string{"--no-p4", "--port-driver=xdp", "-i", "1@nosuch0", "--", "--grpc-server-addr", listen})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.options.build(io.Discard, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), `--interface 1@nosuch0: --port-driver xdp: port 1: no network interface "nosuch0"`) {
		t.Errorf("error %v", err)
	}
}

// BenchmarkPortDriver is the switch with the echo program between two veth pairs with each
// driver. The load is made and received in this process by AF_PACKET, so the CPU time per
// packet is that of the whole path: compare the drivers, not the numbers.
func BenchmarkPortDriver(b *testing.B) {
	for _, driver := range []string{"afpacket", "xdp", "auto"} {
		for _, window := range []int{1, 256} { // frames under way: one is a round of latency
			name := driver + "/throughput"
			if window == 1 {
				name = driver + "/latency"
			}
			b.Run(name, func(b *testing.B) { benchDriver(b, driver, window) })
		}
	}
}

func benchDriver(b *testing.B, driver string, window int) {
	pairs := veth.New(b, 2)
	if driver == "xdp" {
		needXDP(b, pairs[0].Switch)
	}
	start(b, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", driver, "../testdata/echo.json", "--", "--grpc-server-addr", listen)
	tx, _, err := port.OpenInterface(port.Named{Name: pairs[0].Host})
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Close()
	rx, source, err := port.OpenInterface(port.Named{Name: pairs[1].Host})
	if err != nil {
		b.Fatal(err)
	}
	defer rx.Close()
	ctx, cancel := context.WithCancel(b.Context())
	got, done := make(chan int, 1024), make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(b *port.Batch) { got <- len(b.Frames); b.Release() })
		close(got)
	}()
	f := make([]byte, benchFrame)
	f[5] = 2
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	received, stalls := 0, 0
	// wait receives until at most n frames are under way, or seem to be lost.
	wait := func(sent, n int) (lost bool) {
		for sent-received > n {
			select {
			case n := <-got:
				received += n
			case <-time.After(100 * time.Millisecond):
				return true
			}
		}
		return false
	}
	missing := 0
	for i := range b.N {
		tx.Send(f)
		if i+1-missing-received < window {
			continue
		}
		if err := tx.Flush(); err != nil {
			b.Fatal(err)
		}
		if wait(i+1-missing, window-1) {
			stalls++
			missing = i + 1 - received
		}
	}
	if err := tx.Flush(); err != nil {
		b.Fatal(err)
	}
	elapsed := b.Elapsed()
	cpu = cpuTime(b) - cpu
	wait(b.N, 0)
	b.ReportMetric(float64(received)/elapsed.Seconds(), "packets/s")
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/packet")
	b.ReportMetric(float64(b.N-received), "lost")
	b.ReportMetric(float64(stalls), "stalls")
	cancel()
	for range got { // let the source end
	}
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// cpuTime returns the processor time that this process has used, in user and kernel mode.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
