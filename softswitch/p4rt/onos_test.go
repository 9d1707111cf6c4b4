package p4rt

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// onosPipelines returns the P4Info files of the pipelines of ONOS' repository, by the JSON of their program.
func onosPipelines(t *testing.T) map[string]string {
	t.Helper()
	onos := os.Getenv("ONOS")
	if onos == "" {
		t.Skip("ONOS is not set: want the path of a checkout of github.com/opennetworkinglab/onos")
	}
	files := map[string]string{}
	basic, _ := filepath.Glob(onos + "/pipelines/basic/src/main/resources/p4c-out/bmv2/*.json")
	for _, f := range basic {
		files[f] = strings.TrimSuffix(f, ".json") + "_p4info.txt"
	}
	fabric, _ := filepath.Glob(onos + "/pipelines/fabric/impl/src/main/resources/p4c-out/*/bmv2/default/bmv2.json")
	for _, f := range fabric {
		files[f] = filepath.Dir(f) + "/p4info.txt"
	}
	if len(files) < 4 {
		t.Fatalf("%d pipelines in %s, want those of basic and fabric", len(files), onos)
	}
	return files
}

// TestONOS: every BMv2 pipeline in ONOS' repository is pushed as ONOS pushes it. An entry is written in each of
// its tables and read back. A packet-out with only the metadata field that ONOS' interpreters set leaves by its
// port.
func TestONOS(t *testing.T) {
	for program, p4info := range onosPipelines(t) {
		t.Run(strings.TrimPrefix(filepath.Dir(program)+"/"+filepath.Base(program), os.Getenv("ONOS")), func(t *testing.T) {
			json, err := os.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(p4info)
			if err != nil {
				t.Fatal(err)
			}
			info := &p4configv1.P4Info{}
			if err := prototext.Unmarshal(text, info); err != nil {
				t.Fatal(err)
			}
			r := newRig(t, func(o *Options) { o.CPUPort = 255 }) // CPU_PORT of both pipelines
			s := r.open()
			s.become(1)
			const fingerprint = 0x0c0ffee
			r.push(both, &p4v1.ForwardingPipelineConfig{
				P4Info: info, P4DeviceConfig: json, Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: fingerprint},
			}, codes.OK)
			got, err := r.client.GetForwardingPipelineConfig(r.ctx, &p4v1.GetForwardingPipelineConfigRequest{
				DeviceId: deviceID, ResponseType: p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY,
			})
			if err != nil || got.GetConfig().GetCookie().GetCookie() != fingerprint || got.GetConfig().GetP4Info() != nil {
				t.Fatalf("ONOS takes the pipeline for another: %v, %v", got, err)
			}
			r.fill(info)
			r.packetOut(s, info)
		})
	}
}

// fill writes an entry in each table that takes one, with a group of two members if the table has an action profile.
func (r *rig) fill(info *p4configv1.P4Info) {
	r.t.Helper()
	actions := map[uint32]*p4configv1.Action{}
	for _, a := range info.Actions {
		actions[a.Preamble.Id] = a
	}
	written := 0
	for _, table := range info.Tables {
		i := slices.IndexFunc(table.ActionRefs, func(a *p4configv1.ActionRef) bool { return a.Scope != p4configv1.ActionRef_DEFAULT_ONLY })
		if i < 0 || table.IsConstTable || len(table.MatchFields) == 0 {
			continue
		}
		act := &p4v1.Action{ActionId: table.ActionRefs[i].Id}
		for _, q := range actions[act.ActionId].Params {
			act.Params = append(act.Params, &p4v1.Action_Param{ParamId: q.Id, Value: []byte{1}})
		}
		e := &p4v1.TableEntry{TableId: table.Preamble.Id, Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: act}}}
		for _, f := range table.MatchFields {
			r.match(e, f)
		}
		if profile := table.ImplementationId; profile != 0 {
			for m := uint32(1); m <= 2; m++ {
				r.mustWrite(p4rtmsg.Insert(&p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: m, Action: act}))
			}
			e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}}
			if selects(info, profile) {
				r.mustWrite(p4rtmsg.Insert(&p4v1.ActionProfileGroup{ActionProfileId: profile, GroupId: 1, MaxSize: 2, Members: []*p4v1.ActionProfileGroup_Member{
					{MemberId: 1, Weight: 1}, {MemberId: 2, Weight: 1},
				}}))
				e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 1}}
			}
		}
		r.mustWrite(p4rtmsg.Insert(e))
		r.wantRead(&p4v1.TableEntry{TableId: e.TableId}, e)
		r.mustWrite(p4rtmsg.Delete(e)) // so that no entry keeps the packet-out from its port
		written++
	}
	if written == 0 {
		r.t.Error("no table takes an entry")
	}
}

func selects(info *p4configv1.P4Info, profile uint32) bool {
	return slices.ContainsFunc(info.ActionProfiles, func(p *p4configv1.ActionProfile) bool { return p.Preamble.Id == profile && p.WithSelector })
}

// match adds the value 1 of a field to an entry's key.
func (r *rig) match(e *p4v1.TableEntry, f *p4configv1.MatchField) {
	one, bits := []byte{1}, int(f.Bitwidth)
	ones := slices.Repeat([]byte{0xff}, (bits+7)/8)
	ones[0] >>= (8 - bits%8) % 8
	var m *p4v1.FieldMatch
	switch f.GetMatchType() {
	case p4configv1.MatchField_EXACT:
		m = p4rtmsg.Exact(f.Id, one)
	case p4configv1.MatchField_LPM:
		m = p4rtmsg.LPM(f.Id, one, f.Bitwidth)
	case p4configv1.MatchField_TERNARY:
		e.Priority, m = 40_000, p4rtmsg.Ternary(f.Id, one, ones)
	case p4configv1.MatchField_RANGE:
		e.Priority, m = 40_000, p4rtmsg.Range(f.Id, one, one)
	default:
		r.t.Fatalf("match type of %v", f)
	}
	e.Match = append(e.Match, m)
}

// packetOut sends a packet out of port 1 with only egress_port set.
func (r *rig) packetOut(s *session, info *p4configv1.P4Info) {
	r.t.Helper()
	for _, header := range info.ControllerPacketMetadata {
		if header.Preamble.Name != "packet_out" {
			continue
		}
		for _, m := range header.Metadata {
			if m.Name != "egress_port" {
				continue
			}
			frame := make([]byte, 60)
			binary.BigEndian.PutUint16(frame[12:], 0x88cc) // LLDP, as ONOS' link provider sends
			s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{
				Payload: frame, Metadata: []*p4v1.PacketMetadata{{MetadataId: m.Id, Value: []byte{0, 1}}},
			}}})
			s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(1)})
			s.told(codes.OK) // the packet-out was taken, and no error was reported
			r.dev.mu.Lock()
			defer r.dev.mu.Unlock()
			if r.dev.sent[1] != 1 || len(r.dev.sent) != 1 {
				r.t.Errorf("packets by port: %v, want one of port 1", r.dev.sent)
			}
			return
		}
	}
	r.t.Error("no packet_out with egress_port")
}
