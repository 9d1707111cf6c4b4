package mininet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/hosts/tcp/kernel"
)

// TestSozeTCP: three connections of iperf3, which is unmodified, share a link by weights 1, 2 and 4, and then 4, 2 and
// 4. BMv2 forwards 10 Mb/s of TCP with a third of a processor.
func TestSozeTCP(t *testing.T) { each(t, "Söze in TCP", again(playTCP)) }

func playTCP(t *testing.T, kind string) (o outcome) {
	if err := kernel.Supported(); err != nil {
		t.Skip(err)
	}
	n := begin(t, []byte(strings.NewReplacer("2Mbps", "10Mbps", "scale: 50000", "scale: 4000", "qos:", "qos:\n  queue_limit: 2MB").Replace(string(fabric(t, "single.yaml")))), kind, 4)
	program, err := filepath.Abs(headgate)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"h1", "h2"} {
		log, err := os.Create(filepath.Join(n.dir, h+"-tcp.log"))
		if err != nil {
			t.Fatal(err)
		}
		// The sysfs in Mininet's mount namespace has no cgroups, so the agent runs outside it.
		netns := fmt.Sprintf("/proc/%d/root/proc/%d/ns/net", n.inside, n.hosts[h].PID)
		command := []string{"host", "tcp", "--name", h, "--netns", netns, "--rate", "10Mbps"}
		agent := exec.Command(program, append(command, "--controller", "unix:"+n.socket)...)
		agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		agent.Stdout, agent.Stderr = log, log
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = agent.Process.Kill()
			_ = agent.Wait()
			if out, err := exec.Command(program, append(command, "--detach")...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			log.Close()
		}()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			if text, _ := os.ReadFile(log.Name()); bytes.Contains(text, []byte("governed")) {
				break
			} else if time.Now().After(end) {
				t.Fatalf("the agent of %s: %s", h, text)
			}
		}
	}
	var clients [3]*exec.Cmd
	var outs [3]bytes.Buffer
	for i := range clients {
		server := n.in("h2", "iperf3", "--server", "--one-off", "--port", fmt.Sprint(5201+i))
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer n.kill(server)
	}
	time.Sleep(time.Second)
	for i := range clients {
		// iperf3 counts whole writes: one of its default, 128 KB, is a tenth of what weight 1 sends in a phase.
		clients[i] = n.in("h1", "iperf3", "--client", n.hosts["h2"].IP.String(), "--port", fmt.Sprint(5201+i), "--cport", fmt.Sprint(40001+i), "--length", "8K", "--time", "26", "--json")
		clients[i].Stdout = &outs[i]
		if err := clients[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	at := func(s float64) { time.Sleep(time.Until(began.Add(time.Duration(s * float64(time.Second))))) }
	weigh := func(i int, w float64) {
		flow := fmt.Sprintf("%s:%d,%s:%d", n.hosts["h1"].IP, 40001+i, n.hosts["h2"].IP, 5201+i)
		if out, err := exec.Command(program, "--server", "unix:"+n.socket, "set", "weight", "--flow", flow, "--app", "default", fmt.Sprint(w)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	at(3)
	late := n.late()
	weigh(1, 2)
	weigh(2, 4)
	at(15)
	weigh(0, 4)
	at(25)
	o.bear(late(), 100*time.Millisecond, "a round trip has")
	for i := range clients {
		if err := clients[i].Wait(); err != nil {
			t.Fatalf("%v: %s", err, outs[i].Bytes())
		}
	}
	for _, phase := range []struct {
		from, to float64
		weights  [3]float64
	}{{6, 14, [3]float64{1, 2, 4}}, {18, 25, [3]float64{4, 2, 4}}} {
		var rates [3]float64
		var sum, weight, worst float64
		for i := range outs {
			var s struct {
				Intervals []struct {
					Sum struct{ Start, End, Bytes float64 }
				}
			}
			if err := json.Unmarshal(outs[i].Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			for _, v := range s.Intervals {
				if mid := (v.Sum.Start + v.Sum.End) / 2; mid > phase.from && mid < phase.to {
					rates[i] += 8 * v.Sum.Bytes / (phase.to - phase.from)
				}
			}
			sum, weight = sum+rates[i], weight+phase.weights[i]
		}
		for i, w := range phase.weights {
			worst = max(worst, math.Abs(rates[i]*weight/(sum*w)-1))
		}
		text := fmt.Sprintf("weights %v within %.1f %%, %.1f Mb/s", phase.weights, 100*worst, sum/1e6)
		o.figure += text + "; "
		if !(worst < 0.05 && sum > 8.5e6) {
			o.missed = append(o.missed, fmt.Sprintf("%s: want 5 %% and 8.5 Mb/s: %.3g", text, rates))
		}
	}
	return o
}
