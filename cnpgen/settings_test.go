package cnpgen

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/units"
)

func settings() Settings {
	p := paperParams(25 * units.Gbps)
	p = p.Stretch(1000)
	p.Carry, p.MaxFlows = true, 99
	return Settings{Params: p, MaxFlows: 99, DSCP: 46, Ageing: 3 * time.Second}
}

// All parameters survive the conversion. A new field of the parameters must be added to
// settingsJSON.
func TestSettingsTravel(t *testing.T) {
	s := settings()
	v := reflect.ValueOf(s.Params)
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && v.Field(i).IsZero() {
			t.Errorf("the test leaves Params.%s at 0", v.Type().Field(i).Name)
		}
	}
	got, ok, err := ParseSettings(s.Marshal())
	if !ok || err != nil || got != s {
		t.Errorf("%+v arrives as %+v, %v, %v", s, got, ok, err)
	}
}

func TestParseSettings(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"cookie 17":                     "",
		"{":                             "unexpected EOF",
		`{"x": 1}`:                      "unknown field",
		`{"beta1":0}`:                   "MaxFlows is 0",
		`{"max_flows":1,"cnp_dscp":64}`: "DSCP is 64",
		`{"max_flows":1,"cnp_dscp":63,"ageing_ns":0}`:    "Ageing is not above 0",
		`{"max_flows":1,"cnp_dscp":1,"beta1":"x"}`:       "cannot unmarshal",
		`{"max_flows":1,"cnp_dscp":-1,"ageing_ns":1000}`: "cannot unmarshal",
	} {
		_, ok, err := ParseSettings([]byte(text))
		switch {
		case want == "" && (ok || err != nil):
			t.Errorf("%q is taken for settings: %v", text, err)
		case want != "" && (!ok || err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, %v, want %s", text, ok, err, want)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add(settings().Marshal())
	f.Add([]byte("{}"))
	f.Add([]byte(`{"max_flows":1,"cnp_dscp":0,"ageing_ns":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok, err := ParseSettings(b)
		if !ok || err != nil {
			return
		}
		if again, ok, err := ParseSettings(s.Marshal()); !ok || err != nil || again != s {
			t.Errorf("%+v arrives as %+v, %v, %v", s, again, ok, err)
		}
	})
}

// paperParams are the paper's parameters for a line rate, with its period.
func paperParams(rate units.Rate) Params { return ParamsFor(rate, PaperInterval) }
