package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// shortestSleep is how long a sender sleeps at least when it is ahead: waking up costs
	// processor time that the switch could use.
	shortestSleep = 200 * time.Microsecond
	// longestDelay is how far behind its rate a sender may fall and still catch up. Were it
	// to catch up with more, what follows a pause of the machine would be a flood.
	longestDelay = time.Millisecond
)

// pace sends at a rate, in frames per second, for some time and returns how long it took.
// What the sender falls behind by more than longestDelay is not sent.
func pace(tx sender, rate float64, d time.Duration) (time.Duration, error) {
	// The thread sleeps in the kernel: Go's timers are late by up to a millisecond.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const slack = 1 // ns; by default the kernel may wake a thread 50 µs late
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0)
	begin := time.Now()
	due := time.Duration(0) // when the next frames are
	for {
		now := time.Since(begin)
		switch {
		case now >= d:
			return now, nil
		case due > now:
			ts := unix.NsecToTimespec(int64(max(due-now, shortestSleep)))
			_ = unix.Nanosleep(&ts, nil)
			continue
		}
		n, err := tx.burst()
		if err != nil {
			return now, err
		}
		due = max(due, now-longestDelay) + time.Duration(float64(n)/rate*1e9)
	}
}
