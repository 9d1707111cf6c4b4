//lint:file-ignore SA1019 clients older than P4Runtime 1.4 number their roles

// Package arbitration is P4Runtime's client arbitration (specification 1.4, "Client
// Arbitration and Controller Replication") as a state machine without streams, locks or
// goroutines: arbitration updates and disconnects go in, notifications come out.
package arbitration

import (
	"cmp"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// Client names one open stream; the caller chooses the numbers.
type Client uint64

// Notification is an arbitration message to be sent to one client.
type Notification struct {
	To      Client
	Primary bool // the client is the primary: wait until writes that have already started are done
	Update  *p4v1.MasterArbitrationUpdate
}

// RoleKey identifies a role by its name, or by the number that clients older than P4Runtime 1.4 use.
// The zero value is the default role.
type RoleKey struct {
	Name string
	ID   uint64
}

// Key returns the key of a role with a name and the deprecated number. If both are set, the name
// counts.
func Key(name string, id uint64) RoleKey {
	if name != "" {
		id = 0
	}
	return RoleKey{name, id}
}

// Options configure a Device.
type Options struct {
	// DeviceID is the only device id accepted.
	DeviceID uint64
	// MaxClients bounds the streams of one role; 0 means 64.
	MaxClients int
	// MaxRoles bounds the roles that are remembered; 0 means 64.
	MaxRoles int
	// CheckConfig accepts or refuses a role's configuration; nil refuses every
	// configuration that is set. It is not called for unset ones.
	CheckConfig func(RoleKey, *anypb.Any) error
}

// Device is the arbitration state of one device. It belongs to its caller, who serialises
// all calls.
type Device struct {
	opts    Options
	roles   map[RoleKey]*role
	clients map[Client]*client
}

// role is the state that is remembered for a role, even while no client is connected to it.
type role struct {
	key     RoleKey
	config  *anypb.Any    // role configuration of the latest primary
	highest *p4v1.Uint128 // nil before the first primary
	primary *client       // nil if there is none
	clients []*client     // in order of arrival
}

type client struct {
	id       Client
	role     *role
	election *p4v1.Uint128 // nil if unset: such a client never becomes primary
}

// New returns the state of a device that no client has connected to.
func New(o Options) *Device {
	if o.MaxClients == 0 {
		o.MaxClients = 64
	}
	if o.MaxRoles == 0 {
		o.MaxRoles = 64
	}
	d := &Device{opts: o, roles: map[RoleKey]*role{}, clients: map[Client]*client{}}
	d.roles[RoleKey{}] = &role{}
	return d
}

// Update handles a MasterArbitrationUpdate received from c. The error is a gRPC status. The state is
// then unchanged, and the caller ends the stream with the status and calls Disconnect, as for every
// ended stream. The caller sends the notifications in their order; the primary's is the last.
func (d *Device) Update(c Client, m *p4v1.MasterArbitrationUpdate) ([]Notification, error) {
	known := d.clients[c]
	key := Key(m.GetRole().GetName(), m.GetRole().GetId())
	if err := d.check(known, key, m); err != nil {
		return nil, err
	}
	r := d.roles[key]
	if r == nil {
		r = &role{key: key}
		d.roles[key] = r
	}
	if known == nil {
		known = &client{id: c, role: r}
		d.clients[c] = known
		r.clients = append(r.clients, known)
	}
	known.election = m.ElectionId
	if m.ElectionId != nil && (r.highest == nil || compare(m.ElectionId, r.highest) >= 0) {
		r.primary, r.highest, r.config = known, m.ElectionId, m.GetRole().GetConfig()
		return d.notifyAll(r), nil
	}
	if r.primary == known { // the primary has lowered its election id
		r.primary = nil
		return d.notifyAll(r), nil
	}
	return []Notification{d.message(known)}, nil
}

// check applies the rules for refusing an update, in the specification's order.
func (d *Device) check(known *client, key RoleKey, m *p4v1.MasterArbitrationUpdate) error {
	switch {
	case known == nil && m.DeviceId != d.opts.DeviceID:
		return d.unknown(m.DeviceId)
	case known != nil && m.DeviceId != d.opts.DeviceID:
		return status.Errorf(codes.FailedPrecondition, "device_id %d differs from %d, which this stream began with", m.DeviceId, d.opts.DeviceID)
	case known != nil && key != known.role.key:
		return status.Errorf(codes.FailedPrecondition, "role %v differs from %v, which this stream began with", key, known.role.key)
	}
	r := d.roles[key]
	if m.ElectionId != nil && r != nil {
		for _, o := range r.clients {
			if o != known && o.election != nil && compare(o.election, m.ElectionId) == 0 {
				return status.Errorf(codes.InvalidArgument, "election_id %s is in use by another client of role %v", text(m.ElectionId), key)
			}
		}
	}
	if cfg := m.GetRole().GetConfig(); cfg != nil {
		if d.opts.CheckConfig == nil {
			return status.Errorf(codes.InvalidArgument, "role.config of role %v is set; this server takes none", key)
		}
		if err := d.opts.CheckConfig(key, cfg); err != nil {
			return status.Errorf(codes.InvalidArgument, "role.config of role %v: %v", key, err)
		}
	}
	if known == nil && r != nil && len(r.clients) >= d.opts.MaxClients {
		return status.Errorf(codes.ResourceExhausted, "role %v has %d streams open, the limit", key, len(r.clients))
	}
	if r == nil && len(d.roles) >= d.opts.MaxRoles {
		return status.Errorf(codes.ResourceExhausted, "role %v is new and %d roles are known, the limit", key, len(d.roles))
	}
	return nil
}

func (d *Device) unknown(id uint64) error {
	return status.Errorf(codes.NotFound, "device_id %d is not known, this device is %d", id, d.opts.DeviceID)
}

// Disconnect forgets a client whose stream has ended. Unknown clients are ignored.
func (d *Device) Disconnect(c Client) []Notification {
	gone := d.clients[c]
	if gone == nil {
		return nil
	}
	delete(d.clients, c)
	r := gone.role
	r.clients = slices.DeleteFunc(r.clients, func(o *client) bool { return o == gone })
	if r.primary != gone {
		return nil
	}
	r.primary = nil
	return d.notifyAll(r)
}

// MayWrite checks the sender of a Write or SetForwardingPipelineConfig. The error is NOT_FOUND for
// another device, or for a role that no client ever had. It is PERMISSION_DENIED unless election
// is the election id of the role's primary.
func (d *Device) MayWrite(deviceID uint64, key RoleKey, election *p4v1.Uint128) error {
	if deviceID != d.opts.DeviceID {
		return d.unknown(deviceID)
	}
	r := d.roles[key]
	switch {
	case r == nil:
		return status.Errorf(codes.NotFound, "role %v is not known", key)
	case r.primary == nil:
		return status.Errorf(codes.PermissionDenied, "role %v has no primary", key)
	case election == nil:
		return status.Errorf(codes.PermissionDenied, "election_id is unset, that of the primary of role %v is %s", key, text(r.highest))
	case compare(election, r.primary.election) != 0:
		return status.Errorf(codes.PermissionDenied, "election_id %s is not that of the primary of role %v, %s", text(election), key, text(r.highest))
	}
	return nil
}

// KnowsRole reports whether a client ever had the role. The default role is always known.
func (d *Device) KnowsRole(key RoleKey) bool { return d.roles[key] != nil }

// Config returns the configuration of the role's latest primary; nil means full access.
func (d *Device) Config(key RoleKey) *anypb.Any {
	if r := d.roles[key]; r != nil {
		return r.config
	}
	return nil
}

// RoleOf returns a client's role and whether the client is the role's primary. ok is false before
// the client's first accepted update.
func (d *Device) RoleOf(c Client) (key RoleKey, primary, ok bool) {
	known := d.clients[c]
	if known == nil {
		return RoleKey{}, false, false
	}
	return known.role.key, known.role.primary == known, true
}

// Primaries calls f for the primary of every role that has one.
func (d *Device) Primaries(f func(RoleKey, Client)) {
	for key, r := range d.roles {
		if r.primary != nil {
			f(key, r.primary.id)
		}
	}
}

func (d *Device) notifyAll(r *role) (all []Notification) {
	for _, c := range r.clients {
		if c != r.primary {
			all = append(all, d.message(c))
		}
	}
	if r.primary != nil {
		all = append(all, d.message(r.primary))
	}
	return all
}

func (d *Device) message(c *client) Notification {
	r := c.role
	m := &p4v1.MasterArbitrationUpdate{DeviceId: d.opts.DeviceID, ElectionId: r.highest, Status: &rpcstatus.Status{}}
	if r.key != (RoleKey{}) || r.config != nil {
		m.Role = &p4v1.Role{Name: r.key.Name, Id: r.key.ID, Config: r.config}
	}
	switch {
	case r.primary == c:
		m.Status.Message = "you are the primary"
	case r.primary != nil:
		m.Status.Code, m.Status.Message = int32(codes.AlreadyExists), "you are a backup, there is a primary"
	default:
		m.Status.Code, m.Status.Message = int32(codes.NotFound), "you are a backup, there is no primary"
	}
	return Notification{c.id, r.primary == c, m}
}

func compare(a, b *p4v1.Uint128) int {
	return cmp.Or(cmp.Compare(a.High, b.High), cmp.Compare(a.Low, b.Low))
}

func text(id *p4v1.Uint128) string { return fmt.Sprintf("{high: %d, low: %d}", id.High, id.Low) }

// String returns the role's name in messages.
func (k RoleKey) String() string {
	switch {
	case k.Name != "":
		return fmt.Sprintf("%q", k.Name)
	case k.ID != 0:
		return fmt.Sprintf("number %d", k.ID)
	}
	return "default"
}
