package standalone

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/packet"
)

// A PFC frame from the far end of a real interface stops its class there, and no other,
// until it is resumed.
func TestPFCOverInterfaces(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		startHere(t, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", driver,
			"--port-rate", "2=400kbps", "--pfc", program(t), "--", "--priority-queues", "8", "--grpc-server-addr", listen)
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		queued := func(queue, number byte) []byte {
			f := frame(2, number)
			f[14] = queue
			return f
		}
		get := func(want byte) {
			t.Helper()
			if f := h2.get(t); f[40] != want {
				t.Fatalf("frame %d came, want %d", f[40], want)
			}
		}
		h1.put(t, queued(3, 1))
		get(1)
		pause := packet.PFC{Enabled: 1 << 3, Quanta: [8]uint16{3: packet.MaxQuanta}} // 84 s, much longer than hang
		h2.put(t, pause.Append(nil))
		time.Sleep(100 * time.Millisecond) // the two interfaces have no order between them
		h1.put(t, queued(3, 2))
		h1.put(t, queued(1, 3))
		get(3)
		select {
		case f := <-h2.frames:
			t.Fatalf("frame %d came in its class's pause", f[40])
		case <-time.After(200 * time.Millisecond):
		}
		pause.Quanta[3] = 0
		h2.put(t, pause.Append(nil))
		get(2)
		select {
		case f := <-h1.frames:
			t.Errorf("a PFC frame went through the pipeline: %x", f)
		default:
		}
	})
}
