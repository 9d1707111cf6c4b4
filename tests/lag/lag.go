// Package lag helps tests with deadlines on a busy machine. It measures how late the machine is, repeats
// measurements that the lag has spoiled, and waits for conditions without a tight limit.
package lag

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Repeat repeats an attempt that a busy machine can spoil, at most most times, until the attempt is valid. An
// attempt returns why it is invalid, or "". Repeat returns the last reason.
func Repeat(t testing.TB, most int, attempt func() (invalid string)) (invalid string) {
	t.Helper()
	for n := 1; ; n++ {
		if invalid = attempt(); invalid == "" || n >= most {
			return invalid
		}
		t.Logf("made again: %s", invalid)
	}
}

// Try makes an attempt at a measurement against the wall clock. If the attempt fails while the machine was
// later than most, it is invalid and repeated. After three invalid attempts the test is skipped.
func Try(t *testing.T, most time.Duration, attempt func() error) {
	t.Helper()
	var err error
	invalid := Repeat(t, 3, func() string {
		worst := Watch()
		err = attempt()
		if late := worst(); err != nil && late > most {
			return fmt.Sprintf("the machine was late by %v, more than %v, and then %v", late, most, err)
		}
		return ""
	})
	switch {
	case invalid != "":
		t.Skip("invalid: " + invalid)
	case err != nil:
		t.Fatal(err)
	}
}

// Watch measures how late a timer of the machine fires. The returned function ends the measurement and returns the
// largest delay.
func Watch() func() time.Duration {
	const step = 10 * time.Millisecond
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			before := time.Now()
			select {
			case <-stop:
				worst <- most
				return
			case <-time.After(step):
				most = max(most, time.Since(before)-step)
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}

// WatchThreads measures how long the threads that carry a test's packets wait for a processor. These are the threads of
// switches, hosts and iperf3 in the process namespace of pid, and the kernel's ksoftirqd, which run the timers of pacing and
// shaping. Two kinds of waits do not count. One is a tenth of a second in which a thread's mean wait per time slice is a
// millisecond or less, because a burst of TCP is as long. The other is the second after such a process begins, because
// programs wait while they start. The returned function ends the measurement. It returns the longest time that one thread
// waited within a second.
func WatchThreads(pid int) func() time.Duration {
	const step, steps, short = 100 * time.Millisecond, 10, time.Millisecond
	type turns struct {
		run, wait, n time.Duration
		long         [steps]time.Duration // of the last second, by step
	}
	space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		most, threads, processes, ready := time.Duration(0), map[string]*turns{}, map[string]bool{}, 0
		for i := 0; ; i++ {
			select {
			case <-stop:
				worst <- most
				return
			case <-time.After(step):
			}
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, name := range lines {
				process := filepath.Dir(name)
				line, _ := os.ReadFile(name)
				comm, _ := os.ReadFile(process + "/comm")
				switch at, _ := os.Readlink(process + "/ns/pid"); {
				case strings.HasPrefix(string(comm), "ksoftirqd/"):
				case at != space || !carries(strings.Split(string(line), "\x00")):
					continue
				}
				if !processes[process] {
					processes[process], ready = true, i+steps
				}
				list, _ := filepath.Glob(process + "/task/*/schedstat")
				for _, name := range list {
					var now turns
					text, _ := os.ReadFile(name)
					if _, err := fmt.Sscan(string(text), &now.run, &now.wait, &now.n); err != nil {
						continue // it ended
					}
					if was := threads[name]; was != nil {
						now.long = was.long
						wait := now.wait - was.wait
						if wait <= (now.n-was.n)*short || i < ready {
							wait = 0
						}
						now.long[i%steps] = wait
						sum := time.Duration(0)
						for _, d := range now.long {
							sum += d
						}
						most = max(most, sum)
					}
					threads[name] = &now
				}
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}

// carries reports whether a command carries packets.
func carries(args []string) bool {
	switch filepath.Base(args[0]) {
	case "iperf3":
		return true
	case "headgate":
		return len(args) > 2 && (args[1] == "switch" || args[1] == "host" && args[2] != "tcp")
	}
	return false
}

// Await waits for a condition for some minutes, but ends before the test program's deadline. How long the
// condition takes on a busy machine proves nothing. A condition that never holds must not use up the other
// tests' time.
func Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	if t, ok := t.(*testing.T); ok {
		if deadline, ok := t.Deadline(); ok {
			if d := deadline.Add(-10 * time.Second); d.Before(end) { // early enough to report the missing condition
				end = d
			}
		}
	}
	for ; !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// Held returns how many bytes the result of an attempt keeps reachable. Goroutines of earlier tests may free
// memory meanwhile. So an attempt is invalid if the heap afterwards differs from the heap before, and is
// repeated. After three invalid attempts the test is skipped.
func Held(t testing.TB, attempt func() any) (bytes float64) {
	t.Helper()
	invalid := Repeat(t, 3, func() string {
		before := Heap()
		made := attempt()
		with := Heap()
		runtime.KeepAlive(made)
		made = nil
		after := Heap()
		bytes = float64(with) - float64(before)
		if off := float64(after) - float64(before); max(off, -off) > 0.02*bytes {
			return fmt.Sprintf("the heap had %d bytes before, %d with what is measured and %d after it", before, with, after)
		}
		return ""
	})
	if invalid != "" {
		t.Skip("invalid: " + invalid)
	}
	return bytes
}

// Heap returns the bytes that are reachable.
func Heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
