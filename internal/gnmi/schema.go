package gnmi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/value"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Leaf is a leaf of the models. It is immutable.
type Leaf struct {
	elems []elem
	keys  []string // names of the keys of the lists above the leaf, in order
	names []*Leaf  // leaves that repeat the keys of these lists
}

// elem is an element of a path; key is the name of a list's key.
type elem struct{ module, name, key string }

// Leaves are all leaves that can be served.
var Leaves []*Leaf

// names are the leaves that repeat the key of a list, by the path of the list.
var names = map[string]*Leaf{}

// The leaves. An element is written with its module if that differs from the module before, and with its key
// and the key's kind.
const (
	oneInterface = "openconfig-interfaces:interfaces/interface[name=port]/"
	counters     = oneInterface + "state/counters/"
	dropped      = oneInterface + "headgate-buffer:drops/drop[reason=reason]/state/"
	qos          = "openconfig-qos:qos/"
	qosInterface = qos + "interfaces/interface[interface-id=port]/"
	queue        = qosInterface + "output/queues/queue[name=queue]/state/"
	pfc          = qosInterface + "headgate-buffer:pfc/"
	class        = pfc + "classes/class[class=class]/state/"
	buffer       = qos + "headgate-buffer:buffer/"
	pool         = buffer + "pools/pool[name=pool]/state/"
)

// Of a port. Values are uint64 unless a comment says otherwise.
var (
	_             = leaf(oneInterface + "state/name")
	Type          = leaf(oneInterface + "state/type")               // string
	Description   = leaf(oneInterface + "state/description")        // string
	AdminStatus   = leaf(oneInterface + "state/admin-status")       // Up or Down
	OperStatus    = leaf(oneInterface + "state/oper-status")        // Up, Down or Unknown
	MTU           = leaf(oneInterface + "state/mtu")                // bytes of a frame, with its Ethernet header; uint32
	ID            = leaf(oneInterface + "state/openconfig-p4rt:id") // uint32
	InOctets      = leaf(counters + "in-octets")
	InPkts        = leaf(counters + "in-pkts")
	InDiscards    = leaf(counters + "in-discards")
	InErrors      = leaf(counters + "in-errors")
	OutOctets     = leaf(counters + "out-octets")
	OutPkts       = leaf(counters + "out-pkts")
	OutDiscards   = leaf(counters + "out-discards")
	OutErrors     = leaf(counters + "out-errors")
	InMACControl  = leaf(oneInterface + "openconfig-if-ethernet:ethernet/state/counters/in-mac-control-frames")
	_             = leaf(dropped + "reason")
	DropPackets   = leaf(dropped + "packets")
	_             = leaf(qosInterface + "state/interface-id")
	QueueingDelay = leaf(qosInterface + "output/state/headgate-buffer:queueing-delay") // ns
)

// Of a queue of a port.
var (
	_               = leaf(queue + "name")
	MaxQueueLen     = leaf(queue + "max-queue-len") // bytes, like all lengths and pools
	TransmitPkts    = leaf(queue + "transmit-pkts")
	TransmitOctets  = leaf(queue + "transmit-octets")
	DroppedPkts     = leaf(queue + "dropped-pkts")
	DroppedOctets   = leaf(queue + "dropped-octets")
	QueueLen        = leaf(queue + "headgate-buffer:queue-len")
	QueuePauses     = leaf(queue + "headgate-buffer:pauses")
	QueuePausedTime = leaf(queue + "headgate-buffer:paused-time") // ns
)

// PFC of a port, and of its classes.
var (
	PFCPauseFrames   = leaf(pfc + "state/out-pause-frames")
	PFCResumeFrames  = leaf(pfc + "state/out-resume-frames")
	PFCRefreshFrames = leaf(pfc + "state/out-refresh-frames")
	PFCInFrames      = leaf(pfc + "state/in-frames")
	Departed         = leaf(pfc + "state/departed-octets")
	Victim           = leaf(pfc + "state/victim") // bool
	VictimTurns      = leaf(pfc + "state/victim-turns")

	_              = leaf(class + "class")
	ClassPrivate   = leaf(class + "private-bytes")
	ClassShared    = leaf(class + "shared-bytes")
	ClassHeadroom  = leaf(class + "headroom-bytes")
	PeerPaused     = leaf(class + "peer-paused")      // bool
	PeerPausedTime = leaf(class + "peer-paused-time") // ns
	LosslessDrops  = leaf(class + "lossless-dropped-pkts")
	InPauses       = leaf(class + "in-pauses")
	InResumes      = leaf(class + "in-resumes")
	Storm          = leaf(class + "storm") // bool
	Storms         = leaf(class + "storms")
	StormDrops     = leaf(class + "storm-dropped-pkts")
)

// Of a switch's buffer.
var (
	Threshold = leaf(buffer + "state/threshold")
	_         = leaf(pool + "name")
	PoolSize  = leaf(pool + "size")
	PoolUsed  = leaf(pool + "used")
	PoolPeak  = leaf(pool + "peak")
)

// Values of enumerated leaves.
const (
	Up       = "UP"
	Down     = "DOWN"
	Unknown  = "UNKNOWN"
	Ethernet = "iana-if-type:ethernetCsmacd" // value of the leaf Type
)

// models define the leaves. The versions are those of OpenConfig's release of July 2026.
var models = []*gpb.ModelData{
	{Name: "openconfig-interfaces", Organization: "OpenConfig working group", Version: "3.8.1"},
	{Name: "openconfig-if-ethernet", Organization: "OpenConfig working group", Version: "2.18.0"},
	{Name: "openconfig-p4rt", Organization: "OpenConfig working group", Version: "1.0.0"},
	{Name: "openconfig-qos", Organization: "OpenConfig working group", Version: "2.2.0"},
	{Name: "headgate-buffer", Organization: "Headgate", Version: "2026-11-27"},
}

