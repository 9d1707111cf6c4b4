package bmv2

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const lonePackets = 1000

// latency sends packets one by one, two milliseconds apart. It measures the time from the sending system call to
// the return of the receiving one.
func latency(t *testing.T, k kind, p *program) sample {
	startVeth(t, k, p)
	tx := packetSocket(t, hostEnd(1), 0)
	var rx []unix.PollFd
	for port := 1; port <= ports; port++ {
		fd := packetSocket(t, hostEnd(port), unix.ETH_P_ALL)
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		rx = append(rx, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	r := rand.New(rand.NewPCG(3, 3))
	buf := make([]byte, 2048)
	var times []float64
	for i := range lonePackets + 100 {
		f := p.frame(r, 1, *size)
		begin := time.Now()
		if _, err := unix.Write(tx, f); err != nil {
			t.Fatal(err)
		}
		for arrived := false; !arrived; {
			n, err := unix.Poll(rx, 1000)
			if err != nil && !errors.Is(err, unix.EINTR) {
				t.Fatal(err)
			}
			if n == 0 {
				t.Fatal("a lone packet did not come out within a second")
			}
			for j := range rx {
				if rx[j].Revents == 0 {
					continue
				}
				// The UDP source port distinguishes this packet from others, such as the kernel's own.
				n, _, err := unix.Recvfrom(int(rx[j].Fd), buf, unix.MSG_DONTWAIT)
				arrived = arrived || err == nil && n == len(f) && string(buf[26:36]) == string(f[26:36])
			}
		}
		if took := time.Since(begin); i >= 100 { // the first ones warm up
			times = append(times, float64(took.Nanoseconds()))
		}
		time.Sleep(2 * time.Millisecond)
	}
	slices.Sort(times)
	return sample{
		{"median latency, ns", times[len(times)/2], -1},
		{"99th percentile, ns", times[len(times)*99/100], -1},
	}
}
