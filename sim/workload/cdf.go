// Package workload makes the flows of a run: source, destination, size and start. Every generator draws only from
// the random stream that it is given, so a seed determines its flows.
package workload

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/headgate/headgate/units"
)

// Sizes is a distribution of flow sizes: a cumulative distribution, linear between points.
type Sizes struct {
	size []float64 // B, not falling
	prob []float64 // 0 to 1, not falling, from 0 to 1
}

//go:embed data/*.cdf data/*.dag
var data embed.FS

// Names returns the names of the distributions that come with Headgate.
func Names() (names []string) {
	entries, err := data.ReadDir("data")
	if err != nil {
		return nil // cannot happen: the directory is embedded
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".cdf"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Named returns a distribution that comes with Headgate; an error lists the names.
func Named(name string) (*Sizes, error) {
	f, err := data.Open(path.Join("data", name+".cdf"))
	if err != nil {
		return nil, fmt.Errorf("no flow-size distribution %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	defer f.Close()
	return ReadSizes(f)
}

// Constant is the distribution in which every flow has one size.
func Constant(size units.Bytes) *Sizes {
	return &Sizes{size: []float64{float64(size), float64(size)}, prob: []float64{0, 1}}
}

// ReadSizes reads a distribution. Each line has a size in bytes and its cumulative probability in percent. Neither
// may fall, and the probability goes from 0 to 100 %. '#' starts a comment.
func ReadSizes(r io.Reader) (*Sizes, error) {
	d := &Sizes{}
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: %d fields, want a size and a percentage", n, len(fields))
		}
		size, err1 := strconv.ParseFloat(fields[0], 64)
		prob, err2 := strconv.ParseFloat(fields[1], 64)
		if err1 != nil || err2 != nil || !(size >= 0 && size <= 1e15) || !(prob >= 0 && prob <= 100) {
			return nil, fmt.Errorf("line %d: %q, want a size of 0 to 1e15 B and a percentage of 0 to 100", n, text)
		}
		if k := len(d.size); k > 0 && (size < d.size[k-1] || prob/100 < d.prob[k-1]) {
			return nil, fmt.Errorf("line %d: %q falls below the line before", n, text)
		}
		d.size = append(d.size, size)
		d.prob = append(d.prob, prob/100)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("flow-size distribution: %w", err)
	}
	if k := len(d.size); k < 2 || d.prob[0] != 0 || d.prob[k-1] != 1 {
		return nil, fmt.Errorf("flow-size distribution: want at least two lines, from 0 to 100 %%")
	}
	return d, nil
}

// Mean returns the mean size in bytes.
func (d *Sizes) Mean() (sum float64) {
	for i := 1; i < len(d.size); i++ {
		sum += (d.prob[i] - d.prob[i-1]) * (d.size[i] + d.size[i-1]) / 2
	}
	return sum
}

// Split returns the bounds that divide the sizes into n ranges. Each range has the same number of flows, or with
// bytes the same number of bytes.
func (d *Sizes) Split(n int, bytes bool) []units.Bytes {
	bounds := make([]units.Bytes, 0, n-1)
	for k := 1; k < n; k++ {
		part := float64(k) / float64(n)
		if bytes {
			bounds = append(bounds, d.bytesUpTo(part*d.Mean()))
		} else {
			bounds = append(bounds, d.at(part))
		}
	}
	return bounds
}

// bytesUpTo returns the size up to which flows contribute sum to the mean size, both in bytes.
func (d *Sizes) bytesUpTo(sum float64) units.Bytes {
	for i := 1; i < len(d.size); i++ {
		a, b, p := d.size[i-1], d.size[i], d.prob[i]-d.prob[i-1]
		part := p * (a + b) / 2
		if sum > part || p == 0 {
			sum -= part
			continue
		}
		// The flows up to a + x·(b − a) contribute p·(a·x + (b − a)·x²/2) bytes.
		x := sum / (p * a)
		if b > a {
			x = (math.Sqrt(a*a+2*(b-a)*sum/p) - a) / (b - a)
		}
		return max(units.Bytes(a+(b-a)*x+0.5), 1)
	}
	return units.Bytes(d.size[len(d.size)-1])
}

// Between returns the distribution of the sizes from low to high, or nil if there are none.
func (d *Sizes) Between(low, high units.Bytes) *Sizes {
	from, to := d.upTo(float64(low)), d.upTo(float64(high))
	if from >= to {
		return nil
	}
	out := &Sizes{size: []float64{max(float64(low), d.size[0])}, prob: []float64{0}}
	for i, p := range d.prob {
		if p > from && p < to {
			out.size, out.prob = append(out.size, d.size[i]), append(out.prob, (p-from)/(to-from))
		}
	}
	last := d.size[len(d.size)-1]
	out.size, out.prob = append(out.size, min(float64(high), last)), append(out.prob, 1)
	return out
}

// upTo returns the fraction of the flows, 0 to 1, whose size is at most size.
func (d *Sizes) upTo(size float64) float64 {
	i := sort.Search(len(d.size), func(i int) bool { return d.size[i] > size })
	switch {
	case i == 0:
		return 0
	case i == len(d.size):
		return 1
	}
	return d.prob[i-1] + (d.prob[i]-d.prob[i-1])*(size-d.size[i-1])/(d.size[i]-d.size[i-1])
}

// Draw returns a size of at least 1 B.
func (d *Sizes) Draw(rng *rand.Rand) units.Bytes { return d.at(rng.Float64()) }

// at returns the size at a cumulative probability below 1.
func (d *Sizes) at(u float64) units.Bytes {
	i := sort.Search(len(d.prob), func(i int) bool { return d.prob[i] > u })
	i = min(max(i, 1), len(d.prob)-1)
	size := d.size[i]
	if dp := d.prob[i] - d.prob[i-1]; dp > 0 {
		size = d.size[i-1] + (d.size[i]-d.size[i-1])*(u-d.prob[i-1])/dp
	}
	return max(units.Bytes(size+0.5), 1)
}

// Delays is a distribution of times: a cumulative distribution, linear between points. It
// implements sim.Noise.
type Delays struct{ ps *Sizes }

// NewDelays returns the distribution through points. A point is a time and its cumulative probability in percent;
// neither may fall, and the probability goes from 0 to 100 %. All times are multiplied by factor.
func NewDelays(at []units.Time, percent []float64, factor float64) (*Delays, error) {
	var lines strings.Builder
	for i := range at {
		lines.WriteString(strconv.FormatFloat(float64(at[i])*factor, 'f', 0, 64) + " " + strconv.FormatFloat(percent[i], 'g', -1, 64) + "\n")
	}
	s, err := ReadSizes(strings.NewReader(lines.String()))
	if err != nil {
		return nil, err
	}
	return &Delays{s}, nil
}

// Draw returns a time.
func (d *Delays) Draw(rng *rand.Rand) units.Time { return units.Time(d.ps.Draw(rng)) }
