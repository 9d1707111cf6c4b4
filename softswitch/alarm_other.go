//go:build !linux

package softswitch

import "time"

// alarm wakes the goroutine that runs a switch at a set time.
type alarm struct {
	C     chan struct{} // receives a value when the alarm goes off
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	a := &alarm{C: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, func() { signal(a.C) })
	return a, nil
}

// set makes the alarm go off after d. It replaces an earlier setting.
func (a *alarm) set(d time.Duration) { a.timer.Reset(d) }

func (a *alarm) close() { a.timer.Stop() }
