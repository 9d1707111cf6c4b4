package bmv2

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/tests/lag"
)

// TestSenders: the frames that arrive at the switch's ends are the port's prepared frames, in the number that the
// sender reports.
func TestSenders(t *testing.T) {
	for _, name := range []string{"packet", "xdp"} {
		t.Run(name, func(t *testing.T) {
			veth.New(t, ports)
			p := &program{name: "test", frame: udpFrame}
			const size = 128
			var fds [ports]int
			var prepared [ports]map[string]bool
			for i := range fds {
				fds[i] = packetSocket(t, switchEnd(i+1), unix.ETH_P_ALL)
				prepared[i] = map[string]bool{}
				for _, f := range prepare(p, i+1, size) {
					prepared[i][string(f)] = true
				}
			}
			tx := newSender(t, name, p, size)
			const rounds = 20
			meant := 0
			var got [ports]int
			seen := map[string]bool{}
			deadline := time.Now().Add(10 * time.Second)
			for round := 0; round < rounds || sum(got) < meant; {
				if round < rounds {
					n, err := tx.burst()
					if err != nil {
						t.Fatal(err)
					}
					if n > 0 {
						meant, round = meant+n, round+1
					}
				}
				for i, fd := range fds {
					buf := make([]byte, 2048)
					for {
						n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
						if err != nil {
							break
						}
						got[i]++
						f := string(buf[:n])
						if !prepared[i][f] {
							t.Fatalf("port %d received %d bytes that were not prepared: %x", i+1, n, f)
						}
						seen[f] = true
					}
				}
				if time.Now().After(deadline) {
					t.Fatalf("received %v, want %d in all", got, meant)
				}
			}
			if n := tx.sent(t); n != uint64(meant) || sum(got) != meant {
				t.Errorf("sent %d, received %v, want %d", n, got, meant)
			}
			for i, n := range got {
				if n != meant/ports {
					t.Errorf("port %d received %d, want %d", i+1, n, meant/ports)
				}
			}
			if len(seen) < ports*copiesPerPort*2 { // each sending core starts from the first one
				t.Errorf("%d different frames of %d, want many", len(seen), meant)
			}
		})
	}
}

func sum(v [ports]int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

// TestSink: frames are counted at the hosts' ends and go no further.
func TestSink(t *testing.T) {
	veth.New(t, ports)
	if err := newSink(t); err != nil {
		t.Skipf("skipped: %v", err)
	}
	fd, heard := packetSocket(t, switchEnd(1), 0), packetSocket(t, hostEnd(1), unix.ETH_P_IP)
	before := received(t)
	frame := udpFrame(rand.New(rand.NewPCG(1, 1)), 1, 64)
	for range 10 {
		if _, err := unix.Write(fd, frame); err != nil {
			t.Fatal(err)
		}
	}
	if n := received(t) - before; n != 10 {
		t.Errorf("%d frames counted, want 10", n)
	}
	if n, _, err := unix.Recvfrom(heard, frame, unix.MSG_DONTWAIT); err == nil {
		t.Errorf("a frame of %d bytes was not dropped", n)
	}
}

// slow is a sender of one frame at a time that is delayed once.
type slow struct {
	n     int
	at    int
	delay time.Duration
}

func (s *slow) burst() (int, error) {
	if s.n++; s.n == s.at {
		time.Sleep(s.delay)
	}
	return 1, nil
}
func (s *slow) sent(*testing.T) uint64 { return uint64(s.n) }

// TestPace: a sender keeps its rate, and does not catch up after a delay.
func TestPace(t *testing.T) {
	const rate = 2000
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		lag.Try(t, 10*longestDelay, func() error {
			s := &slow{at: 5, delay: delay}
			took, err := pace(s, rate, 200*time.Millisecond)
			most := 2 + rate*(took-delay+longestDelay).Seconds()
			if n := float64(s.n); err == nil && (n > most || n < most/10) {
				err = fmt.Errorf("held up for %v: sent %v in %v, want at most %.0f and not many fewer", delay, n, took, most)
			}
			return err
		})
	}
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name                   string
		guess, capacity, limit float64 // packets/s
		unlucky                int     // the attempt that always has a loss
	}{
		{"near", 1e5, 1.2e5, 1e9, 0},
		{"far above the guess", 1e4, 9e4, 1e9, 0},
		{"far below the guess", 1e6, 1.5e5, 1e9, 0},
		{"one unlucky attempt", 1e5, 1.4e5, 1e9, 1},
		{"the sender is the limit", 1e5, 1e9, 3e5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			attempt := 0
			best := search(c.guess, func(rate float64) trial {
				attempt++
				r := trial{in: min(rate, c.limit)}
				r.out = min(r.in, c.capacity)
				if attempt == c.unlucky {
					r.out *= 0.9
				}
				return r
			})
			want := min(c.capacity, c.limit)
			if best.out < 0.95*want || best.out > 1.01*want {
				t.Errorf("found %.0f, want about %.0f", best.out, want)
			}
		})
	}
}
