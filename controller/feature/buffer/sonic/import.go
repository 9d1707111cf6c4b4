package sonic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// Imported is what a CONFIG_DB says.
type Imported struct {
	// Sections are buffer, qos and pfc_watchdog of a fabric file.
	Sections []byte
	// Warnings name what the argument approximate of Import has changed.
	Warnings []string
	// Left names what the tables of buffers and classes have beside, with the reason why it is not taken.
	Left []string
}

// importer makes a policy of tables. Ports are those of PORT_QOS_MAP, in its order.
type importer struct {
	report
	db    DB
	taken map[string]bool // paths of values
	notes []string        // of Imported.Left, beside values

	ports []string
	h     headroom.Config
	class [dscps]qos.Class
	dog   pfcwatchdog.Config
}

// Import returns the sections of a fabric file that say what the tables of a CONFIG_DB do: when which
// queue is paused or refuses a packet, at the ingress. What no such sections say is an error, a *yamlnode.Error that
// names table, key and field; with approximate the nearest is taken, where there is one. What else
// the tables have is in Imported.Left. Tables of other purposes are not looked at.
func Import(file string, text []byte, approximate bool) (*Imported, error) {
	r := &importer{report: report{approximate: approximate, done: "imported", line: func(string) int { return 0 }}, taken: map[string]bool{}}
	r.db, r.faults = read(text, append(slices.Sorted(maps.Keys(known)), tablePort)...)
	r.broken = len(r.faults) > 0
	for _, step := range []func(){r.links, r.classes, r.buffer, r.queues, r.watch} {
		if !r.broken {
			step()
		}
	}
	if err := yamlnode.NewError(file, r.faults, maxFaults); err != nil {
		return nil, err
	}
	return &Imported{sections(r.h, r.class, r.dog), r.warnings, r.left()}, nil
}

// number returns a value as a number; low where it is none in range.
func (r *importer) number(low, high int64, table, key, field string) int64 {
	v, ok := r.get(table, key, field)
	n, err := strconv.ParseInt(v, 10, 64)
	allowed := fmt.Sprintf("%d to %d", low, high)
	if low == high {
		allowed = fmt.Sprint(low)
	}
	switch {
	case !ok:
		r.fault(path(table, key, field), "is missing, want %s", allowed)
	case err != nil || n < low || n > high:
		r.fault(path(table, key, field), "is %q, want %s", v, allowed)
	default:
		return n
	}
	return low
}

// maxBytes is the most that a section buffer takes.
const maxBytes = 2 * units.GB

func (r *importer) bytes(table, key, field string) units.Bytes {
	return units.Bytes(r.number(0, int64(maxBytes), table, key, field))
}

// at is what is set somewhere.
type at[T any] struct {
	path string
	is   T
}

// same returns what is set everywhere, or, where that differs, what pick takes of it.
func same[T cmp.Ordered](r *importer, list []at[T], pick func([]T) T) T {
	var all []T
	for _, a := range list {
		all = append(all, a.is)
	}
	best := pick(all)
	where := list[slices.Index(all, best)].path
	for _, a := range list {
		if a.is != best {
			r.unlike(a.path, text(a.is), fmt.Sprintf("%s as %s: a switch has one", text(best), where), text(best))
			break
		}
	}
	return best
}

// text returns a value as a CONFIG_DB has it.
func text(v any) string {
	switch v := v.(type) {
	case units.Bytes:
		return amount(v)
	case time.Duration:
		return millis(v)
	}
	return fmt.Sprint(v)
}

// links reads what ports are there, which classes are lossless, and the links.
func (r *importer) links() {
	r.ports = slices.DeleteFunc(slices.Sorted(maps.Keys(r.db[tablePortQoS])), func(port string) bool { return port == "global" })
	if len(r.ports) == 0 {
		r.fault(tablePortQoS, "has no port")
		return
	}
	if len(r.ports) > headroom.MaxPorts {
		r.fault(tablePortQoS, "has %d ports, want at most %d", len(r.ports), headroom.MaxPorts)
		return
	}
	var mtu []at[int64]
	for i, port := range r.ports {
		value, _ := r.get(tablePortQoS, port, "pfc_enable")
		switch mask, ok := classList(value); {
		case !ok || mask == 0:
			r.fault(path(tablePortQoS, port, "pfc_enable"), "is %q, want classes under PFC, such as 3,4", value)
		case i == 0:
			r.h.Lossless = mask
		case mask != r.h.Lossless:
			r.fault(path(tablePortQoS, port, "pfc_enable"), "is %q, want %q as %s: classes are lossless on a whole switch", value, list(r.h.Lossless), r.ports[0])
		}
		mtu = append(mtu, at[int64]{path(tablePort, port, "mtu"), r.number(int64(minFrame), int64(maxFrame), tablePort, port, "mtu")})
		r.h.Ports = append(r.h.Ports, headroom.Port{
			Rate: units.Rate(r.number(1, int64(maxSpeed/units.Mbps), tablePort, port, "speed")) * units.Mbps, Delay: r.delay(port),
		})
	}
	if !r.broken {
		r.h.MTU = units.Bytes(same(r, mtu, slices.Max))
	}
}

// delay returns that of a port's cable.
func (r *importer) delay(port string) units.Time {
	row := cables
	for _, key := range slices.Sorted(maps.Keys(r.db[tableCable])) {
		if r.db[tableCable][key][port] != "" {
			row = key
			break
		}
	}
	text, _ := r.get(tableCable, row, port)
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "m"), 10, 64)
	if most := int64(units.Second / metre); err != nil || n < 1 || n > most || !strings.HasSuffix(text, "m") {
		r.fault(path(tableCable, row, port), "is %q, want 1m to %dm", text, most)
		return metre
	}
	return units.Time(n) * metre
}
