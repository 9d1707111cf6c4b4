// Package units holds the quantities that every part of Headgate uses: time in picoseconds, data in bytes, rates
// in bits per second. They are integers, so the simulator is exact and two runs agree bit for bit. Each is a type
// of its own, so a rate cannot be passed in place of a time.
//
// Start at Time, Bytes and Rate in this file. parse.go reads them from text and from command lines.
package units

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Time is a point on, or a distance along, a virtual or real clock, in picoseconds.
// One byte at 400 Gb/s lasts 20 ps; an int64 of picoseconds lasts 106 days.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// MaxTime is the latest representable time, used as "never".
const MaxTime Time = math.MaxInt64

// FromDuration converts a wall-clock duration.
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// Duration converts to a wall-clock duration, rounding down to nanoseconds.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// Seconds returns the time in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Micros returns the time in microseconds.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// Bytes is an amount of data. Switch memory and packet sizes are decimal as in the
// papers: 1 KB is 1000 B; KiB and MiB are spelled out.
type Bytes int64

// Units of Bytes.
const (
	Byte Bytes = 1
	KB         = 1000 * Byte
	MB         = 1000 * KB
	GB         = 1000 * MB
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
)

// Rate is a data rate in bits per second.
type Rate int64

// Units of Rate.
const (
	BitPerSecond Rate = 1
	Kbps              = 1000 * BitPerSecond
	Mbps              = 1000 * Kbps
	Gbps              = 1000 * Mbps
)

// PauseTime returns how long a PAUSE of a number of quanta lasts at a port with rate r: 512 bit
// times each (IEEE Std 802.3, 31B.2).
func (r Rate) PauseTime(quanta uint16) Time { return r.TxTime(Bytes(quanta) * 512 / 8) }

// TxTime returns how long n bytes last at rate r, rounded up to a picosecond, so that
// back-to-back packets never exceed the rate. A zero or negative rate takes for ever;
// results beyond MaxTime are MaxTime.
func (r Rate) TxTime(n Bytes) Time {
	if n <= 0 {
		return 0
	}
	if r <= 0 {
		return MaxTime
	}
	hi, lo := bits.Mul64(uint64(n)*8, uint64(Second))
	if hi >= uint64(r) {
		return MaxTime
	}
	q, rem := bits.Div64(hi, lo, uint64(r))
	if rem != 0 {
		q++
	}
	if q > uint64(MaxTime) {
		return MaxTime
	}
	return Time(q)
}

// BytesIn returns how many whole bytes pass at rate r within t; a negative t passes none.
func (r Rate) BytesIn(t Time) Bytes {
	if t <= 0 || r <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(r), uint64(t))
	if hi >= uint64(8*Second) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(8*Second))
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return Bytes(q)
}

// RateOf returns the rate at which n bytes pass within t; 0 when t is not positive.
func RateOf(n Bytes, t Time) Rate {
	if t <= 0 || n <= 0 {
		return 0
	}
	return Rate(math.Round(float64(n) * 8 / t.Seconds()))
}

// FieldError says which field of a configuration is wrong, what it is, what is allowed and, if needed, the
// arithmetic that shows it.
type FieldError struct {
	Field   string // as in JSON: policy, ports[3].rate, dsh.window, …
	Value   string // with its unit
	Allowed string
	Because string // may be empty
}

func (e *FieldError) Error() string {
	s := fmt.Sprintf("%s is %s: allowed is %s", e.Field, e.Value, e.Allowed)
	if e.Because != "" {
		s += "; " + e.Because
	}
	return s
}

// Fault returns a *FieldError if bad is true, otherwise nil. cmp.Or picks the first error of several calls.
func Fault(bad bool, field string, value any, allowed, because string) error {
	if !bad {
		return nil
	}
	return &FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed, Because: because}
}

// Count writes a number of things for people, such as "1 host" and "2 hosts"; thing is one of them, in
// English and with a regular plural.
func Count[T ~int | ~int64 | ~uint32 | ~uint64](n T, thing string) string {
	if n != 1 {
		switch last := thing[len(thing)-1]; {
		case strings.HasSuffix(thing, "ch") || strings.HasSuffix(thing, "sh") || last == 's' || last == 'x':
			thing += "es"
		case last == 'y' && !strings.ContainsRune("aeou", rune(thing[len(thing)-2])):
			thing = thing[:len(thing)-1] + "ies"
		default:
			thing += "s"
		}
	}
	return fmt.Sprintf("%d %s", n, thing)
}
