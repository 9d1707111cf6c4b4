package preview

import "testing"

// FuzzParseRequirement: a requirement is either refused, or has an existing measure.
func FuzzParseRequirement(f *testing.F) {
	for _, s := range []string{"paused<1%", "fct<=10us", "fct<1ms", "headroom>3MB", "x<1", "paused<", "stopped<1e400us", "paused<NaN%"} {
		f.Add(s)
	}
	_, unit := Measures()
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRequirement(s)
		if _, known := unit[r.name]; err == nil && (!known || r.limit != r.limit) {
			t.Errorf("%q is %+v", s, r)
		}
	})
}
