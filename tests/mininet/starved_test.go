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

// late measures the machine's delay: timers of this process, and switches and controller that wait for a
// processor. It returns a function that stops it and returns the largest delay. The log names the thread and the
// time.
func (n *network) late() func() time.Duration {
	timers, stop, worst, began := lag.Watch(), make(chan struct{}), make(chan time.Duration), time.Now()
	go func() {
		threads, most, who := backlogs{}, time.Duration(0), "no thread"
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				n.t.Logf("late by %v at most: %s", most.Round(time.Millisecond), who)
				worst <- most
				return
			case now := <-tick.C:
				for _, task := range n.tasks() {
					if text, err := os.ReadFile(task + "/schedstat"); err == nil {
						if by := threads.saw(task, string(text), now); by > most {
							most, who = by, describe(task, now.Sub(began))
						}
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

// describe names a thread and its process.
func describe(task string, at time.Duration) string {
	name, _ := os.ReadFile(task + "/comm")
	line, _ := os.ReadFile(filepath.Dir(filepath.Dir(task)) + "/cmdline")
	args := strings.Split(string(line), "\x00")
	return fmt.Sprintf("thread %s of %q after %v", strings.TrimSpace(string(name)), args[:min(len(args), 6)], at.Round(time.Second))
}

// tasks returns the threads of switches and controller, as paths below /proc.
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

// backlog measures how far a thread is behind. A thread that ran or was ready to run all the time has pending
// work. It is behind by the time that it has waited for a processor since it was last idle.
type backlog struct {
	last, window seen
	behind       time.Duration // when the window began
}

// seen is a thread's activity from its start to a time.
type seen struct {
	at        time.Time
	run, wait time.Duration
}

// window is the time over which a thread is watched before it counts as never idle. Linux adds a wait when it
// ends, which may be a step later.
const window = 500 * time.Millisecond

// saw takes a reading of /proc/PID/task/TID/schedstat: nanoseconds on a processor, nanoseconds waiting for one,
// time slices (Documentation/scheduler/sched-stats.rst of Linux). It returns by how much the thread is behind.
func (b backlogs) saw(task, schedstat string, now time.Time) time.Duration {
	s := seen{at: now}
	if _, err := fmt.Sscan(schedstat, &s.run, &s.wait); err != nil {
		return 0
	}
	t := b[task]
	if t == nil {
		b[task] = &backlog{last: s, window: s}
		return 0
	}
	waited := s.wait - t.last.wait
	t.last = s
	if all := now.Sub(t.window.at); all >= window {
		if s.run-t.window.run+s.wait-t.window.wait < all*9/10 {
			t.behind = 0
		} else {
			t.behind += s.wait - t.window.wait
		}
		t.window = s
	}
	return max(waited, t.behind)
}

func TestBacklogs(t *testing.T) {
	const ms = int64(time.Millisecond)
	stat := func(run, wait int64) string {
		return strconv.FormatInt(run*ms, 10) + " " + strconv.FormatInt(wait*ms, 10) + " 7\n"
	}
	tests := []struct {
		name string
		seen []string // every 250 ms
		want time.Duration
	}{
		{"an idle thread waits a little", []string{stat(5, 1), stat(10, 3), stat(15, 4)}, 2 * time.Millisecond},
		{"one wait", []string{stat(5, 1), stat(10, 41)}, 40 * time.Millisecond},
		{"a wait that ends after many steps", []string{stat(5, 1), stat(5, 1), stat(5, 1), stat(5, 751)}, 750 * time.Millisecond},
		{"work is left over", []string{stat(0, 0), stat(50, 200), stat(100, 400), stat(125, 625), stat(150, 850)}, 850 * time.Millisecond},
		{"a wait that a later step shows", []string{stat(0, 0), stat(50, 100), stat(100, 400), stat(125, 525), stat(150, 850)}, 850 * time.Millisecond},
		{"idle between", []string{stat(0, 0), stat(50, 200), stat(100, 400), stat(125, 400), stat(150, 400), stat(200, 600), stat(250, 800)}, 400 * time.Millisecond},
		{"a thread with a processor of its own is not kept from it", []string{stat(0, 0), stat(250, 0), stat(500, 0)}, 0},
		{"what cannot be read says nothing", []string{stat(0, 0), "", "x y z"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, most, now := backlogs{}, time.Duration(0), time.Unix(0, 0)
			for _, seen := range tt.seen {
				most, now = max(most, b.saw("a thread", seen, now)), now.Add(window/2)
			}
			if most != tt.want {
				t.Errorf("the thread is behind by %v, want %v", most, tt.want)
			}
		})
	}
}
