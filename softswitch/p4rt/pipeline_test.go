package p4rt

import (
	"bytes"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

const (
	verify    = p4v1.SetForwardingPipelineConfigRequest_VERIFY
	save      = p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE
	commit    = p4v1.SetForwardingPipelineConfigRequest_COMMIT
	both      = p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT
	reconcile = p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT
)

func TestRefusedPipelines(t *testing.T) {
	r, _ := running(t)
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	before, commits := r.dev.committed()
	bad := func(edit func(*p4v1.ForwardingPipelineConfig)) *p4v1.ForwardingPipelineConfig {
		c := p4test.Config()
		edit(c)
		return c
	}
	for name, cfg := range map[string]*p4v1.ForwardingPipelineConfig{
		"none":           nil,
		"no P4Info":      bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4Info = nil }),
		"empty P4Info":   bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4Info.Tables[0].Preamble.Id = 0 }),
		"no program":     bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = nil }),
		"not JSON":       bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = []byte("{") }),
		"truncated JSON": bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = c.P4DeviceConfig[:len(c.P4DeviceConfig)/2] }),
		"wrapped twice":  bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = wrapped(wrapped(c.P4DeviceConfig)) }),
		"empty wrapper":  bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = wrapped(nil) }),
		"wrapper cut off": bad(func(c *p4v1.ForwardingPipelineConfig) {
			c.P4DeviceConfig = wrapped(c.P4DeviceConfig)[:len(c.P4DeviceConfig)/2]
		}),
		"another program": bad(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = []byte(`{"pipelines":[]}`) }),
		"another P4Info": bad(func(c *p4v1.ForwardingPipelineConfig) {
			for _, t := range c.P4Info.Tables {
				t.Preamble.Name += "x"
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			for _, action := range []p4v1.SetForwardingPipelineConfigRequest_Action{verify, save, both, reconcile} {
				r.push(action, cfg, codes.InvalidArgument)
			}
		})
	}
	r.push(0, p4test.Config(), codes.InvalidArgument)
	r.push(77, p4test.Config(), codes.InvalidArgument)
	r.push(commit, nil, codes.NotFound)
	r.push(commit, p4test.Config(), codes.InvalidArgument)
	r.push(verify, p4test.Config(), codes.OK)
	if after, n := r.dev.committed(); after != before || n != commits {
		t.Error("the running pipeline was touched")
	}
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(1, 1))
	_, err := r.client.SetForwardingPipelineConfig(r.ctx, &p4v1.SetForwardingPipelineConfigRequest{DeviceId: 9, Action: verify})
	if status.Code(err) != codes.NotFound {
		t.Errorf("another device: %v", err)
	}
}

// wrapped is a program in the message p4.tmp.P4DeviceConfig.
func wrapped(program []byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	return protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), program)
}

// TestWrappedProgram: the message around a program is removed to run it. A read of the
// configuration returns the program with the message.
func TestWrappedProgram(t *testing.T) {
	r, _ := running(t)
	cfg := p4test.Config()
	cfg.P4DeviceConfig = wrapped(p4test.JSON)
	for _, action := range []p4v1.SetForwardingPipelineConfigRequest_Action{verify, both} {
		r.push(action, cfg, codes.OK)
	}
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	got, err := r.client.GetForwardingPipelineConfig(r.ctx, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: 3})
	if err != nil || !proto.Equal(got.GetConfig(), cfg) {
		t.Errorf("another configuration is read back: %v", err)
	}
}

func TestSaveThenCommit(t *testing.T) {
	r, _ := running(t)
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	old, commits := r.dev.committed()
	second := p4test.Config()
	second.Cookie.Cookie = 43
	r.push(save, second, codes.OK)
	// Reads and writes refer to the saved pipeline; the running one is not touched.
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")})
	r.mustWrite(p4rtmsg.Insert(l2(2, 2)))
	if now, n := r.dev.committed(); now != old || n != commits {
		t.Error("VERIFY_AND_SAVE committed")
	}
	r.push(commit, nil, codes.OK)
	if now, n := r.dev.committed(); now == old || n != commits+1 || now.Raw.Cookie.Cookie != 43 {
		t.Error("COMMIT did not commit")
	}
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(2, 2))
	r.push(commit, nil, codes.NotFound)
	// VERIFY_AND_COMMIT clears the state, also that of a saved pipeline.
	r.push(save, p4test.Config(), codes.OK)
	r.push(both, p4test.Config(), codes.OK)
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")})
	r.push(commit, nil, codes.NotFound)
}

