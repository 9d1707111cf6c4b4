package headroom

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/headgate/headgate/units"
)

// Alpha is the control parameter of dynamic thresholds (Eq. 2), a power of two, so that
// pipelines shift instead of multiplying: the exponent, MinAlpha to MaxAlpha. The zero Alpha
// is 1.
type Alpha int8

// Range of Alpha: 1/1024 to 64.
const (
	MinAlpha Alpha = -10
	MaxAlpha Alpha = 6
)

const alphaAllowed = "a power of two from 1/1024 to 64"

// Of returns α·free, rounded down; nothing of nothing.
func (a Alpha) Of(free units.Bytes) units.Bytes {
	if free <= 0 {
		return 0
	}
	if a < 0 {
		return free >> (uint(-a) % 64)
	}
	return free << (uint(a) % 64)
}

// String returns the value, such as "1/16" or "2".
func (a Alpha) String() string {
	if a < 0 {
		return fmt.Sprintf("1/%d", uint64(1)<<uint(-a))
	}
	return strconv.FormatUint(1<<uint(a), 10)
}

// ParseAlpha reads "1/16", "0.0625" or "2". It returns a *units.FieldError for anything that is
// not a power of two in range.
func ParseAlpha(s string) (Alpha, error) {
	bad := &units.FieldError{Field: "alpha", Value: strconv.Quote(s), Allowed: alphaAllowed}
	num, den, isFraction := strings.Cut(strings.TrimSpace(s), "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil {
		return 0, bad
	}
	if isFraction {
		d, err := strconv.ParseFloat(strings.TrimSpace(den), 64)
		if err != nil || d <= 0 {
			return 0, bad
		}
		v /= d
	}
	mantissa, exponent := math.Frexp(v)
	a := exponent - 1
	if mantissa != 0.5 || a < int(MinAlpha) || a > int(MaxAlpha) {
		return 0, bad
	}
	return Alpha(a), nil
}

// UnmarshalText implements encoding.TextUnmarshaler; see ParseAlpha.
func (a *Alpha) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAlpha(string(text))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (a Alpha) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
