package mininet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/tests/lag"
)

// late measures by how much the machine is late: timers of this process, and switches and controller that
// wait for a processor. The function that it returns ends that and says by how much at most.
func (n *network) late() func() time.Duration {
	timers, stop, worst := lag.Watch(), make(chan struct{}), make(chan time.Duration)
	go func() {
		threads, most := backlogs{}, time.Duration(0)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				worst <- most
				return
			case now := <-tick.C:
				for _, task := range n.tasks() {
					if text, err := os.ReadFile(task + "/schedstat"); err == nil {
						most = max(most, threads.saw(task, string(text), now))
					}
				}
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return max(timers(), <-worst)
	}
}

// tasks returns the threads of switches and controller, below /proc.
func (n *network) tasks() (list []string) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", n.inside, n.inside))
	for _, pid := range strings.Fields(string(children)) {
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) == "simple_switch_grpc" || len(args) > 1 && slices.Contains([]string{"switch", "controller"}, args[1]) {
			of, _ := filepath.Glob("/proc/" + pid + "/task/[0-9]*")
			list = append(list, of...)
		}
	}
	return list
}

// backlogs are threads by their folder in /proc.
type backlogs map[string]*backlog

// backlog is how far a thread is behind. One that ran or wanted to run all the time has work left
// over, and is behind by what it waited for a processor since it was idle last.
type backlog struct {
	at        time.Time
	run, wait time.Duration // since the thread began, as schedstat has them
	behind    time.Duration
}

// saw takes what /proc/PID/task/TID/schedstat says at a time: nanoseconds on a processor, nanoseconds
// waiting for one, time slices (Documentation/scheduler/sched-stats.rst of Linux). It returns by how
// much the thread is behind.
func (b backlogs) saw(task, schedstat string, now time.Time) time.Duration {
	var run, wait time.Duration
	if _, err := fmt.Sscan(schedstat, &run, &wait); err != nil {
		return 0
	}
	last := b[task]
	if last == nil {
		b[task] = &backlog{at: now, run: run, wait: wait}
		return 0
	}
	since, waited := now.Sub(last.at), wait-last.wait
	if busy := run - last.run + waited; busy < since*9/10 {
		last.behind = 0
	}
	last.at, last.run, last.wait, last.behind = now, run, wait, last.behind+waited
	return last.behind
}

func TestBacklogs(t *testing.T) {
	const ms = int64(time.Millisecond)
	stat := func(run, wait int64) string {
		return strconv.FormatInt(run*ms, 10) + " " + strconv.FormatInt(wait*ms, 10) + " 7\n"
	}
	tests := []struct {
		name string
		seen []string // every 50 ms
		want time.Duration
	}{
		{"an idle thread waits a little", []string{stat(5, 1), stat(10, 3), stat(15, 4)}, 2 * time.Millisecond},
		{"one wait", []string{stat(5, 1), stat(10, 41)}, 40 * time.Millisecond},
		{"a wait that ends after many steps", []string{stat(5, 1), stat(5, 1), stat(5, 1), stat(5, 151)}, 150 * time.Millisecond},
		{"work is left over", []string{stat(0, 0), stat(10, 40), stat(20, 80), stat(25, 125)}, 125 * time.Millisecond},
		{"idle between", []string{stat(0, 0), stat(10, 40), stat(20, 50), stat(30, 90)}, 50 * time.Millisecond},
		{"a thread with a processor of its own is not kept from it", []string{stat(0, 0), stat(50, 0), stat(100, 0)}, 0},
		{"what cannot be read says nothing", []string{stat(0, 0), "", "x y z"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, most, now := backlogs{}, time.Duration(0), time.Unix(0, 0)
			for _, seen := range tt.seen {
				most, now = max(most, b.saw("a thread", seen, now)), now.Add(50*time.Millisecond)
			}
			if most != tt.want {
				t.Errorf("the thread is behind by %v, want %v", most, tt.want)
			}
		})
	}
}
