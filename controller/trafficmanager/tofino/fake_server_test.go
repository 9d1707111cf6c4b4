package tofino

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// Server is a BF Runtime server of one chip, device 0, for tests. It holds the fixed tables of a Tofino
// chip's driver, with their defaults, and checks every request against the schemas: the identifiers of
// tables, actions and fields, how keys and values are encoded, their widths, choices and ranges, what
// is mandatory and what can only be read, what a table can do, the target, the program and whether the
// client has subscribed. It also refuses what the driver's documentation says the driver refuses: see
// fake_rules_test.go. A refused request fails the test unless the test expects it (Refused).
//
// It decodes requests with package bfrt and refuses any request that differs from bfrt's own encoding
// in a byte; fake_test.go has the bytes. It is no chip: it switches nothing, and tests set its
// counters. mu guards all fields below it.
type Server struct {
	pb.UnimplementedBfRuntimeServer
	t    testing.TB
	name string
	addr string

	mu      sync.Mutex
	schema  *bfrt.Schema
	rows    *store
	clients map[uint32]bool
	orphans map[uint32]bool // clients subscribed when the server stopped, which may not have noticed
	refused []string
	writes  []bfrt.Change
	hook    func(bfrt.Change) error
	rpc     *grpc.Server // nil while stopped
}

// NewServer starts a server for a chip, "tofino1" or "tofino2", on a free port. It stops with the
// test, which fails if the server refused a request that the test did not expect.
func NewServer(t testing.TB, chip string) *Server {
	t.Helper()
	schema, err := bfrt.Load(chip, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, name: chip, schema: schema, rows: newStore(chip, schema), clients: map[uint32]bool{}, orphans: map[uint32]bool{}}
	s.start("127.0.0.1:0", s)
	t.Cleanup(func() {
		s.Stop()
		for _, r := range s.Refused() {
			t.Errorf("the BF Runtime server refused: %s", r)
		}
	})
	return s
}

func (s *Server) start(addr string, answers pb.BfRuntimeServer) {
	s.t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	rpc := grpc.NewServer(grpc.WaitForHandlers(true))
	pb.RegisterBfRuntimeServer(rpc, answers)
	s.mu.Lock()
	s.addr, s.rpc = l.Addr().String(), rpc
	s.mu.Unlock()
	go rpc.Serve(l) //nolint:errcheck // ends with Stop
}

// Addr returns the server's address.
func (s *Server) Addr() string { return s.addr }

// Stop ends the server and all subscriptions.
func (s *Server) Stop() {
	s.mu.Lock()
	rpc := s.rpc
	s.rpc = nil
	s.mu.Unlock()
	if rpc != nil {
		rpc.Stop()
	}
}

// Restart stops the server, if it runs, and starts it again at the same address with all rows at
// their defaults, like the driver of a chip that was reset.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.mu.Lock()
	s.rows = newStore(s.name, s.schema)
	s.clients = map[uint32]bool{}
	s.mu.Unlock()
	s.start(s.addr, s)
}

// Fail stops the server and makes calls fail at once: until Restart, a server without services has
// its address.
func (s *Server) Fail() {
	s.t.Helper()
	s.Stop()
	s.start(s.addr, pb.UnimplementedBfRuntimeServer{})
}

// Load adds the filters of a program from its bf-rt.json.
func (s *Server) Load(info []byte) {
	s.t.Helper()
	program, err := bfrt.Load(s.name, info)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schema, s.rows.schema = program, program
}

// Refused returns the refusals since its last call, one line each. They then no longer fail the
// test.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.refused
	s.refused = nil
	return list
}

// Writes returns the writes since its last call, in order.
func (s *Server) Writes() []bfrt.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.writes
	s.writes = nil
	return list
}

// Hook sets a function that sees each write before it is made and can refuse it; nil removes it. It
// must not call the server.
func (s *Server) Hook(f func(bfrt.Change) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = f
}

