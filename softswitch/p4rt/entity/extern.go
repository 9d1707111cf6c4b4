package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/pfcwd"
)

// Setting is a value that the switch starts with and that a controller may replace. It belongs to
// the switch and not to the pipeline, so it survives a change of the pipeline.
type Setting[T any] interface {
	// Settings returns the value that Set set last. It returns false while the switch's initial
	// value is in force.
	Settings() (T, bool)
	// Set replaces the whole value; nil restores the initial value.
	Set(*T)
}

// Watchdog is the switch's watchdog for received PFC.
type Watchdog interface {
	Setting[pfcwd.Settings]
	// Storms returns the classes of ports that are or were in a storm.
	Storms() []pfcwd.Storm
}

var errExtern = status.Error(codes.Unimplemented,
	"extern_entry: this switch has no externs beyond v1model's but the lossless classes and the PFC watchdog, and the watchdog with --pfc only")

func (s *State) writeExtern(op p4v1.Update_Type, in *p4v1.ExternEntry) error {
	switch id := in.GetExternId(); {
	case in.GetExternTypeId() != pfcwd.ExternType:
		return errExtern
	case id == pfcwd.LosslessID && s.opts.Lossless != nil:
		return writeSetting(op, in, s.opts.Lossless, func(e *p4v1.ExternEntry) (pfcwd.Lossless, error) {
			return pfcwd.ReadLossless(e, max(1, s.opts.Queues))
		})
	case s.opts.Watchdog == nil:
		return errExtern
	case id == pfcwd.StormsID:
		return denied("extern_entry 0x%08x: storms can only be read", id)
	case id == pfcwd.SettingsID:
		return writeSetting[pfcwd.Settings](op, in, s.opts.Watchdog, pfcwd.ReadSettings)
	default:
		return notFound("extern_entry 0x%08x: want 0x%08x or 0x%08x", id, uint32(pfcwd.SettingsID), uint32(pfcwd.LosslessID))
	}
}

func writeSetting[T any](op p4v1.Update_Type, in *p4v1.ExternEntry, to Setting[T], read func(*p4v1.ExternEntry) (T, error)) error {
	_, set := to.Settings()
	if err := present(op, set, "extern entry", in.GetExternId()); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		to.Set(nil)
		return nil
	}
	v, err := read(in)
	if err != nil {
		return invalid("extern_entry 0x%08x: %v", in.GetExternId(), err)
	}
	to.Set(&v)
	return nil
}

func (s *State) readExterns(req *p4v1.ExternEntry, emit func(*p4v1.Entity)) error {
	w, l, kind, id := s.opts.Watchdog, s.opts.Lossless, req.GetExternTypeId(), req.GetExternId()
	switch {
	case w == nil && l == nil && kind == 0 && len(s.schema.Info.GetExterns()) == 0:
		return nil // a read of all externs finds none
	case kind != 0 && kind != pfcwd.ExternType,
		w == nil && id != 0 && id != pfcwd.LosslessID,
		l == nil && (w == nil || id == pfcwd.LosslessID):
		return errExtern
	case id != 0 && id != pfcwd.SettingsID && id != pfcwd.StormsID && id != pfcwd.LosslessID:
		return notFound("extern_entry 0x%08x: want 0x%08x to 0x%08x", id, uint32(pfcwd.SettingsID), uint32(pfcwd.LosslessID))
	}
	if w != nil && (id == 0 || id == pfcwd.SettingsID) {
		if settings, set := w.Settings(); set {
			emit(settings.Entity())
		}
	}
	if w != nil && (id == 0 || id == pfcwd.StormsID) {
		emit(pfcwd.StormsEntity(w.Storms()))
	}
	if l != nil && (id == 0 || id == pfcwd.LosslessID) {
		if lossless, set := l.Settings(); set {
			emit(lossless.Entity())
		}
	}
	return nil
}
