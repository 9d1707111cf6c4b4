package symbolic

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// members is the number of next hops of a group.
const members = 5

// spread turns a case with one next hop into one with a group. The case's next hop is the member that the frame's
// five-tuple selects, and the other members lead to other ports. ok is false if the case has no route.
func spread(c testCase) (s testCase, ok bool, err error) {
	entities, err := c.entities()
	if err != nil {
		return s, false, err
	}
	frame, err := hex.DecodeString(c.Frame)
	if err != nil {
		return s, false, err
	}
	if c.Port == ids.CPUPort {
		frame = frame[min(len(frame), controllerBytes):]
	}
	tuple := fiveTuple(frame)
	s = c
	s.Name, s.Entries = c.Name+"/members", nil
	for _, e := range entities {
		hops := e.GetTableEntry().GetAction().GetActionProfileActionSet().GetActionProfileActions()
		if len(hops) != 1 || tuple == nil {
			s.Entries = append(s.Entries, compact(e))
			continue
		}
		ok = true
		group := &p4v1.ActionProfileGroup{ActionProfileId: ids.ProfileECMP, GroupId: 1, MaxSize: ids.MaxGroupMembers}
		// Without a seed, nothing is added to the hash or subtracted from it (package internal/ecmp).
		h := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(tuple))
		chosen := crc32.ChecksumIEEE(append(h, h...)) % members
		for i := range uint32(members) {
			a := hops[0].GetAction()
			if i != chosen {
				a = proto.Clone(a).(*p4v1.Action)
				a.Params[0].Value = p4rtmsg.Uint(uint64(elsewhere(a.Params[0].Value, i)))
			}
			s.Entries = append(s.Entries, compact(p4rtmsg.Entity(&p4v1.ActionProfileMember{ActionProfileId: ids.ProfileECMP, MemberId: i + 1, Action: a})))
			group.Members = append(group.Members, &p4v1.ActionProfileGroup_Member{MemberId: i + 1, Weight: 1})
		}
		e.GetTableEntry().Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 1}}
		s.Entries = append(s.Entries, compact(p4rtmsg.Entity(group)), compact(e))
	}
	return s, ok, nil
}

// elsewhere returns a port other than the given one.
func elsewhere(port []byte, i uint32) uint32 {
	p := 1 + i%(target.Ports-1)
	if uint64(p) == bytestring.Low64(port) {
		return target.Ports
	}
	return p
}

// fiveTuple returns the fields that p4src/v1model/routing.p4 hashes to choose a member: addresses, protocol, and
// ports if there are any. It is nil without an IPv4 header.
func fiveTuple(f []byte) []byte {
	const ethernet, ip, udp, tcp = 14, 20, 17, 6
	if len(f) < ethernet+ip || binary.BigEndian.Uint16(f[12:]) != ids.EtherTypeIPv4 {
		return nil
	}
	h := f[ethernet:]
	t := append(append([]byte(nil), h[12:20]...), h[9], 0, 0, 0, 0)
	whole := binary.BigEndian.Uint16(h[6:])&0x3fff == 0
	need := map[byte]int{udp: 8, tcp: 4}[h[9]]
	if h[0] == 0x45 && whole && need > 0 && len(h) >= ip+need {
		copy(t[9:], h[ip:ip+4])
	}
	return t
}
