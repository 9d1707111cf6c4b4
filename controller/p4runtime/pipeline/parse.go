package pipeline

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Kinds are the entities that Parse reads, each with the form of its words.
var Kinds = []struct{ Kind, Form string }{
	{"table", "[table] TABLE KEY=VALUE... ACTION PARAM=VALUE... [priority=N] [idle_timeout=DURATION]"},
	{"default", "default TABLE ACTION PARAM=VALUE..."},
	{"member", "member PROFILE ID ACTION PARAM=VALUE..."},
	{"group", "group PROFILE ID MEMBER[*WEIGHT]..."},
	{"multicast", "multicast ID PORT..."},
	{"clone", "clone ID PORT..."},
	{"counter", "counter NAME INDEX packets=N bytes=N"},
	{"meter", "meter NAME INDEX cir=N cburst=N pir=N pburst=N"},
	{"register", "register NAME INDEX VALUE"},
	{"digest", "digest NAME [max_list_size=N] [max_timeout=DURATION]"},
}

// KindNames returns the kinds of Kinds.
func KindNames() []string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Kind
	}
	return names
}

// Parse reads an entity from words in the form that Kinds gives for its kind; a first word that is no kind is a
// table. A name may be shortened to an end that only one object's name has. Values are decimal, 0x or 0b numbers,
// IPv4, IPv6 or MAC addresses. The value of an LPM key has /LENGTH, that of a ternary key &MASK, that of a range key
// is LOW..HIGH. With delete an entry needs no action.
func (p *Pipeline) Parse(words []string, delete bool) (*p4v1.Entity, error) {
	if len(words) == 0 {
		return nil, errors.New("no entity is given")
	}
	kind := words[0]
	if !slices.Contains(KindNames(), kind) {
		kind, words = "table", append([]string{"table"}, words...)
	}
	if words = words[1:]; len(words) == 0 {
		return nil, fmt.Errorf("%s: the rest is missing, want %s", kind, form(kind))
	}
	name, rest := words[0], words[1:]
	switch kind {
	case "table", "default":
		return p.parseEntry(name, rest, kind == "default", delete)
	case "multicast", "clone":
		id, err := parseID(kind, name)
		if err != nil {
			return nil, err
		}
		ports, err := parseIDs(kind+" port", rest)
		if err != nil {
			return nil, err
		}
		if kind == "clone" {
			return CloneSession(id, ports...), nil
		}
		return Multicast(id, ports...), nil
	case "digest":
		return p.parseDigest(name, rest)
	}
	if len(rest) == 0 {
		return nil, fmt.Errorf("%s %s: the id or index is missing, want %s", kind, name, form(kind))
	}
	id, err := parseID(kind+" "+name, rest[0])
	if err != nil {
		return nil, err
	}
	rest = rest[1:]
	switch kind {
	case "member":
		return p.parseMember(name, id, rest, delete)
	case "group":
		return p.parseGroup(name, id, rest)
	case "register":
		return p.parseRegister(name, id, rest)
	case "counter":
		n, err := parseNumbers(kind+" "+name, rest, "packets", "bytes")
		if err != nil {
			return nil, err
		}
		c, err := p.counters.find(name)
		return p4rtmsg.Entity(&p4v1.CounterEntry{CounterId: c.GetPreamble().GetId(), Index: &p4v1.Index{Index: int64(id)},
			Data: &p4v1.CounterData{PacketCount: n[0], ByteCount: n[1]}}), err
	}
	n, err := parseNumbers(kind+" "+name, rest, "cir", "cburst", "pir", "pburst")
	if err != nil {
		return nil, err
	}
	m, err := p.meters.find(name)
	return p4rtmsg.Entity(&p4v1.MeterEntry{MeterId: m.GetPreamble().GetId(), Index: &p4v1.Index{Index: int64(id)},
		Config: &p4v1.MeterConfig{Cir: n[0], Cburst: n[1], Pir: n[2], Pburst: n[3]}}), err
}

// parseRegister reads the value of a cell, which must be one number.
func (p *Pipeline) parseRegister(name string, index uint32, words []string) (*p4v1.Entity, error) {
	r, err := p.regs.find(name)
	if err != nil {
		return nil, err
	}
	bits := r.GetTypeSpec().GetBitstring().GetBit()
	switch {
	case bits == nil:
		return nil, fmt.Errorf("register %s: its cells are no numbers of type bit, which is what can be written", name)
	case len(words) != 1:
		return nil, fmt.Errorf("register %s: want %s", name, form("register"))
	}
	v, err := parseValue("register "+name, words[0], bits.GetBitwidth())
	return p4rtmsg.Entity(&p4v1.RegisterEntry{RegisterId: r.GetPreamble().GetId(), Index: &p4v1.Index{Index: int64(index)},
		Data: &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: v}}}), err
}

func form(kind string) string {
	for _, k := range Kinds {
		if k.Kind == kind {
			return k.Form
		}
	}
	return ""
}

