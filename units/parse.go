package units

import (
	"encoding"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

type scale struct {
	suffix string
	factor int64
}

// Of the suffixes with one ending the longest comes first, so "us" is not read as "s".
var (
	timeScales = []scale{
		{"ps", int64(Picosecond)}, {"ns", int64(Nanosecond)}, {"us", int64(Microsecond)},
		{"µs", int64(Microsecond)}, {"ms", int64(Millisecond)}, {"s", int64(Second)},
	}
	byteScales = []scale{
		{"KiB", int64(KiB)}, {"MiB", int64(MiB)}, {"GiB", int64(GiB)},
		{"KB", int64(KB)}, {"MB", int64(MB)}, {"GB", int64(GB)}, {"B", 1},
	}
	rateScales = []scale{
		{"Gbps", int64(Gbps)}, {"Mbps", int64(Mbps)}, {"Kbps", int64(Kbps)}, {"kbps", int64(Kbps)}, {"bps", 1},
	}
)

// Patterns of the texts that ParseTime, ParseBytes and ParseRate take, as regular expressions.
var (
	TimePattern  = pattern(timeScales)
	BytesPattern = pattern(byteScales)
	RatePattern  = pattern(rateScales)
)

func pattern(scales []scale) string {
	return ` *[0-9.]+ *(` + strings.Join(suffixes(scales), "|") + `) *`
}

func suffixes(scales []scale) []string {
	names := make([]string, len(scales))
	for i, sc := range scales {
		names[i] = sc.suffix
	}
	return names
}

// ParseTime reads a time such as "80us", "1.5ms" or "2s". Allowed units: ps, ns, us, µs, ms, s.
func ParseTime(s string) (Time, error) {
	v, err := parse("time", s, timeScales)
	return Time(v), err
}

// ParseBytes reads an amount such as "16MB", "64KiB" or "1500B". Allowed units: B, KB, MB, GB, KiB, MiB, GiB.
func ParseBytes(s string) (Bytes, error) {
	v, err := parse("amount of data", s, byteScales)
	return Bytes(v), err
}

// ParseRate reads a rate such as "100Gbps" or "20Mbps". Allowed units: bps, Kbps, Mbps, Gbps.
func ParseRate(s string) (Rate, error) {
	v, err := parse("rate", s, rateScales)
	return Rate(v), err
}

func parse(what, s string, scales []scale) (int64, error) {
	text := strings.TrimSpace(s)
	for _, sc := range scales {
		number, ok := strings.CutSuffix(text, sc.suffix)
		if !ok {
			continue
		}
		number = strings.TrimSpace(number)
		// big.Rat would also take fractions, signs, exponents of any size and other bases.
		if number == "" || len(number) > 32 || strings.Trim(number, "0123456789.") != "" {
			break
		}
		v, ok := new(big.Rat).SetString(number)
		if !ok {
			break
		}
		v.Mul(v, new(big.Rat).SetInt64(sc.factor))
		// Round to the nearest unit: (2·num + den) / (2·den).
		n := new(big.Int).Lsh(v.Num(), 1)
		n.Add(n, v.Denom()).Quo(n, new(big.Int).Lsh(v.Denom(), 1))
		if !n.IsInt64() || n.Int64() == math.MaxInt64 {
			return 0, fmt.Errorf("%s %q is too large", what, s)
		}
		return n.Int64(), nil
	}
	return 0, fmt.Errorf("%q is not a %s: want a non-negative number with one of the units %s", s, what, strings.Join(suffixes(scales), ", "))
}

// format prints v in the largest unit that needs at most three decimals.
func format(v int64, scales []scale) string {
	if v == 0 {
		return "0" + scales[len(scales)-1].suffix
	}
	best := scale{"", 0}
	for _, sc := range scales {
		if sc.suffix == "µs" || sc.suffix == "kbps" || strings.HasSuffix(sc.suffix, "iB") {
			continue
		}
		if max(v, -v) >= sc.factor && sc.factor > best.factor {
			best = sc
		}
	}
	if best.factor == 0 {
		best = scales[0]
	}
	text := strconv.FormatFloat(float64(v)/float64(best.factor), 'f', 3, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + best.suffix
}

// String prints the time in its natural unit with at most three decimals.
func (t Time) String() string { return format(int64(t), timeScales) }

// String prints the amount in its natural decimal unit with at most three decimals.
func (b Bytes) String() string { return format(int64(b), byteScales) }

// String prints the rate in its natural unit with at most three decimals.
func (r Rate) String() string { return format(int64(r), rateScales) }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseTime.
func (t *Time) UnmarshalText(text []byte) (err error) { *t, err = ParseTime(string(text)); return err }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseBytes.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}

// UnmarshalText implements encoding.TextUnmarshaler; see ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) { *r, err = ParseRate(string(text)); return err }

// Value is a *Time, a *Bytes or a *Rate.
type Value interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

// Flag is a value as a flag of the command line, a pflag.Value. A value of 0 is shown as no default.
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
	case *Classes:
		return "classes"
	}
	return "rate"
}

// String implements pflag.Value.
func (f Flag) String() string {
	if f.Value == nil { // pflag asks a zero Flag for the text of no default
		return ""
	}
	switch s := f.Value.String(); s {
	case "0s", "0B", "0bps":
		return ""
	default:
		return s
	}
}
