package externs

import (
	"fmt"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// Obeyed holds the classes whose PAUSEs a port obeys, a bit for each. A port that it lacks obeys all classes of
// Lossless.
type Obeyed map[uint32]uint8

const portField = "port_"

// Obeys reports whether a port obeys the PAUSE of a class.
func (o Obeyed) Obeys(port uint32, class int) bool {
	classes, differs := o[port]
	return !differs || classes>>class&1 != 0
}

// Entity returns the ports as P4Runtime carries them; equal ports are equal messages.
func (o Obeyed) Entity() *p4v1.Entity {
	fields := map[string]any{}
	for port, classes := range o {
		list := []any{}
		for class := range 8 {
			if classes>>class&1 != 0 {
				list = append(list, class)
			}
		}
		fields[portField+strconv.FormatUint(uint64(port), 10)] = list
	}
	return pack(ObeyedID, fields)
}

// ReadObeyed returns the ports of an instance. The error says which field has which value, and what is allowed.
func ReadObeyed(e *p4v1.ExternEntry) (Obeyed, error) {
	fields, err := unpack(e)
	if err != nil {
		return nil, err
	}
	o := Obeyed{}
	for name, v := range fields.GetFields() {
		number, found := strings.CutPrefix(name, portField)
		port, err := strconv.ParseUint(number, 10, 32)
		if !found || err != nil || number != strconv.FormatUint(port, 10) {
			return nil, fmt.Errorf("field %q of the classes of ports is unknown, want port_ and a number", name)
		}
		if _, isList := v.GetKind().(*structpb.Value_ListValue); !isList {
			return nil, fmt.Errorf("%s is %v, want a list of classes", name, v.AsInterface())
		}
		o[uint32(port)] = 0
		for _, v := range v.GetListValue().GetValues() {
			class := v.GetNumberValue()
			if _, isNumber := v.GetKind().(*structpb.Value_NumberValue); !isNumber || !(class >= 0 && class <= 7) || class != float64(int(class)) {
				return nil, fmt.Errorf("%s has the class %v, want 0 to 7", name, v.AsInterface())
			}
			o[uint32(port)] |= 1 << int(class)
		}
	}
	return o, nil
}
