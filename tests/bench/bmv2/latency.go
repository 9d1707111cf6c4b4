package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const lonePackets = 1000

// latency sends packets one by one, two milliseconds apart, and takes the time until each
// arrives, from the sending system call to the return of the receiving one.
func (o *options) latency(k kind, p *program) (sample, error) {
	_, clean, err := o.startVeth(k, p)
	if err != nil {
		return nil, err
	}
	defer clean()
	tx, err := packetSocket("h1", 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(tx)
	var rx []unix.PollFd
	for port := 1; port <= ports; port++ {
		fd, err := packetSocket(fmt.Sprintf("h%d", port), unix.ETH_P_ALL)
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd)
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		rx = append(rx, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	r := rand.New(rand.NewPCG(3, 3))
	buf := make([]byte, 2048)
	var times []float64
	for i := range lonePackets + 100 {
		f := p.frame(r, 1, o.size)
		begin := time.Now()
		if _, err := unix.Write(tx, f); err != nil {
			return nil, err
		}
		for arrived := false; !arrived; {
			n, err := unix.Poll(rx, 1000)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return nil, err
			}
			if n == 0 {
				return nil, errors.New("a lone packet did not come out within a second")
			}
			for j := range rx {
				if rx[j].Revents == 0 {
					continue
				}
				// The UDP source port tells this packet from others, such as the kernel's own.
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
	}, nil
}
