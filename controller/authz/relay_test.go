package authz

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// TestRelayedCaller: a relayed identity is accepted only on connections between members. A member
// sends the identity that it verified, whatever the caller claims.
func TestRelayedCaller(t *testing.T) {
	forged := metadata.Pairs(callerMetadata, `{"Identity":{"Name":"cn:alice","Owner":true},"Address":"x","Secure":true}`)
	from := &net.UnixAddr{Name: "@"}
	stranger := peer.NewContext(t.Context(), &peer.Peer{Addr: from, AuthInfo: process{uid: 65534, gid: 65534}})
	ofMember := peer.NewContext(t.Context(), &peer.Peer{Addr: from, AuthInfo: memberInfo{}})
	for _, c := range []struct {
		what  string
		ctx   context.Context
		md    metadata.MD
		name  string
		owner bool
	}{
		{"a stranger who forges", stranger, forged, "uid:65534", false},
		{"a member", ofMember, forged, "cn:alice", true},
		{"a member that says nothing", ofMember, nil, "", false},
		{"a member that says nonsense", ofMember, metadata.Pairs(callerMetadata, "{"), "", false},
		{"a member that says two things", ofMember, metadata.Join(forged, forged), "", false},
	} {
		if id, _, _ := identify(c.ctx, c.md); id.Name != c.name || id.Owner != c.owner {
			t.Errorf("%s is %+v", c.what, id)
		}
	}
	out, _ := metadata.FromOutgoingContext(Relay(metadata.NewIncomingContext(stranger, metadata.Join(forged, metadata.Pairs("authorization", "Bearer t")))))
	if id, _, secure := identify(ofMember, out); id.Name != "uid:65534" || id.Group != "gid:65534" || id.Owner || !secure || len(out.Get("authorization")) != 1 {
		t.Errorf("handed on: %+v, %v", id, out)
	}
}
