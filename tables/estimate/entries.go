package estimate

import (
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
)

// Names of what only a Tofino has.
const (
	PortTable     = "egress.gradient.estimate_port"
	ProfileAction = "egress.gradient.set_profile"
)

// Entries returns all entries, in an order that is safe to insert.
func (t *Tables) Entries() []buffer.Entry {
	up := fraction - t.logs.Precision().Frac
	var list []buffer.Entry
	add := func(table, field string, key uint64, prefix uint, action string, result uint64) {
		list = append(list, buffer.Entry{Table: table, Match: []buffer.Match{{Field: field, Value: key, Prefix: int(prefix)}},
			Action: buffer.Action{Name: action, Params: []uint64{result}}})
	}
	for _, e := range t.logs.LogEntries(depthBits) {
		add(ids.TableLog2BytesName, "bytes", e.Key, keyBits-depthBits+e.PrefixLen, ids.ActionSetLogBytesName, e.Result<<up+t.offset)
	}
	for _, e := range t.logs.LogEntries(keyBits) {
		add(ids.TableLog2TicksName, "ticks", e.Key, e.PrefixLen, ids.ActionSetLogTicksName, e.Result<<up)
	}
	// A logarithm of 0 means that the queue stands still or the gradient is at most 1.
	add(ids.TableExp2Name, "log", 0, keyBits, ids.ActionSetGradientName, 0)
	for _, e := range t.logs.ExpEntries(wholeBits) {
		if int64(e.Result) >= t.limit {
			break
		}
		add(ids.TableExp2Name, "log", e.Key<<up, keyBits-wholeBits-fraction+e.PrefixLen, ids.ActionSetGradientName, e.Result)
	}
	list = append(list, buffer.Entry{Table: ids.TableExp2Name, Action: buffer.Action{Name: ids.ActionSetGradientName, Params: []uint64{uint64(t.limit)}}})
	for i, link := range t.links {
		list = append(list, buffer.Thresholds(uint64(i), link)...)
	}
	for i, p := range t.ports {
		list = append(list, buffer.Entry{Table: PortTable, Match: []buffer.Match{{Field: "egress_port", Value: uint64(p.Number), Prefix: buffer.Exact}},
			Action: buffer.Action{Name: ProfileAction, Params: []uint64{uint64(t.profile[i])}}})
	}
	return list
}
