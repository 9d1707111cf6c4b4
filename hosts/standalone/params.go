package standalone

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/headgate/headgate/units"
)

// params are the values of --param, by name.
type params map[string]string

// parseParams reads a list of NAME=VALUE.
func parseParams(list []string) (params, error) {
	out := params{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--param %q: want NAME=VALUE", s)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("--param %q: %s is given twice", s, name)
		}
		out[name] = value
	}
	return out, nil
}

// fields returns the parameters of a law that may be set: the exported fields of a struct
// of a known type, but for those of owned, which follow from the host and the flow. Names
// are those of files of `headgate sim`: LowRTT is low_rtt.
func fields(t reflect.Type, owned []string) (names []string, kinds map[string]string) {
	kinds = map[string]string{}
	v := reflect.New(t).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || slices.Contains(owned, f.Name) {
			continue
		}
		if kind := kindOf(v.Field(i).Interface()); kind != "" {
			names = append(names, snake(f.Name))
			kinds[snake(f.Name)] = kind
		}
	}
	return names, kinds
}

func kindOf(v any) string {
	switch v.(type) {
	case units.Time:
		return "time"
	case units.Bytes:
		return "bytes"
	case units.Rate:
		return "rate"
	case float64:
		return "number"
	case int:
		return "whole number"
	case bool:
		return "true or false"
	}
	return ""
}

// set puts a value into the field of a struct.
func set(v reflect.Value, name, value string) error {
	for i := range v.NumField() {
		if snake(v.Type().Field(i).Name) == name {
			return setValue(v.Field(i).Addr().Interface(), name, value)
		}
	}
	return fmt.Errorf("--param %s=%s: no such parameter", name, value)
}

func setValue(field any, name, value string) (err error) {
	switch p := field.(type) {
	case *units.Time:
		*p, err = units.ParseTime(value)
	case *units.Bytes:
		*p, err = units.ParseBytes(value)
	case *units.Rate:
		*p, err = units.ParseRate(value)
	case *float64:
		*p, err = strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(*p) || math.IsInf(*p, 0) {
			err = fmt.Errorf("want a finite number")
		}
	case *int:
		if *p, err = strconv.Atoi(value); err != nil {
			err = fmt.Errorf("want a whole number")
		}
	case *bool:
		if *p, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("want true or false")
		}
	}
	if err != nil {
		return fmt.Errorf("--param %s=%s: %w", name, value, err)
	}
	return nil
}

// snake turns a Go name into a parameter's: LowRTT into low_rtt.
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