// parseEntry reads KEY=VALUE..., then an action and its parameters, or member=N or group=N.
func (p *Pipeline) parseEntry(table string, words []string, isDefault, delete bool) (*p4v1.Entity, error) {
	e := p.Entry(table)
	if isDefault {
		e = p.Default(table)
	}
	i := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(w, "=") })
	keys, call := words, []string(nil)
	if i >= 0 {
		keys, call = words[:i], words[i:]
	}
	// priority and idle_timeout may stand at either end; the action's own parameters come first.
	var params []string
	for _, w := range call {
		if name, _, _ := strings.Cut(w, "="); p.hasParam(call[0], name) || !e.option(w) {
			params = append(params, w)
		}
	}
	for _, w := range keys {
		if e.option(w) || e.err != nil {
			continue
		}
		name, text, _ := strings.Cut(w, "=")
		e.parseKey(name, text)
	}
	if len(params) > 0 && e.err == nil {
		args, err := p.parseArgs(params)
		if err != nil {
			return nil, err
		}
		e.Action(params[0], args...)
	}
	if e.err == nil && delete {
		sortMatches(e.entry.Match)
		return p4rtmsg.Entity(e.entry), nil
	}
	return e.Entity()
}

// hasParam reports whether an action has a parameter of that name.
func (p *Pipeline) hasParam(action, name string) bool {
	a, err := p.actions.find(action)
	return err == nil && slices.ContainsFunc(a.GetParams(), func(q *p4configv1.Action_Param) bool { return q.GetName() == name })
}

// option reads priority=N, idle_timeout=DURATION, member=N and group=N, unless the table has a key of that name.
func (e *Entry) option(word string) bool {
	name, text, ok := strings.Cut(word, "=")
	if !ok || e.err != nil || slices.ContainsFunc(e.table.GetMatchFields(), func(f *p4configv1.MatchField) bool { return f.GetName() == name }) {
		return false
	}
	switch name {
	case "priority", "member", "group":
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 {
			e.fail(fmt.Errorf("%s: %q is not allowed: want a number from 1 to 2147483647", name, text))
			return true
		}
		switch name {
		case "priority":
			e.Priority(int32(n))
		case "member":
			e.Member(uint32(n))
		case "group":
			e.Group(uint32(n))
		}
	case "idle_timeout":
		d, err := parseDuration(name, text)
		if err != nil {
			e.fail(err)
			return true
		}
		e.entry.IdleTimeoutNs = d
	default:
		return false
	}
	return true
}

// parseKey sets the match of one key from text.
func (e *Entry) parseKey(name, text string) {
	i := slices.IndexFunc(e.table.GetMatchFields(), func(f *p4configv1.MatchField) bool {
		return f.GetName() == name || strings.HasSuffix(f.GetName(), "."+name)
	})
	if i < 0 {
		e.match(name, 0, nil, nil, 0) // records an error that lists the keys
		return
	}
	f := e.table.GetMatchFields()[i]
	what := fmt.Sprintf("table %s key %s", e.table.GetPreamble().GetName(), f.GetName())
	parse := func(text string) []byte {
		v, err := parseValue(what, text, f.GetBitwidth())
		if err != nil {
			e.fail(err)
		}
		return v
	}
	var v, other []byte
	prefix := int(f.GetBitwidth())
	switch kind := f.GetMatchType(); kind {
	case p4configv1.MatchField_EXACT, p4configv1.MatchField_OPTIONAL:
		v = parse(text)
	case p4configv1.MatchField_LPM:
		addr, length, cut := strings.Cut(text, "/")
		if cut {
			var err error
			if prefix, err = strconv.Atoi(length); err != nil {
				e.fail(fmt.Errorf("%s: the prefix length %q is not a number", what, length))
			}
		}
		v = parse(addr)
	case p4configv1.MatchField_TERNARY:
		left, right, cut := strings.Cut(text, "&")
		v, other = parse(left), ones(f.GetBitwidth())
		if cut {
			other = parse(right)
		}
	case p4configv1.MatchField_RANGE:
		left, right, cut := strings.Cut(text, "..")
		if !cut {
			right = left
		}
		v, other = parse(left), parse(right)
	default:
		e.fail(fmt.Errorf("%s matches by %v, which is not known here", what, kind))
	}
	e.match(f.GetName(), f.GetMatchType(), v, other, prefix)
}

func ones(width int32) []byte {
	n := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return n.Sub(n, big.NewInt(1)).Bytes()
}

// parseArgs reads ACTION PARAM=VALUE..., by the action's declaration.
func (p *Pipeline) parseArgs(words []string) ([]Arg, error) {
	a, err := p.actions.find(words[0])
	if err != nil {
		return nil, err
	}
	return parseFields("action "+a.GetPreamble().GetName(), "parameter", a.GetParams(), words[1:])
}