func TestReconcile(t *testing.T) {
	r, _ := running(t)
	counted := &p4v1.CounterEntry{CounterId: p4test.ID("hits"), Index: &p4v1.Index{Index: 3}, Data: &p4v1.CounterData{PacketCount: 7}}
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Modify(counted))
	old, _ := r.dev.committed()
	r.push(reconcile, p4test.Config(), codes.OK)
	if now, _ := r.dev.committed(); now == old {
		t.Error("nothing was committed")
	}
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(1, 1))
	r.wantRead(&p4v1.CounterEntry{CounterId: counted.CounterId, Index: counted.Index}, counted)
	// A table that got another id cannot take its entries over.
	old, _ = r.dev.committed()
	changed := p4test.Config()
	changed.P4Info.Tables[1].Preamble.Id++
	r.push(reconcile, changed, codes.InvalidArgument)
	if now, _ := r.dev.committed(); now != old {
		t.Error("the running pipeline was touched")
	}
	r.wantRead(&p4v1.TableEntry{TableId: p4test.ID("l2")}, l2(1, 1))
	// On a switch without a pipeline there is nothing to preserve.
	fresh := newRig(t)
	fresh.open().become(1)
	fresh.push(reconcile, p4test.Config(), codes.OK)
}

func TestGetPipeline(t *testing.T) {
	r := newRig(t)
	get := func(kind p4v1.GetForwardingPipelineConfigRequest_ResponseType) *p4v1.ForwardingPipelineConfig {
		t.Helper()
		got, err := r.client.GetForwardingPipelineConfig(r.ctx, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: deviceID, ResponseType: kind})
		if err != nil {
			t.Fatal(err)
		}
		return got.Config
	}
	if got := get(0); got != nil {
		t.Errorf("a switch without pipeline has %v", got)
	}
	s := r.open()
	s.become(1)
	full := p4test.Config()
	r.push(both, full, codes.OK)
	for kind, want := range map[p4v1.GetForwardingPipelineConfigRequest_ResponseType]*p4v1.ForwardingPipelineConfig{
		p4v1.GetForwardingPipelineConfigRequest_ALL:                      full,
		p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:              {Cookie: full.Cookie},
		p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:        {Cookie: full.Cookie, P4Info: full.P4Info},
		p4v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE: {Cookie: full.Cookie, P4DeviceConfig: full.P4DeviceConfig},
	} {
		if got := get(kind); !proto.Equal(want, got) {
			t.Errorf("%v: got cookie %v, P4Info %t, %d bytes of program", kind, got.GetCookie(), got.GetP4Info() != nil, len(got.GetP4DeviceConfig()))
		}
	}
	for _, req := range []*p4v1.GetForwardingPipelineConfigRequest{{DeviceId: 9}, {DeviceId: deviceID, ResponseType: 9}} {
		if _, err := r.client.GetForwardingPipelineConfig(r.ctx, req); err == nil {
			t.Errorf("%v was answered", req)
		}
	}
}

func TestLoadPipeline(t *testing.T) {
	r := newRig(t)
	if err := r.LoadPipeline(nil, []byte("{")); err == nil {
		t.Error("a broken program was loaded")
	}
	if err := r.LoadPipeline([]byte("tables {"), p4test.JSON); err == nil {
		t.Error("a broken P4Info was loaded")
	}
	// Without P4Info the data plane runs and the control plane waits.
	if err := r.LoadPipeline(nil, p4test.JSON); err != nil {
		t.Fatal(err)
	}
	if p, n := r.dev.committed(); n != 1 || p.P4Info != nil {
		t.Errorf("%d commits, %v", n, p)
	}
	r.open().become(1)
	if err := r.write(p4rtmsg.Insert(l2(1, 1))); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("write without P4Info: %v", err)
	}
	r.PacketIn([]byte("frame"))
	r.Sweep(0)
	binary, err := proto.Marshal(p4test.Info())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range [][]byte{p4test.Text, binary} {
		if err := r.LoadPipeline(info, p4test.JSON); err != nil {
			t.Fatal(err)
		}
		r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	}
	p, _ := r.dev.committed()
	if !bytes.Equal(p.Raw.P4DeviceConfig, p4test.JSON) || !proto.Equal(p.P4Info, p4test.Info()) {
		t.Error("the committed pipeline is not the one loaded")
	}
}

// Externs beyond v1model's may be declared; using them is UNIMPLEMENTED.
func TestExterns(t *testing.T) {
	r, _ := running(t)
	cfg := p4test.Config()
	cfg.P4Info.Externs = []*p4configv1.Extern{{ExternTypeId: 0x81}}
	r.push(both, cfg, codes.OK)
	err := r.write(p4rtmsg.Insert(&p4v1.ExternEntry{ExternTypeId: 0x81}))
	if got := details(t, err); len(got) != 1 || got[0] != codes.Unimplemented {
		t.Errorf("%v", err)
	}
}

// The repository's own program is accepted, with every object of its P4Info.
func TestOwnProgram(t *testing.T) {
	r := newRig(t)
	if err := r.LoadPipeline(p4src.P4Info, p4src.JSON()); err != nil {
		t.Fatal(err)
	}
	r.wantRead(&p4v1.PacketReplicationEngineEntry{})
	for _, req := range []any{&p4v1.TableEntry{}, &p4v1.TableEntry{IsDefaultAction: true}, &p4v1.CounterEntry{}, &p4v1.RegisterEntry{}} {
		if _, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{p4rtmsg.Entity(req)}}); err != nil {
			t.Errorf("read %T: %v", req, err)
		}
	}
}
