package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/pfcwd"
)

// Watchdog is the switch's watchdog for received PFC. It belongs to the switch and not to the
// pipeline, so its settings stay when another pipeline is pushed.
type Watchdog interface {
	// Settings returns the settings of the last Set. It returns false when the switch has the
	// settings that it started with.
	Settings() (pfcwd.Settings, bool)
	// Set replaces all settings; nil restores those that the switch started with.
	Set(*pfcwd.Settings)
	// Storms returns the classes of ports that were in a storm.
	Storms() []pfcwd.Storm
}

var errExtern = status.Error(codes.Unimplemented, "extern_entry: this switch has no externs beyond v1model's but the PFC watchdog, and that with --pfc only")

func (s *State) writeExtern(op p4v1.Update_Type, in *p4v1.ExternEntry) error {
	w := s.opts.Watchdog
	switch {
	case w == nil || in.GetExternTypeId() != pfcwd.ExternType:
		return errExtern
	case in.GetExternId() == pfcwd.StormsID:
		return denied("extern_entry 0x%08x: storms can only be read", in.GetExternId())
	case in.GetExternId() != pfcwd.SettingsID:
		return notFound("extern_entry 0x%08x: want 0x%08x", in.GetExternId(), uint32(pfcwd.SettingsID))
	}
	_, set := w.Settings()
	if err := present(op, set, "extern entry", in.GetExternId()); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		w.Set(nil)
		return nil
	}
	settings, err := pfcwd.ReadSettings(in)
	if err != nil {
		return invalid("extern_entry 0x%08x: %v", in.GetExternId(), err)
	}
	w.Set(&settings)
	return nil
}

func (s *State) readExterns(req *p4v1.ExternEntry, emit func(*p4v1.Entity)) error {
	w, kind, id := s.opts.Watchdog, req.GetExternTypeId(), req.GetExternId()
	switch {
	case w == nil && kind == 0 && len(s.schema.Info.GetExterns()) == 0:
		return nil // a read of all externs, of which there are none
	case w == nil || kind != 0 && kind != pfcwd.ExternType:
		return errExtern
	case id != 0 && id != pfcwd.SettingsID && id != pfcwd.StormsID:
		return notFound("extern_entry 0x%08x: want 0x%08x or 0x%08x", id, uint32(pfcwd.SettingsID), uint32(pfcwd.StormsID))
	}
	if settings, set := w.Settings(); set && id != pfcwd.StormsID {
		emit(settings.Entity())
	}
	if id != pfcwd.SettingsID {
		emit(pfcwd.StormsEntity(w.Storms()))
	}
	return nil
}
