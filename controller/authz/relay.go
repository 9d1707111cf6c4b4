package authz

import (
	"context"
	"encoding/json"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// callerMetadata says who called the member of a cluster that hands a call on to the leader. It is
// believed on connections of members alone.
const callerMetadata = "headgate-caller-bin"

// Members marks the connections of a listener as those of a cluster's members.
func Members(l net.Listener) net.Listener { return members{l} }

type members struct{ net.Listener }

// Accept implements net.Listener.
func (l members) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return memberConn{c}, nil
}

type memberConn struct{ net.Conn }

// memberInfo describes the other end of a member's connection.
type memberInfo struct{ credentials.AuthInfo }

// caller is a member's statement of who called it.
type caller struct {
	Identity Identity
	Address  string
	Secure   bool // a token may come this way
}

// Relay returns the context in which a member hands a call on, with who made it.
func Relay(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	if md == nil {
		md = metadata.MD{}
	}
	var c caller
	c.Identity, c.Address, c.Secure = identify(ctx, md)
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and truth values
	}
	md.Set(callerMetadata, string(text))
	for _, own := range []string{":authority", "content-type", "user-agent", "grpc-accept-encoding"} {
		md.Delete(own)
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// relayed reads what Relay wrote. It returns no caller if there is none.
func relayed(md metadata.MD) (id Identity, address string, secure bool) {
	list := md.Get(callerMetadata)
	var c caller
	if len(list) != 1 || json.Unmarshal([]byte(list[0]), &c) != nil {
		return Identity{}, "unknown", false
	}
	return c.Identity, c.Address, c.Secure
}
