package p4rt

import (
	"bytes"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/p4rtmsg"
	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/digest"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// live is a pipeline with all the state that the server keeps for it.
type live struct {
	Pipeline
	schema  *schema.Schema    // nil without P4Info, like the fields below
	state   *entity.State     // guarded by Server.mu
	digests *digest.Collector // has a lock of its own
}

// compile checks a configuration completely and starts a fresh instance of it. It does not change
// the running pipeline.
func (s *Server) compile(cfg *p4v1.ForwardingPipelineConfig) (*live, error) {
	if len(cfg.GetP4DeviceConfig()) == 0 {
		return nil, fmt.Errorf("p4_device_config is empty, wanted is a program in BMv2's JSON format")
	}
	if cfg.P4Info == nil {
		return nil, fmt.Errorf("p4info is unset")
	}
	sch, err := schema.Parse(cfg.P4Info)
	if err != nil {
		return nil, err
	}
	l, err := s.load(deviceData(cfg.P4DeviceConfig), sch)
	if err != nil {
		return nil, err
	}
	if absent := sch.AllAbsent(); len(absent) > 0 {
		s.log.Info("objects of the P4Info are not in the program", "objects", absent)
	}
	if bytes.Equal(cfg.P4DeviceConfig, l.Program.JSON()) { // so keep the program's copy, which all switches of the process share
		cfg = &p4v1.ForwardingPipelineConfig{P4Info: cfg.P4Info, P4DeviceConfig: l.Program.JSON(), Cookie: cfg.Cookie}
	}
	l.P4Info, l.Raw = cfg.P4Info, cfg
	l.digests = digest.New(sch, 1)
	opts := s.opts.Options
	opts.Now = s.dev.Now
	l.state, err = entity.New(sch, l.Instance, l.digests, opts)
	return l, err
}

// deviceData returns the program in a p4_device_config. The bytes are the program itself or, as in
// PI, the message p4.tmp.P4DeviceConfig of older clients (proto/p4/tmp/p4config.proto in PI),
// which has the program in field 3. The first byte tells the two apart, because no field of the
// message begins like JSON.
func deviceData(config []byte) []byte {
	var program []byte
	for rest := config; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		if tag < 0 || num > 3 {
			return config
		}
		n := protowire.ConsumeFieldValue(num, typ, rest[tag:])
		if n < 0 {
			return config
		}
		if num == 3 && typ == protowire.BytesType {
			program, _ = protowire.ConsumeBytes(rest[tag:])
		}
		rest = rest[tag+n:]
	}
	if program == nil {
		return config
	}
	return program
}

// load compiles a program and joins it with its P4Info, if it has one.
func (s *Server) load(doc []byte, sch *schema.Schema) (*live, error) {
	prog, err := engine.Load(doc)
	if err != nil {
		return nil, err
	}
	o := engine.Options{DropPort: s.opts.DropPort, CPUPort: s.opts.CPUPort, Queues: s.opts.Queues, Log: s.log, Tracer: s.opts.Tracer, Times: s.opts.Times}
	if sch != nil {
		if err := sch.Bind(prog); err != nil {
			return nil, err
		}
		o.LearnNames = sch.LearnNames()
	}
	return &live{Pipeline: Pipeline{Program: prog, Instance: engine.New(prog, o)}, schema: sch}, nil
}

// LoadPipeline starts the switch with a program, as simple_switch_grpc does with a JSON
// argument. p4info is in protobuf's text or binary format. When it is empty the program runs, but
// reads and writes fail until a SetForwardingPipelineConfig.
func (s *Server) LoadPipeline(p4info, json []byte) error {
	var l *live
	var err error
	if len(p4info) == 0 {
		l, err = s.load(json, nil)
	} else {
		info, bad := p4rtmsg.ParseP4Info(p4info)
		if bad != nil {
			return bad
		}
		l, err = s.compile(&p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: json})
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(l)
}

// commit makes l the running pipeline. The caller holds mu.
func (s *Server) commit(l *live) error {
	if l.state != nil {
		for port := range s.down {
			if err := l.state.SetPort(port, false); err != nil {
				return err
			}
		}
	}
	p := l.Pipeline
	s.dev.Commit(&p)
	s.running.Store(l)
	s.target, s.saved = nil, nil
	if l.state != nil {
		s.target = l
	}
	return nil
}

var errNoPipeline = status.Error(codes.FailedPrecondition, "no forwarding pipeline is configured: use SetForwardingPipelineConfig first")

// TryControl calls use with the running pipeline's entities, which use may change, and its engine.
// It serves an agent in the switch's own process, which has no session. It never waits: it returns
// false at once if there is no pipeline with P4Info, or if a client is reading or writing. use may
// keep the engine, which stays the same while the pipeline runs, but not the entities.
func (s *Server) TryControl(use func(*entity.State, *engine.Instance)) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	l := s.running.Load()
	if l == nil || l.state == nil {
		return false
	}
	use(l.state, l.Instance)
	return true
}
