package session

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// Credentials returns how to dial a switch: TLS when the configuration names a CA, else
// plain TCP. The files, which are in dirs, are read now, to refuse what is wrong with them, and
// again for each connection, so that certificates may be replaced while the controller runs.
func Credentials(c config.TLS, dirs confine.Dirs) (grpc.DialOption, error) {
	if c.CA == "" {
		return grpc.WithTransportCredentials(insecure.NewCredentials()), nil
	}
	creds, err := tlsfiles.Client(tlsfiles.Files{CA: c.CA, Cert: c.Cert, Key: c.Key, ServerName: c.ServerName, Prefix: "tls.", Read: dirs.Secret})
	if err != nil {
		return nil, err
	}
	return grpc.WithTransportCredentials(creds), nil
}