// Table returns all entries of a table, as a Read would.
func (s *Server) Table(name string) []bfrt.Row {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.schema.Table(name)
	if t == nil {
		s.t.Fatalf("there is no table %q", name)
	}
	return s.rows.all(t, bfrt.AllPipes)
}

// Row returns one entry. The pipe is ignored for tables of the whole device.
func (s *Server) Row(table string, pipe uint32, key ...bfrt.Named) bfrt.Row {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.schema.Table(table)
	if t == nil {
		s.t.Fatalf("there is no table %q", table)
	}
	if t.Scope == bfrt.Device {
		pipe = bfrt.AllPipes
	}
	rows, why := s.rows.read(t, bfrt.Row{Table: table, Pipe: pipe, Key: key, Fresh: true})
	if len(rows) != 1 {
		s.t.Fatalf("%s has %d entries %v %s", table, len(rows), bfrt.Fields(key), why)
	}
	return rows[0]
}

// Set changes fields of an entry that no client can write, such as counters.
func (s *Server) Set(r bfrt.Row) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.schema.Table(r.Table)
	if t == nil {
		s.t.Fatalf("there is no table %q", r.Table)
	}
	s.rows.set(t, r)
}

// refuse records a reason. The caller has mu.
func (s *Server) refuse(c codes.Code, format string, args ...any) *pb.Error {
	why := fmt.Sprintf(format, args...)
	s.refused = append(s.refused, why)
	return &pb.Error{CanonicalCode: int32(c), Message: why}
}

// StreamChannel implements the service.
func (s *Server) StreamChannel(ch pb.BfRuntime_StreamChannelServer) error {
	var id uint32
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients, id)
		if s.rpc == nil {
			s.orphans[id] = true
		}
	}()
	for {
		m, err := ch.Recv()
		if err != nil {
			return nil // the client is gone
		}
		answer, err := s.subscribe(id, m)
		if err != nil {
			return err
		}
		id = m.GetClientId()
		if err := ch.Send(answer); err != nil {
			return err
		}
	}
}

func (s *Server) subscribe(last uint32, m *pb.StreamMessageRequest) (*pb.StreamMessageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := m.GetSubscribe()
	var e *pb.Error
	switch id := m.GetClientId(); {
	case sub == nil:
		e = s.refuse(codes.InvalidArgument, "a message on the stream that is no subscription: %v", m)
	case last != 0:
		e = s.refuse(codes.InvalidArgument, "client %d subscribes again", last)
	case id == 0 || id >= 1<<24 || s.clients[id]:
		e = s.refuse(codes.AlreadyExists, "client %d subscribes: allowed is an identifier of its own of 24 bits", id)
	case sub.GetDeviceId() != 0:
		e = s.refuse(codes.NotFound, "client %d subscribes for device %d: allowed is 0", id, sub.GetDeviceId())
	}
	if e != nil {
		return nil, status.Error(codes.Code(e.CanonicalCode), e.Message)
	}
	s.clients[m.GetClientId()] = true
	return &pb.StreamMessageResponse{Update: &pb.StreamMessageResponse_Subscribe{Subscribe: &pb.Subscribe{Status: &pb.RPCStatus{}}}}, nil
}

// request checks the common parts of all requests. The caller has mu.
func (s *Server) request(what string, client uint32, program string, target *pb.TargetDevice) error {
	var e *pb.Error
	switch {
	case s.rpc == nil:
		return status.Error(codes.Unavailable, "the server stops") // ends the subscriptions, too
	case s.orphans[client]:
		return status.Error(codes.Unavailable, "the server has been restarted since the client subscribed")
	case !s.clients[client]:
		e = s.refuse(codes.FailedPrecondition, "%s by client %d, which has not subscribed", what, client)
	case program != Program:
		e = s.refuse(codes.NotFound, "%s for program %q: allowed is %q", what, program, Program)
	case target.GetDeviceId() != 0:
		e = s.refuse(codes.NotFound, "%s for device %d: allowed is 0", what, target.GetDeviceId())
	}
	if e != nil {
		return status.Error(codes.Code(e.CanonicalCode), e.Message)
	}
	return nil
}

