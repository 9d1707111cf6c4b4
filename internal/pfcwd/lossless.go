package pfcwd

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// Lossless has the egress queues that a PAUSE of each class stops, at all ports of a switch, a bit for each. A
// class without queues is not lossless: its PAUSEs are ignored. A queue has one class at most.
type Lossless [8]uint32

// Class returns the class of a queue, -1 when it has none.
func (l Lossless) Class(queue int) int {
	for class, queues := range l {
		if queues>>queue&1 != 0 {
			return class
		}
	}
	return -1
}

const classField = "class_"

// Entity returns the classes as P4Runtime carries them; equal classes are equal messages.
func (l Lossless) Entity() *p4v1.Entity {
	fields := map[string]*structpb.Value{}
	for class, left := range l {
		if left == 0 {
			continue
		}
		list := &structpb.ListValue{}
		for ; left != 0; left &= left - 1 {
			list.Values = append(list.Values, structpb.NewNumberValue(float64(bits.TrailingZeros32(left))))
		}
		fields[classField+strconv.Itoa(class)] = structpb.NewListValue(list)
	}
	return pack(LosslessID, fields)
}

// ReadLossless returns the classes of an instance for a switch with some queues, 1 to 32. The error says which
// field has which value, and what is allowed.
func ReadLossless(e *p4v1.ExternEntry, queues int) (l Lossless, err error) {
	fields, err := unpack(e)
	if err != nil {
		return l, err
	}
	for name, v := range fields {
		number, found := strings.CutPrefix(name, classField)
		class, err := strconv.Atoi(number)
		if !found || err != nil || class < 0 || class >= len(l) || number != strconv.Itoa(class) {
			return Lossless{}, fmt.Errorf("field %q of the lossless classes is unknown, want class_0 to class_%d", name, len(l)-1)
		}
		for _, v := range v.GetListValue().GetValues() {
			q, other := int(v.GetNumberValue()), -1
			_, isNumber := v.GetKind().(*structpb.Value_NumberValue)
			if !isNumber || q < 0 || q >= queues || float64(q) != v.GetNumberValue() {
				return Lossless{}, fmt.Errorf("%s has the queue %v, want 0 to %d", name, v.AsInterface(), queues-1)
			}
			if other = l.Class(q); other >= 0 && other != class {
				return Lossless{}, fmt.Errorf("%s has the queue %d, which class %d has, want each queue in one class", name, q, other)
			}
			l[class] |= 1 << q
		}
		if l[class] == 0 {
			return Lossless{}, fmt.Errorf("%s is %v, want a list of its queues", name, v.AsInterface())
		}
	}
	return l, nil
}
