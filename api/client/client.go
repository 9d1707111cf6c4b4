// Package client connects Go programs to a controller's API. Its connection is for the generated clients of package
// headgatev1, such as headgatev1.NewWeightServiceClient(conn).
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// Options are a client's identity and the authorities that it trusts. All fields name files and may be
// empty. Files are read again for each connection, the token for each call.
type Options struct {
	CA        string // --tls-ca: who signs the controller's certificate; without it there is no TLS
	Cert, Key string // --tls-cert and --tls-key: the client's certificate
	TokenFile string // --token-file: a bearer token, which needs CA or a Unix socket
}

// maxAnswer is the largest answer that is taken, in bytes. A million flows fit.
const maxAnswer = 256 << 20

// Dial returns a connection to host:port, to unix:PATH, or to the first of several comma-separated
// host:port that answers, until that one is gone. Each member of a cluster hands calls on to the leader.
//
// Calls go through headgatev1.AskAgain: each change has a request id, and changes and reads that fail
// with UNAVAILABLE are repeated for 10 s. The interceptors of more come before it. A stream that has
// ended must be started again by the caller. Dial connects at the first call, so its errors are about
// its arguments. Errors name the flags of the command line.
func Dial(server string, o Options, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	socket := strings.HasPrefix(server, "unix:")
	var creds credentials.TransportCredentials
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("--tls-cert and --tls-key: want both or none")
	case o.Cert != "" && o.CA == "":
		return nil, errors.New("--tls-cert: also needs --tls-ca, the authority that signed the controller's certificate")
	case socket: // the kernel says who calls
		creds = local.NewCredentials()
	case o.CA != "":
		var err error
		if creds, err = tlsfiles.Client(tlsfiles.Files{CA: o.CA, Cert: o.Cert, Key: o.Key, Prefix: "--tls-", Read: confine.Dirs(nil).Secret}); err != nil {
			return nil, err
		}
	case o.TokenFile != "":
		return nil, errors.New("--token-file: needs --tls-ca or a Unix socket, because a token is a secret")
	default:
		creds = insecure.NewCredentials()
	}
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithNoProxy()}, more...)
	options = append(options,
		grpc.WithChainUnaryInterceptor(headgatev1.AskAgain),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
	)
	if o.TokenFile != "" {
		t := token(o.TokenFile)
		if _, err := t.read(); err != nil {
			return nil, err
		}
		options = append(options, grpc.WithPerRPCCredentials(t))
	}
	if list := strings.Split(server, ","); len(list) > 1 {
		r := manual.NewBuilderWithScheme("controllers")
		var state resolver.State
		for _, address := range list {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, fmt.Errorf("%q is not allowed in a list: want host:port", address)
			}
			state.Addresses = append(state.Addresses, resolver.Address{Addr: address, ServerName: host})
		}
		r.InitialState(state)
		options, server = append(options, grpc.WithResolvers(r)), "controllers:///"
	}
	return grpc.NewClient(server, options...)
}

// token is the name of a file with a bearer token.
type token string

func (t token) read() (string, error) {
	text, err := confine.Dirs(nil).Secret(string(t))
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	word := strings.TrimSpace(string(text))
	if word == "" || strings.ContainsAny(word, " \t\r\n") {
		return "", fmt.Errorf("--token-file: %s holds no token, want one word", string(t))
	}
	return word, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	word, err := t.read()
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + word}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (token) RequireTransportSecurity() bool { return true }
