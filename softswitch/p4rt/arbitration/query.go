//lint:file-ignore SA1019 clients older than P4Runtime 1.4 number their roles

package arbitration

import (
	"cmp"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// MayWrite checks the sender of a Write or SetForwardingPipelineConfig. The error is NOT_FOUND for
// another device, or for a role that no client ever had. It is PERMISSION_DENIED unless election
// is the election id of the role's primary.
func (d *Device) MayWrite(deviceID uint64, key RoleKey, election *p4v1.Uint128) error {
	if deviceID != d.opts.DeviceID {
		return status.Errorf(codes.NotFound, "device_id %d is not known, this device is %d", deviceID, d.opts.DeviceID)
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

// notifyAll makes the notifications for every client of a role.
func (d *Device) notifyAll(r *role) Outcome {
	var out Outcome
	for _, c := range r.clients {
		n := d.message(c)
		if c == r.primary {
			out.ToPrimary = &n
		} else {
			out.Others = append(out.Others, n)
		}
	}
	return out
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
	return Notification{c.id, m}
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