// parseFields reads NAME=VALUE... by the declarations of parameters or fields.
func parseFields[T declared](what, kind string, list []T, words []string) ([]Arg, error) {
	var names []string
	for _, d := range list {
		names = append(names, d.GetName())
	}
	var args []Arg
	for _, w := range words {
		name, text, ok := strings.Cut(w, "=")
		i := slices.Index(names, name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: %q is not allowed: want NAME=VALUE", what, w)
		case i < 0:
			return nil, fmt.Errorf("%s has no %s %q; it has %s", what, kind, name, orNone(names))
		}
		v, err := parseValue(what+" "+kind+" "+name, text, list[i].GetBitwidth())
		if err != nil {
			return nil, err
		}
		args = append(args, Arg{name, v})
	}
	return args, nil
}

func (p *Pipeline) parseMember(profile string, id uint32, words []string, delete bool) (*p4v1.Entity, error) {
	if len(words) == 0 && delete {
		prof, err := p.profiles.find(profile)
		return p4rtmsg.Entity(&p4v1.ActionProfileMember{ActionProfileId: prof.GetPreamble().GetId(), MemberId: id}), err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("member: the action is missing, want %s", form("member"))
	}
	args, err := p.parseArgs(words)
	if err != nil {
		return nil, err
	}
	return p.Member(profile, id, words[0], args...)
}

func (p *Pipeline) parseGroup(profile string, id uint32, words []string) (*p4v1.Entity, error) {
	var ids []uint32
	weights := map[uint32]int32{}
	for _, w := range words {
		member, weight, cut := strings.Cut(w, "*")
		m, err := parseID("group member", member)
		if err != nil {
			return nil, err
		}
		n := uint64(1)
		if cut {
			if n, err = strconv.ParseUint(weight, 10, 31); err != nil || n == 0 {
				return nil, fmt.Errorf("group member %d: the weight %q is not allowed: want a number from 1 on", m, weight)
			}
		}
		ids, weights[m] = append(ids, m), int32(n)
	}
	e, err := p.Group(profile, id, ids)
	for _, m := range e.GetActionProfileGroup().GetMembers() {
		m.Weight = weights[m.GetMemberId()]
	}
	return e, err
}

func (p *Pipeline) parseDigest(name string, words []string) (*p4v1.Entity, error) {
	most, timeout := int64(1), int64(0)
	for _, w := range words {
		key, text, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "max_list_size":
			if most, err = strconv.ParseInt(text, 10, 32); err != nil || most < 0 {
				return nil, fmt.Errorf("digest %s max_list_size: %q is not allowed: want a number from 0 on", name, text)
			}
		case "max_timeout":
			if timeout, err = parseDuration("digest "+name+" max_timeout", text); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("digest %s: %q is not allowed: want max_list_size=N or max_timeout=DURATION", name, w)
		}
	}
	return p.Digest(name, int32(most), timeout)
}

// ParseIndex reads the index of a counter, meter or register.
func ParseIndex(what, text string) (uint32, error) { return parseID(what+" index", text) }

func parseID(what, text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not allowed: want a number from 0 to 4294967295", what, text)
	}
	return uint32(n), nil
}

func parseIDs(what string, words []string) ([]uint32, error) {
	ids := make([]uint32, len(words))
	for i, w := range words {
		var err error
		if ids[i], err = parseID(what, w); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// parseNumbers reads NAME=N for some of the names; the others are 0.
func parseNumbers(what string, words []string, names ...string) ([]int64, error) {
	out := make([]int64, len(names))
	for _, w := range words {
		name, text, _ := strings.Cut(w, "=")
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("%s: %q is not allowed: want %s=N", what, w, strings.Join(names, "=N, "))
		}
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s %s: %q is not allowed: want a number from 0 on", what, name, text)
		}
		out[i] = n
	}
	return out, nil
}

// parseValue reads a value of width bits. A width of 0 is a translated type, whose values are text.
func parseValue(what, text string, width int32) ([]byte, error) {
	if width == 0 {
		return []byte(text), nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return value(what, a.AsSlice(), width)
	}
	if m, err := net.ParseMAC(text); err == nil && len(m) == 6 {
		return value(what, m, width)
	}
	n, ok := new(big.Int).SetString(text, 0)
	if !ok || n.Sign() < 0 || strings.HasPrefix(text, "+") {
		return nil, fmt.Errorf("%s: %q is not allowed: want a number, 0x and hexadecimal digits, or an IPv4, IPv6 or MAC address", what, text)
	}
	return value(what, append([]byte{0}, n.Bytes()...), width)
}

// ParsePacketOut reads the fields of the packet_out header, NAME=VALUE. Fields that are not given are 0.
func (p *Pipeline) ParsePacketOut(payload []byte, words []string) (*p4v1.PacketOut, error) {
	h, err := p.headers.find(packetOut)
	if err != nil {
		return nil, err
	}
	args, err := parseFields(packetOut, "field", h.GetMetadata(), words)
	if err != nil {
		return nil, err
	}
	for _, d := range h.GetMetadata() {
		if !slices.ContainsFunc(args, func(a Arg) bool { return a.Name == d.GetName() }) {
			args = append(args, Arg{d.GetName(), []byte{0}})
		}
	}
	return p.PacketOut(payload, args...)
}

func parseDuration(what, text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is not allowed: want a duration such as 500ms or 30s", what, text)
	}
	return d.Nanoseconds(), nil
}
