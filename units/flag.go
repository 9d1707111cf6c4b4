package units

import (
	"encoding"
	"fmt"
)

// Value is a *Time, a *Bytes or a *Rate.
type Value interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// Flag is a value as a flag of the command line, a pflag.Value. A value that is 0 has no default there.
type Flag struct{ Value }

// Set implements pflag.Value.
func (f Flag) Set(text string) error { return f.UnmarshalText([]byte(text)) }

// Type implements pflag.Value.
func (f Flag) Type() string {
	switch f.Value.(type) {
	case *Time:
		return "time"
	case *Bytes:
		return "bytes"
	}
	return "rate"
}

// String implements pflag.Value.
func (f Flag) String() string {
	if f.Value == nil { // pflag asks a zero Flag what no default is
		return ""
	}
	switch s := f.Value.String(); s {
	case "0s", "0B", "0bps":
		return ""
	default:
		return s
	}
}
