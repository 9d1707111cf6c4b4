package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/metrics"
	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// listeners are the daemon's open addresses with their TLS configurations.
type listeners struct {
	api         []net.Listener
	metrics     net.Listener // nil when off
	tls, webTLS *tls.Config  // nil without
}

func (l *listeners) close() {
	for _, a := range l.api {
		_ = a.Close()
	}
	if l.metrics != nil {
		_ = l.metrics.Close()
	}
}

// files returns the folders that configurations may name files in.
func (o Options) files() (confine.Dirs, error) {
	return confine.New(o.Config.Dirs()...)
}

func (o Options) listen(ctx context.Context, files confine.Dirs) (*listeners, error) {
	l := &listeners{}
	if c := o.Config.Controller.TLS; c.Cert != "" {
		var err error
		named := tlsfiles.Files{CA: c.ClientCA, Cert: c.Cert, Key: c.Key, Prefix: "controller.tls.", CAName: "client_ca", Read: files.Secret}
		if c.ClientCA != "" {
			named.ClientAuth = tls.VerifyClientCertIfGiven // others have tokens
		}
		if l.tls, err = tlsfiles.Server(named, o.Log, "h2"); err != nil {
			return nil, err
		}
		if l.webTLS, err = tlsfiles.Server(named, o.Log, "http/1.1"); err != nil {
			return nil, err
		}
	}
	if err := o.open(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open opens every address into l, up to the first that fails.
func (o Options) open(ctx context.Context, l *listeners) error {
	c := o.Config.Controller
	api, err := o.tcp(ctx, l, "controller.listen", c.Listen, "api")
	if err != nil {
		return err
	}
	if api != nil {
		l.api = append(l.api, api)
	}
	if l.metrics, err = o.tcp(ctx, l, "controller.metrics", c.Metrics, "metrics"); err != nil {
		return err
	}
	switch unix, err := o.socket(ctx); {
	case err == nil && unix != nil:
		l.api = append(l.api, unix)
	case err != nil && o.MayLackSocket && len(l.api) > 0:
		o.Log.Warn("the API is not served on a Unix socket", "err", err)
	case err != nil:
		return err
	case len(l.api) == 0:
		return errors.New("nothing serves the API: want controller.tls, --socket, or --insecure-loopback")
	}
	return nil
}

// tcp opens the address of a key; nil if the address is off, or if there is neither TLS nor --insecure-loopback.
func (o Options) tcp(ctx context.Context, l *listeners, key, address, name string) (net.Listener, error) {
	switch {
	case address == "off":
		return nil, nil
	case l.tls == nil && !isLoopback(address):
		return nil, fmt.Errorf("%s %q: want controller.tls for an address that others can reach", key, address)
	case l.tls == nil && o.Loopback == "":
		if o.Config.Given(key) {
			o.Log.Warn("the address is not served: it has no controller.tls, and there is no --insecure-loopback", key, address, "served", cmp.Or(o.Socket, "nothing"))
		}
		return nil, nil
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", key, address, err)
	}
	return clients.Limit(lis, clients.Options{Name: name, Log: o.Log}), nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// socket opens the Unix socket, nil for none. Every process may connect: the kernel tells who it is, and the policy
// decides what it may do.
func (o Options) socket(ctx context.Context) (net.Listener, error) {
	if o.Socket == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Socket), 0o755); err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	unix, err := service.ListenUnix(ctx, o.Socket)
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	if err := os.Chmod(o.Socket, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("--socket: %w", err), unix.Close())
	}
	return clients.Limit(unix, clients.Options{Name: "socket", Log: o.Log}), nil
}

// ready reports whether changes can be stored and, by switch, whether the fabric is as configured.
func (d *daemon) ready() []metrics.Check {
	list := []metrics.Check{{Part: "state store", Err: d.db.Err()}}
	if d.auditFile != nil {
		list = append(list, metrics.Check{Part: "audit log", Err: d.auditFile.Err()})
	}
	fabric := d.core.Fabric()
	configuration := metrics.Check{Part: "configuration"}
	if fabric.Name == "" {
		configuration.Err = errors.New("none was applied yet")
	}
	if why := d.refused.Load(); why != nil {
		configuration.Err = *why
	}
	list = append(list, configuration)
	for _, s := range d.core.Switches() {
		c := metrics.Check{Part: "switch " + s.Name}
		if s.State != pb.SwitchStatus_STATE_READY {
			c.Err = fmt.Errorf("%s: %s", pb.Word(s.State), s.Error)
		}
		list = append(list, c)
	}
	return list
}
