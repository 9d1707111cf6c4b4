package units

import "testing"

// FuzzParse: a text is either refused or gives a value that is not negative. A time's String can be parsed again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"80us", "1.5ms", "2s", "µs", "100Gbps", "16MiB", "64B", "-1s", "1e9s", "9223372036854775807ps", "99999999999999999999GB", " 3 kbps ", "0.0000000000001ps"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseTime(s); err == nil {
			if v < 0 {
				t.Errorf("%q is %d ps", s, v)
			}
			if _, err := ParseTime(v.String()); err != nil {
				t.Errorf("%q is %v, which is refused: %v", s, v, err)
			}
		}
		if v, err := ParseBytes(s); err == nil && v < 0 {
			t.Errorf("%q is %d B", s, v)
		}
		if v, err := ParseRate(s); err == nil && v < 0 {
			t.Errorf("%q is %d b/s", s, v)
		}
	})
}
