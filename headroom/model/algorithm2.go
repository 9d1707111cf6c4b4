// Package model computes DSH's Algorithm 2 in floating point. Only tests use it: they compare headroom.Estimator
// with it.
package model

import (
	"math"

	"github.com/headgate/headgate/units"
)

// Algorithm2 is DSH's Algorithm 2 in floating point. headroom.Estimator approximates it.
type Algorithm2 struct {
	Delay units.Time  // D, how long a PAUSE takes to take effect
	Phi   units.Bytes // Φ, which clamps φ̂
	// Limit bounds |g| in bytes per second, like the saturation of the tables; 0 for no bound.
	Limit float64

	avg, dev float64 // bytes per second
	length   units.Bytes
	at       units.Time
	started  bool
}

// Arrived records that the queue holds length bytes now and returns φ̂.
func (r *Algorithm2) Arrived(now units.Time, length units.Bytes) float64 {
	if !r.started {
		r.started, r.at, r.length = true, now, length
		return 0
	}
	dq, dt := float64(length-r.length), (now - r.at).Seconds()
	r.at, r.length = now, length
	g := 0.0
	if dq != 0 {
		g = dq / dt // ±Inf for Δt = 0
	}
	if r.Limit > 0 {
		g = math.Max(-r.Limit, math.Min(r.Limit, g))
	}
	const w, k = 0.25, 4
	v := math.Abs(r.avg - g)
	r.avg = (1-w)*r.avg + w*g
	r.dev = (1-w)*r.dev + w*v
	return math.Max(0, math.Min(float64(r.Phi), (r.avg+k*r.dev)*r.Delay.Seconds()))
}

// Gradient returns ĝ in bytes per second.
func (r *Algorithm2) Gradient() float64 { return r.avg + 4*r.dev }
