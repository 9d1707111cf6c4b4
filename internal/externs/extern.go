// Package externs defines the externs of the embedded switch that belong to the target and not to its program,
// so no P4Info declares them. They are the watchdog for received PFC with SONiC's names, the lossless classes,
// the classes that ports obey, and the weights of queues. P4Runtime carries each in an ExternEntry (P4Runtime
// 1.4, §9.10). Begin at the ids below.
package externs

import (
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/units"
)

// Ids in P4Runtime. The type is the first one for externs of an architecture; the ids of the instances have it
// in their first byte (P4Ids.OTHER_EXTERNS_START of p4info.proto).
const (
	ExternType = 0x81
	// SettingsID is the entry that a controller inserts, modifies and deletes; without it the switch has
	// the settings that it was started with.
	SettingsID = ExternType<<24 | 1
	// StormsID can only be read: every class of every port that was in a storm.
	StormsID = ExternType<<24 | 2
	// LosslessID is like SettingsID, for the lossless classes. A switch that obeys no PFC takes it, too.
	LosslessID = ExternType<<24 | 3
	// WeightsID is like LosslessID, for the weights of queues.
	WeightsID = ExternType<<24 | 4
	// ObeyedID is like LosslessID, for ports that differ in the classes whose PAUSEs they obey.
	ObeyedID = ExternType<<24 | 5
)

// The instances carry a google.protobuf.Struct:
//
//	settings: {detection_time: "200ms", restoration_time: "400ms", action: "drop", share: 0.98, default: true}
//	storms:   {storms: [{port: 1, class: 3, on: true, count: 1, dropped: 12}, …]}
//	lossless: {class_3: [3], class_4: [4, 5]}, the queues of each class
//	weights:  {queue_0: 3, queue_1: 1}
//	obeyed:   {port_1: [], port_2: [3]}

// Entity returns the settings as P4Runtime carries them; equal settings are equal messages.
func (s Settings) Entity() *p4v1.Entity {
	fields := map[string]any{
		"detection_time": s.Detection.Duration().String(), "restoration_time": s.Restoration.Duration().String(),
		"action": string(s.Action), "share": s.Share,
	}
	if s.Default {
		fields["default"] = true
	}
	return pack(SettingsID, fields)
}

// ReadSettings returns the settings of an instance with defaults filled in. The error says
// which field has which value, and what is allowed.
func ReadSettings(e *p4v1.ExternEntry) (s Settings, err error) {
	fields, err := unpack(e)
	if err != nil {
		return s, err
	}
	times := map[string]*units.Time{"detection_time": &s.Detection, "restoration_time": &s.Restoration}
	for name, v := range fields.AsMap() {
		text, isText := v.(string)
		number, isNumber := v.(float64)
		truth, isBool := v.(bool)
		switch {
		case name == "default" && isBool:
			s.Default = truth
		case name == "share" && isNumber:
			s.Share = number
		case name == "share":
			return s, fmt.Errorf("share of the PFC watchdog is %v, want a number", v)
		case !isText:
			return s, fmt.Errorf("%s of the PFC watchdog is %v, want a string", name, v)
		case name == "action":
			s.Action = Action(text)
		case times[name] == nil:
			return s, fmt.Errorf("field %q of the PFC watchdog is unknown, want detection_time, restoration_time, share and action", name)
		default:
			d, err := time.ParseDuration(text)
			if err != nil {
				return s, fmt.Errorf("%s of the PFC watchdog is %q, want a time such as 200ms", name, text)
			}
			*times[name] = units.FromDuration(d)
		}
	}
	return s.WithDefaults()
}

// StormsEntity returns storms as P4Runtime carries them.
func StormsEntity(storms []Storm) *p4v1.Entity {
	list := []any{}
	for _, s := range storms {
		list = append(list, map[string]any{"port": s.Port, "class": float64(s.Class), "on": s.On, "count": s.Count, "dropped": s.Dropped})
	}
	return pack(StormsID, map[string]any{"storms": list})
}

// ReadStorms returns the storms of an instance.
func ReadStorms(e *p4v1.ExternEntry) ([]Storm, error) {
	fields, err := unpack(e)
	if err != nil {
		return nil, err
	}
	var storms []Storm
	for _, v := range fields.GetFields()["storms"].GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		storms = append(storms, Storm{
			Port: uint32(f["port"].GetNumberValue()), Class: uint8(f["class"].GetNumberValue()), On: f["on"].GetBoolValue(),
			Count: uint64(f["count"].GetNumberValue()), Dropped: uint64(f["dropped"].GetNumberValue()),
		})
	}
	return storms, nil
}

func pack(id uint32, fields map[string]any) *p4v1.Entity {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err) // never: the fields are texts, numbers, truth values and lists of them
	}
	contents := &anypb.Any{}
	// Sorted keys, so that equal contents are equal bytes. A Struct of plain values has no error.
	_ = anypb.MarshalFrom(contents, s, proto.MarshalOptions{Deterministic: true})
	return p4rtmsg.Entity(&p4v1.ExternEntry{ExternTypeId: ExternType, ExternId: id, Entry: contents})
}

func unpack(e *p4v1.ExternEntry) (*structpb.Struct, error) {
	s := &structpb.Struct{}
	if err := e.GetEntry().UnmarshalTo(s); err != nil {
		return nil, fmt.Errorf("entry is %q, want a google.protobuf.Struct", e.GetEntry().GetTypeUrl())
	}
	return s, nil
}
