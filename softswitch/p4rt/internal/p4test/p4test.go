// Package p4test holds the program that the tests of the P4Runtime server run, and builds messages
// about it by name. The program has one object of each kind that P4Runtime can read or write.
// Start reading at Config and Entry.
package p4test

import (
	_ "embed" // for the program
	"strings"
	"sync"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/headgate/headgate/internal/p4rtmsg"
	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
)

// JSON is the program, kinds.p4, as p4c compiled it.
//
//go:embed kinds.json
var JSON []byte

// Text is its P4Info as p4c wrote it.
//
//go:embed kinds.p4info.txtpb
var Text []byte

// Info returns a fresh P4Info.
func Info() *p4configv1.P4Info {
	info := &p4configv1.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(Text, info); err != nil {
		panic(err)
	}
	return info
}

// Config returns a pipeline configuration.
func Config() *p4v1.ForwardingPipelineConfig {
	return &p4v1.ForwardingPipelineConfig{
		P4Info: Info(), P4DeviceConfig: JSON, Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: 42},
	}
}

var ids = func() map[string]uint32 {
	m := map[string]uint32{}
	Info().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		for i := 0; f.IsList() && i < v.List().Len(); i++ {
			if x, ok := v.List().Get(i).Message().Interface().(interface{ GetPreamble() *p4configv1.Preamble }); ok {
				m[x.GetPreamble().GetName()] = x.GetPreamble().GetId()
			}
		}
		return true
	})
	return m
}()

// ID returns the id of an object; short names are those of the ingress control.
func ID(name string) uint32 {
	if id, ok := ids[name]; ok {
		return id
	}
	if id, ok := ids["ingress."+name]; ok {
		return id
	}
	panic("p4test: no object " + name)
}

// Action calls an action with parameters 1, 2, ….
func Action(name string, params ...uint64) *p4v1.Action { return p4rtmsg.Action(ID(name), params...) }

// Do returns a table action that calls an action.
func Do(name string, params ...uint64) *p4v1.TableAction { return p4rtmsg.Do(ID(name), params...) }

// Entry builds a table entry.
func Entry(table string, priority int32, action *p4v1.TableAction, match ...*p4v1.FieldMatch) *p4v1.TableEntry {
	return p4rtmsg.Entry(ID(table), priority, action, match...)
}

// Program is the compiled JSON, shared by all tests of a package.
var Program = sync.OnceValue(func() *engine.Program {
	prog, err := engine.Load(JSON)
	if err != nil {
		panic(err)
	}
	return prog
})

// PlainText returns the P4Info without the fields that P4Runtime 1.4.0-rc.5 does not know, for
// strict readers of that version.
func PlainText() []byte {
	b, err := prototext.MarshalOptions{Multiline: true}.Marshal(Info())
	if err != nil {
		panic(err)
	}
	return []byte(strings.TrimSpace(string(b)) + "\n")
}
