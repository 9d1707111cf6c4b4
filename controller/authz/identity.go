// Package authz decides who may do what: who calls (identity.go, token.go), what the policy grants to whom
// (policy.go, method.go), and how much of it at a time (authorizer.go). An Authorizer checks each call of the API and
// the metrics; methods that the table of methods lacks are refused.
//
// A caller is identified by credentials that it cannot forge: a client certificate, a bearer token, or the user of
// the process at the other end of a Unix socket, which the kernel reports. The user that the controller runs as, and
// root, may do everything over the socket, whatever the policy says: they could replace the controller too.
package authz

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/headgate/headgate/internal/clients"
)

// Identity identifies a caller.
type Identity struct {
	// Name is one of
	//
	//	spiffe://DOMAIN/PATH  of a client certificate
	// cn:NAME of a client certificate without a SPIFFE id: the subject's common name
	//	token:NAME            of the token file
	// oidc:NAME value of the claim that the policy names
	//	uid:NUMBER            of a process, over the Unix socket
	//	loopback              without credentials, where that is allowed
	//
	// and empty for nobody.
	Name string
	// Group is gid:NUMBER of a process, its primary group; empty for others.
	Group string
	// Owner is root, or the user that the controller runs as.
	Owner bool
}

// String names the identity for people.
func (i Identity) String() string {
	if i.Name == "" {
		return "nobody"
	}
	return i.Name
}

// loopback is the name of callers without credentials.
const loopback = "loopback"

// process holds the kernel's credentials for the process at the other end of a Unix socket.
type process struct {
	credentials.CommonAuthInfo
	uid, gid uint32
}

// AuthType implements credentials.AuthInfo.
func (process) AuthType() string { return "unix" }

// transport holds a server's credentials: on Unix sockets the user that the kernel reports, TLS between the members
// of a cluster, and elsewhere TLS or none.
type transport struct {
	credentials.TransportCredentials
	members credentials.TransportCredentials
}

// Credentials returns the transport credentials of the API's server. members is for connections of listeners that
// Members returns. A nil TLS configuration means plain text, for loopback only.
func Credentials(c, members *tls.Config) credentials.TransportCredentials {
	of := func(c *tls.Config) credentials.TransportCredentials {
		if c == nil {
			return insecure.NewCredentials()
		}
		return credentials.NewTLS(c)
	}
	return transport{of(c), of(members)}
}

// Clone implements credentials.TransportCredentials.
func (t transport) Clone() credentials.TransportCredentials {
	return transport{t.TransportCredentials.Clone(), t.members.Clone()}
}

// ServerHandshake implements credentials.TransportCredentials.
func (t transport) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if of, ok := conn.(memberConn); ok {
		conn, info, err := t.members.ServerHandshake(of.Conn)
		return conn, memberInfo{info}, err
	}
	cred, err := clients.Caller(conn)
	if err != nil {
		return nil, nil, err
	}
	if cred == nil {
		return t.TransportCredentials.ServerHandshake(conn)
	}
	// Only the kernel carries a Unix socket's data, so nobody else reads it.
	return conn, process{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, cred.Uid, cred.Gid}, nil
}

// identify returns the identity at the other end of a connection, and whether a token may be sent over it.
func identify(ctx context.Context, md metadata.MD) (id Identity, address string, secure bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, "unknown", false
	}
	if p.Addr != nil {
		address = p.Addr.String()
	}
	switch info := p.AuthInfo.(type) {
	case memberInfo:
		return relayed(md)
	case process:
		return Identity{
			Name: fmt.Sprintf("uid:%d", info.uid), Group: fmt.Sprintf("gid:%d", info.gid), Owner: info.uid == 0 || int(info.uid) == os.Geteuid(),
		}, address, true
	case credentials.TLSInfo:
		return ofCertificate(info.State), address, true
	}
	return Identity{Name: loopback}, address, false
}

// ofCertificate returns the identity that a verified certificate names.
func ofCertificate(state tls.ConnectionState) Identity {
	if len(state.VerifiedChains) == 0 {
		return Identity{}
	}
	leaf := state.VerifiedChains[0][0]
	if hasSPIFFE(leaf) {
		id, err := x509svid.IDFromCert(leaf)
		if err != nil {
			return Identity{} // SPIFFE X509-SVID, section 2: exactly one URI, which must be an id
		}
		return Identity{Name: id.String()}
	}
	if leaf.Subject.CommonName == "" {
		return Identity{}
	}
	return Identity{Name: "cn:" + leaf.Subject.CommonName}
}

func hasSPIFFE(c *x509.Certificate) bool {
	for _, u := range c.URIs {
		if u.Scheme == "spiffe" {
			return true
		}
	}
	return false
}

// callerMetadata is the metadata in which a cluster member that forwards a call to the leader names the original
// caller. It is trusted only on connections of members.
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
	Secure   bool // a token may be sent over the connection
}

// Relay returns the context in which a member forwards a call. It carries the original caller.
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
		panic(err) // strings and booleans always marshal
	}
	md.Set(callerMetadata, string(text))
	for _, own := range []string{":authority", "content-type", "user-agent", "grpc-accept-encoding"} {
		md.Delete(own)
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// relayed parses the caller that Relay wrote. It returns no caller if there is none.
func relayed(md metadata.MD) (id Identity, address string, secure bool) {
	list := md.Get(callerMetadata)
	var c caller
	if len(list) != 1 || json.Unmarshal([]byte(list[0]), &c) != nil {
		return Identity{}, "unknown", false
	}
	return c.Identity, c.Address, c.Secure
}
