package authz_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// everyMethod lists the descriptors of all methods that the server serves.
func everyMethod() []protoreflect.MethodDescriptor {
	var list []protoreflect.MethodDescriptor
	for _, file := range []protoreflect.FileDescriptor{
		pb.File_api_headgate_v1_headgate_proto, healthpb.File_grpc_health_v1_health_proto, reflectpb.File_grpc_reflection_v1_reflection_proto,
	} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				list = append(list, methods.Get(j))
			}
		}
	}
	return list
}

// raw is a codec that sends bytes unchanged.
type raw struct{}

func (raw) Name() string                    { return "proto" }
func (raw) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// fill sets every field of a message, and those of nested messages to a limited depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		var v protoreflect.Value
		switch f.Kind() {
		case protoreflect.MessageKind:
			if depth == 0 {
				continue
			}
			var inner protoreflect.Message
			if f.IsList() {
				inner = m.Mutable(f).List().AppendMutable().Message()
			} else if !f.IsMap() {
				inner = m.Mutable(f).Message()
			}
			if inner != nil {
				fill(inner, depth-1)
			}
			continue
		case protoreflect.StringKind:
			v = protoreflect.ValueOfString("h1")
			if strings.HasSuffix(string(f.Name()), "ipv4") {
				v = protoreflect.ValueOfString("10.0.0.1")
			}
		case protoreflect.BoolKind:
			v = protoreflect.ValueOfBool(true)
		case protoreflect.Uint32Kind:
			v = protoreflect.ValueOfUint32(7)
		case protoreflect.Uint64Kind:
			v = protoreflect.ValueOfUint64(7)
		case protoreflect.DoubleKind:
			v = protoreflect.ValueOfFloat64(1.5)
		default:
			continue
		}
		if f.IsList() {
			m.Mutable(f).List().Append(v)
		} else {
			m.Set(f, v)
		}
	}
}

// FuzzEveryMessage sends bytes to each method through real connections, interceptors and server.
// One caller may do everything, another is confined. No handler panics, and bytes that are no
// message of the method are refused.
func FuzzEveryMessage(f *testing.F) {
	methods := everyMethod()
	for i, m := range methods {
		full := dynamicpb.NewMessage(m.Input())
		fill(full, 3)
		text, err := proto.Marshal(full)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), text, []byte{})
		f.Add(byte(i), text, text)
		f.Add(byte(i), []byte{}, []byte{0xff})
	}
	r := start(f, "", "grants:\n  - {who: 'cn:me', role: host, hosts: [h1]}\n  - {who: 'cn:me', role: application, applications: [h1]}\nlimits: {rate: 1e9, burst: 1000000000}\n")
	r.Issue(f, "me", "me")
	callers := []*grpc.ClientConn{r.as(f, "unix"), r.as(f, "me")}
	f.Fuzz(func(t *testing.T, index byte, first, second []byte) {
		m := methods[int(index)%len(methods)]
		for _, conn := range callers {
			for _, err := range call(t.Context(), conn, m, first, second) {
				s := status.Convert(err)
				if s.Code() == codes.Internal && strings.Contains(s.Message(), "internal error: the controller's log") {
					t.Errorf("%s: %v", m.FullName(), err)
				}
			}
		}
	})
}

// call makes one call and returns its errors. An endless stream is ended after its header.
func call(ctx context.Context, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, messages ...[]byte) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	var answer []byte
	if !m.IsStreamingServer() {
		return []error{conn.Invoke(ctx, name, messages[0], &answer, grpc.ForceCodec(raw{}))}
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: m.IsStreamingClient()}, name, grpc.ForceCodec(raw{}))
	if err != nil {
		return []error{err}
	}
	if !m.IsStreamingClient() {
		messages = messages[:1]
	}
	for _, text := range messages {
		_ = s.SendMsg(text) // RecvMsg has the error
	}
	_ = s.CloseSend()
	if _, err := s.Header(); err != nil {
		return []error{err}
	}
	for m.IsStreamingClient() && err == nil {
		err = s.RecvMsg(&answer)
	}
	return []error{err}
}