// Write implements the service.
func (s *Server) Write(_ context.Context, req *pb.WriteRequest) (*pb.WriteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.request("write", req.GetClientId(), req.GetP4Name(), req.GetTarget()); err != nil {
		return nil, err
	}
	if a := req.GetAtomicity(); a != pb.WriteRequest_CONTINUE_ON_ERROR {
		e := s.refuse(codes.Unimplemented, "write with atomicity %v", a)
		return nil, status.Error(codes.Code(e.CanonicalCode), e.Message)
	}
	var details []*pb.Error
	for _, u := range req.GetUpdates() {
		details = append(details, s.update(u))
	}
	return &pb.WriteResponse{}, outcome("Write Error Status", details)
}

// outcome is the status of a request. Its details have one part each, up to the last that failed.
func outcome(message string, details []*pb.Error) error {
	last := -1
	for i, e := range details {
		if e.GetCanonicalCode() != 0 {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	st := status.New(codes.Unknown, message)
	for _, e := range details[:last+1] {
		with, err := st.WithDetails(protoadapt.MessageV1Of(e))
		if err != nil {
			return err
		}
		st = with
	}
	return st.Err()
}

// update performs one update. The caller has mu.
func (s *Server) update(u *pb.Update) *pb.Error {
	change, why := update(s.schema, u)
	if why != "" {
		return s.refuse(codes.InvalidArgument, "%s", why)
	}
	if s.hook != nil {
		if err := s.hook(change); err != nil {
			return &pb.Error{CanonicalCode: int32(status.Code(err)), Message: err.Error()}
		}
	}
	if code, why := s.rows.write(change); why != "" {
		return s.refuse(code, "%v: %s", change, why)
	}
	s.writes = append(s.writes, change)
	return &pb.Error{}
}

// Read implements the service.
func (s *Server) Read(req *pb.ReadRequest, out pb.BfRuntime_ReadServer) error {
	answers, err := s.read(req)
	for _, a := range answers {
		if err := out.Send(a); err != nil {
			return err
		}
	}
	return err
}

// pick keeps the requested fields of a row, or all if none is named.
func pick(r bfrt.Row, fields bfrt.Fields) bfrt.Row {
	if len(fields) == 0 {
		return r
	}
	var some bfrt.Fields
	for _, f := range fields {
		some = append(some, bfrt.Named{Name: f.Name, Value: r.Data.Get(f.Name)})
	}
	r.Data = some
	return r
}

// perAnswer is the number of entries in a message of an answer.
const perAnswer = 100

func (s *Server) read(req *pb.ReadRequest) ([]*pb.ReadResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.request("read", req.GetClientId(), req.GetP4Name(), req.GetTarget()); err != nil {
		return nil, err
	}
	var rows []bfrt.Row
	var details []*pb.Error
	for _, entity := range req.GetEntities() {
		r, why := query(s.schema, entity)
		if why != "" {
			details = append(details, s.refuse(codes.InvalidArgument, "%s", why))
			continue
		}
		got, why := s.rows.read(s.schema.Table(r.Table), r)
		if why != "" {
			details = append(details, s.refuse(codes.NotFound, "%s: %s", r.Name(), why))
			continue
		}
		details = append(details, &pb.Error{})
		for _, row := range got {
			rows = append(rows, pick(row, r.Data))
		}
	}
	var answers []*pb.ReadResponse
	for part := range slices.Chunk(rows, perAnswer) {
		a := &pb.ReadResponse{}
		for _, r := range part {
			e, err := entry(s.schema, r)
			if err != nil {
				s.t.Errorf("the BF Runtime server holds %v: %v", r, err)
			}
			a.Entities = append(a.Entities, &pb.Entity{Entity: &pb.Entity_TableEntry{TableEntry: e}})
		}
		answers = append(answers, a)
	}
	return answers, outcome("Read Error Status", details)
}
