package psa

import (
	"encoding/binary"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/hash"
)

// methods holds the number of parameters of the methods that p4c calls. The first parameter is the
// extern instance, except for generate_digest.
var methods = map[string]int{
	"_Hash_get_hash": 3, "_Hash_get_hash_mod": 5, "_InternetChecksum_add": 2, "_InternetChecksum_subtract": 2,
	"_InternetChecksum_get": 2, "_InternetChecksum_get_verify": 3, "_InternetChecksum_get_state": 2,
	"_InternetChecksum_set_state": 2, "_InternetChecksum_clear": 1, "generate_digest": 1,
}

// Primitive implements engine.Model.
func (m *model) Primitive(c *engine.Compiler, j *bmv2json.Primitive) engine.Emit {
	switch j.Op {
	case "_Counter_count":
		return c.Like(j, "count", "counter_array")
	case "_Meter_execute":
		return c.Like(j, "execute_meter", "meter_array")
	}
	n, ok := methods[j.Op]
	if !ok {
		return nil
	}
	c.Arity(j, n)
	zero := expr.NewInt(0)
	switch j.Op {
	case "generate_digest":
		list := c.LearnList(j, 0)
		if list.Kind != expr.Const || !list.K.IsUint64() || list.K.Uint64() >= maxLearnLists {
			c.Fail("generate_digest wants the number of a learn list, 0 to %d", maxLearnLists-1)
		}
		bit := uint64(1) << list.K.Uint64()
		return engine.Call(func(p *engine.Packet) { m.packed.Set(p, m.packed.Get(p)|bit) })
	case "_Hash_get_hash":
		f, input := m.hash(c, j), c.Bytes(j, 2, 8)
		return c.Compute(j, 1, zero, zero, func(p *engine.Packet, _, _ uint64) uint64 { return f(input(p)) })
	case "_Hash_get_hash_mod":
		f, input := m.hash(c, j), c.Bytes(j, 3, 8)
		return c.Compute(j, 1, c.Data(j, 2), c.Data(j, 4), func(p *engine.Packet, base, size uint64) uint64 {
			return base + f(input(p))%max(1, size)
		})
	}
	name := c.Name(j, 0, "extern")
	sum, ok := m.sums[name]
	if !ok {
		c.Fail("unknown InternetChecksum %q", name)
	}
	switch j.Op {
	case "_InternetChecksum_add", "_InternetChecksum_subtract":
		input, subtract := c.Bytes(j, 1, 16), j.Op == "_InternetChecksum_subtract"
		return engine.Call(func(p *engine.Packet) { sum.Set(p, add(sum.Get(p), input(p), subtract)) })
	case "_InternetChecksum_get":
		return c.Compute(j, 1, zero, zero, func(p *engine.Packet, _, _ uint64) uint64 { return sum.Get(p) ^ 0xffff })
	case "_InternetChecksum_get_state":
		return c.Compute(j, 1, zero, zero, func(p *engine.Packet, _, _ uint64) uint64 { return sum.Get(p) })
	case "_InternetChecksum_get_verify":
		return c.Compute(j, 1, c.Data(j, 2), zero, func(p *engine.Packet, have, _ uint64) uint64 {
			if have&0xffff == sum.Get(p)^0xffff {
				return 1
			}
			return 0
		})
	case "_InternetChecksum_set_state":
		return c.Store(sum, c.Data(j, 1))
	}
	return c.Store(sum, zero) // clear
}

// hash returns the function of a hash.
func (m *model) hash(c *engine.Compiler, j *bmv2json.Primitive) hash.Func {
	name := c.Name(j, 0, "extern")
	f := hash.Named(m.hashes[name])
	if f == nil {
		c.Fail("Hash %q has algorithm %q, which is not known", name, m.hashes[name])
	}
	return f
}

// add adds 16-bit words to a ones' complement sum, or subtracts them (RFC 1071, RFC 1624). It ignores leading zero
// words, as BMv2 does.
func add(sum uint64, b []byte, subtract bool) uint64 {
	leading := true
	for ; len(b) > 1; b = b[2:] {
		w := uint64(binary.BigEndian.Uint16(b))
		if leading = leading && w == 0; leading {
			continue
		}
		if subtract {
			w ^= 0xffff
		}
		if sum += w; sum > 0xffff {
			sum -= 0xffff
		}
	}
	return sum
}
