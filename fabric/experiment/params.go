package experiment

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/yamlnode"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// lawOf describes a law whose parameters are a struct: each exported field of a known type
// is a key of the file, SlowStart as slow_start, but for those of owned, which fill takes
// from the flow. Keys left out stay zero, which all laws read as their default.
func lawOf[P any, L law.Law](needs fabric.Needs, owned []string, fill func(*P, fabric.FlowInfo), make func(P, fabric.FlowInfo) (L, error)) lawKind {
	return func(m *yamlnode.Map) fabric.LawMaker {
		var base P
		readParams(m, reflect.ValueOf(&base).Elem(), owned)
		mk := maker{needs: needs, make: func(f fabric.FlowInfo) (law.Law, error) {
			p := base
			fill(&p, f)
			return make(p, f)
		}}
		// Say now what the law would say when the first flow starts.
		if _, err := mk.make(sampleFlow()); err != nil {
			m.Fault("", "%v", err)
		}
		return mk
	}
}

// sampleFlow is a flow to try parameters on.
func sampleFlow() fabric.FlowInfo {
	return fabric.FlowInfo{
		Rate: 100 * units.Gbps, BaseRTT: 12 * units.Microsecond, OneWay: 6 * units.Microsecond, MSS: 1000, Hops: 4, Size: units.MB, Weight: 1,
		Rand: fabric.Stream(0, "sample"),
	}
}

func readParams(m *yamlnode.Map, v reflect.Value, owned []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || slices.Contains(owned, f.Name) {
			continue
		}
		key := snake(f.Name)
		switch p := v.Field(i).Addr().Interface().(type) {
		case *units.Time:
			*p = m.Time(key, 0, 0, maxTime)
		case *units.Bytes:
			*p = m.Bytes(key, 0, 0, maxBytes)
		case *units.Rate:
			*p = m.Rate(key, 0, 0, maxRate)
		case *float64:
			*p = m.Float(key, 0, 0, 1e12)
		case *int:
			*p = m.Int(key, 0, 0, 1<<30)
		case *bool:
			*p = m.Bool(key, false)
		}
	}
}

// snake turns a Go name into a key: LowRTT into low_rtt.
func snake(name string) string {
	r := []rune(name)
	var b strings.Builder
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// over returns base with the fields of p that are not zero put over it.
func over[P any](base, p P) P {
	to, from := reflect.ValueOf(&base).Elem(), reflect.ValueOf(&p).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); from.Type().Field(i).IsExported() && !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	return base
}