// EthernetHeader is the length of the header that MTU counts and the kernel's MTU of an interface does not, in bytes.
const EthernetHeader = 14

// leaf adds a leaf to Leaves. The leaf that repeats the key of a list is added before the others in the list.
func leaf(text string) *Leaf {
	l, module, path := &Leaf{}, "", ""
	for word := range strings.SplitSeq(text, "/") {
		path += "/" + word
		if m, rest, ok := strings.Cut(word, ":"); ok {
			module, word = m, rest
		}
		e := elem{module: module, name: word}
		if n, key, ok := strings.Cut(strings.TrimSuffix(word, "]"), "["); ok {
			kind := ""
			e.name = n
			e.key, kind, _ = strings.Cut(key, "=")
			l.keys = append(l.keys, kind)
			if names[path] == nil {
				names[path] = l
			}
			l.names = append(l.names, names[path])
		}
		l.elems = append(l.elems, e)
	}
	Leaves = append(Leaves, l)
	return l
}

// Value is the present value of a leaf of a switch. Of holds the keys of the lists above the leaf, and ""
// beyond them. Is has the type that the leaf's comment names.
type Value struct {
	Leaf *Leaf
	Of   [2]string
	Is   any
}

// path returns the first depth elements of the value's path.
func (v Value) path(depth int) *gpb.Path {
	p, keys := &gpb.Path{}, v.Of[:]
	for _, e := range v.Leaf.elems[:depth] {
		element := &gpb.PathElem{Name: e.name}
		if e.key != "" {
			element.Key = map[string]string{e.key: keys[0]}
			keys = keys[1:]
		}
		p.Elem = append(p.Elem, element)
	}
	return p
}

// complete returns values and, for the lists that they are in, the leaves that repeat the keys.
func complete(values []Value) []Value {
	type entry struct {
		*Leaf
		of [2]string
	}
	seen := map[entry]bool{}
	out := slices.Clone(values)
	for _, v := range values {
		for n, name := range v.Leaf.names {
			e := entry{Leaf: name}
			copy(e.of[:n+1], v.Of[:])
			if !seen[e] {
				seen[e] = true
				out = append(out, Value{e.Leaf, e.of, keyValue(v.Leaf.keys[n], e.of[n])})
			}
		}
	}
	return out
}

// encodings are the served encodings.
var encodings = []gpb.Encoding{gpb.Encoding_JSON, gpb.Encoding_JSON_IETF, gpb.Encoding_PROTO}

func checkEncoding(e gpb.Encoding) error {
	if slices.Contains(encodings, e) {
		return nil
	}
	return status.Errorf(codes.Unimplemented, "encoding: %v is not served: want JSON, JSON_IETF or PROTO", e)
}

// typed returns a value in an encoding.
func typed(is any, e gpb.Encoding) *gpb.TypedValue {
	if e != gpb.Encoding_PROTO {
		return jsonTyped(jsonOf(is, e), e)
	}
	v, err := value.FromScalar(is)
	if err != nil { // a type of texts
		return &gpb.TypedValue{Value: &gpb.TypedValue_StringVal{StringVal: fmt.Sprint(is)}}
	}
	return v
}

func jsonTyped(v any, e gpb.Encoding) *gpb.TypedValue {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, lists, texts, numbers and truth values
	}
	if e == gpb.Encoding_JSON {
		return &gpb.TypedValue{Value: &gpb.TypedValue_JsonVal{JsonVal: text}}
	}
	return &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: text}}
}

// jsonOf returns a leaf's value as json.Marshal takes it. RFC 7951, 6.1: 64 bits are a text.
func jsonOf(is any, e gpb.Encoding) any {
	if n, ok := is.(uint64); ok && e == gpb.Encoding_JSON_IETF {
		return strconv.FormatUint(n, 10)
	}
	return is
}

// keyValue converts a list key to the type of the leaf that repeats it.
func keyValue(kind, text string) any {
	if kind == "class" {
		n, err := strconv.ParseUint(text, 10, 8)
		if err == nil {
			return uint32(n)
		}
	}
	return text
}

// tree is the values below a path as a JSON object.
type tree struct {
	object map[string]any
	below  map[string]*tree // subtrees by name, and by key below a list
}

func newTree() *tree { return &tree{map[string]any{}, map[string]*tree{}} }

// add puts a value into the tree, whose root is at the first depth elements of the value's path.
func (t *tree) add(v Value, depth int, e gpb.Encoding) {
	module, keys := "", 0
	for i, el := range v.Leaf.elems {
		if el.key != "" {
			keys++
		}
		if i < depth {
			continue
		}
		word := el.name
		if e == gpb.Encoding_JSON_IETF && el.module != module { // RFC 7951, 4
			word = el.module + ":" + word
		}
		module = el.module
		if i == len(v.Leaf.elems)-1 {
			t.object[word] = jsonOf(v.Is, e)
			return
		}
		id := word
		if el.key != "" {
			id += "\x00" + v.Of[keys-1]
		}
		next := t.below[id]
		if next == nil {
			next = newTree()
			t.below[id] = next
			if el.key == "" {
				t.object[word] = next.object
			} else {
				next.object[el.key] = keyValue(v.Leaf.keys[keys-1], v.Of[keys-1])
				entries, _ := t.object[word].([]any)
				t.object[word] = append(entries, next.object)
			}
		}
		t = next
	}
}
