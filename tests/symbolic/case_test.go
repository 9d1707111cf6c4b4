package symbolic

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/p4src/ids"
)

// testCase is a frame, the entries in the switch, and the expected result.
type testCase struct {
	Name    string            `json:"name"`
	Entries []json.RawMessage `json:"entries,omitempty"` // of p4.v1.Entity
	Port    uint32            `json:"port"`              // ids.CPUPort for a packet-out, header in front
	Frame   string            `json:"frame"`             // hexadecimal
	Out     uint32            `json:"out,omitempty"`     // port by which it leaves, 0 if it is dropped
	Want    string            `json:"want,omitempty"`    // its bytes when it leaves; * is any digit
	Drop    string            `json:"drop,omitempty"`    // reason, of ids.DropReason

	trace []string // of the tool's test; not kept
}

// read reads cases, one per line.
func read(r io.Reader) (all []testCase, err error) {
	d := json.NewDecoder(bufio.NewReader(r))
	for {
		var c testCase
		if err := d.Decode(&c); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("case %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
}

// write writes cases in the form that read reads.
func write(path string, all []testCase) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range all {
		if err := e.Encode(&all[i]); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// entities parses a case's entries.
func (c *testCase) entities() ([]*p4v1.Entity, error) {
	all := make([]*p4v1.Entity, len(c.Entries))
	for i, text := range c.Entries {
		all[i] = new(p4v1.Entity)
		if err := protojson.Unmarshal(text, all[i]); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", c.Name, i, err)
		}
	}
	return all, nil
}

// quoted matches the tool's byte strings, whose only escapes are \xHH.
var (
	quoted   = regexp.MustCompile(`(?m)^ +(packet|packet_mask): "(.*)"$`)
	portLine = regexp.MustCompile(`(?m)^ +port: (\d+)$`)
	computed = regexp.MustCompile(`Computed: meta\.drop_reason = (\d+);`)
)

// parseTool reads one file of p4testgen's PROTOBUF back end (p4testgen.proto, message TestCase). Its
// entities are P4Runtime's, so only the few lines around them are read by hand.
func parseTool(name string, text []byte) (*testCase, error) {
	c := &testCase{Name: name}
	head, entities, _ := bytes.Cut(text, []byte("\n# Table "))
	if len(entities) > 0 {
		r := new(p4v1.ReadResponse) // it has a field "entities", too
		if err := prototext.Unmarshal(append([]byte("# "), entities...), r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, e := range r.GetEntities() {
			canonical(e.GetTableEntry())
			c.Entries = append(c.Entries, compact(e))
		}
	}
	for l := range strings.Lines(string(head)) {
		if t, ok := strings.CutPrefix(l, "traces: '"); ok {
			c.trace = append(c.trace, strings.TrimSuffix(strings.TrimSpace(t), "'"))
		}
	}
	_, packets, _ := bytes.Cut(head, []byte("\ninput_packet {"))
	ports, values := portLine.FindAllSubmatch(packets, -1), quoted.FindAllSubmatch(packets, -1)
	if !(len(ports) == 1 && len(values) == 1 || len(ports) == 2 && len(values) == 3) {
		return nil, fmt.Errorf("%s: %d ports and %d byte strings; want those of an input and at most one output with its mask", name, len(ports), len(values))
	}
	var fields [3][]byte // input, output, mask
	for i, v := range values {
		s, err := strconv.Unquote(`"` + string(v[2]) + `"`)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, v[0], err)
		}
		fields[i] = []byte(s)
	}
	c.Port = number(ports[0][1])
	sum(c.Port, fields[0])
	c.Frame = hex.EncodeToString(fields[0])
	if len(ports) == 2 {
		c.Out = number(ports[1][1])
		sum(c.Out, fields[1])
		n := len(fields[1])
		if n > ids.PFCFrameBytes && binary.BigEndian.Uint16(fields[1][12:]) == ids.EtherTypeMACControl {
			n = ids.PFCFrameBytes // the tool's program does not remove it
		}
		c.Want = masked(fields[1][:n], fields[2][:n])
		return c, nil
	}
	reason := 0
	for _, t := range c.trace {
		if m := computed.FindStringSubmatch(t); m != nil {
			reason, _ = strconv.Atoi(m[1])
		}
	}
	c.Drop = ids.DropReason(reason)
	return c, nil
}

// sum puts a checksum into the IPv4 header of a frame on a port, because the tool runs a program without
// checksums. A frame from or to the controller has a header of two bytes in front.
func sum(port uint32, frame []byte) {
	const ethernet, ip, checksum = 14, 20, 10
	if port == ids.CPUPort {
		frame = frame[min(len(frame), controllerBytes):]
	}
	if len(frame) < ethernet+ip || binary.BigEndian.Uint16(frame[12:]) != ids.EtherTypeIPv4 || frame[ethernet]&15 != 5 {
		return
	}
	h := frame[ethernet : ethernet+ip]
	h[checksum], h[checksum+1] = 0, 0
	n := uint32(0)
	for i := 0; i < ip; i += 2 {
		n += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	n = n>>16 + n&0xffff
	binary.BigEndian.PutUint16(h[checksum:], ^uint16(n>>16+n))
}

func number(digits []byte) uint32 {
	n, _ := strconv.ParseUint(string(digits), 10, 32) // the expression matches only digits
	return uint32(n)
}

// masked writes bytes in hexadecimal; a digit with unknown bits is *.
func masked(value, mask []byte) string {
	digits := []byte(hex.EncodeToString(value))
	for i, m := range hex.EncodeToString(mask) {
		if m != 'f' && i < len(digits) {
			digits[i] = '*'
		}
	}
	return string(digits)
}

// compact writes an entity in a fixed form; protojson alone does not guarantee that.
func compact(e *p4v1.Entity) json.RawMessage {
	var b bytes.Buffer
	text, err := protojson.Marshal(e)
	if err == nil {
		err = json.Compact(&b, text)
	}
	if err != nil {
		panic(err) // an entity that was parsed can be written
	}
	return b.Bytes()
}

// canonical converts an entry of the tool to one that P4Runtime accepts: it removes matches of anything, clears
// bits outside the mask, and gives a next hop a weight.
func canonical(e *p4v1.TableEntry) {
	kept := e.Match[:0]
	for _, m := range e.GetMatch() {
		switch x := m.GetFieldMatchType().(type) {
		case *p4v1.FieldMatch_Ternary_:
			for i := range x.Ternary.Value {
				x.Ternary.Value[i] &= x.Ternary.Mask[i]
			}
			if zero(x.Ternary.Mask) {
				continue
			}
		case *p4v1.FieldMatch_Lpm:
			bits := x.Lpm.PrefixLen
			if bits == 0 {
				continue
			}
			for i := range x.Lpm.Value {
				if over := int32(8*i+8) - bits; over > 0 {
					x.Lpm.Value[i] &= byte(0xff << min(over, 8))
				}
			}
		case *p4v1.FieldMatch_Range_:
			if zero(x.Range.Low) && bytes.Count(x.Range.High, []byte{0xff}) == len(x.Range.High) {
				continue
			}
		}
		kept = append(kept, m)
	}
	e.Match = kept
	for _, a := range e.GetAction().GetActionProfileActionSet().GetActionProfileActions() {
		a.Weight = 1
	}
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
