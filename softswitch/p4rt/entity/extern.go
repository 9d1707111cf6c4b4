package entity

import (
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/externs"
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

// kept is a Setting that is stored and has no effect.
type kept[T any] struct{ set *T }

func (k *kept[T]) Settings() (v T, set bool) {
	if k.set != nil {
		v = *k.set
	}
	return v, k.set != nil
}

func (k *kept[T]) Set(v *T) { k.set = v }

// Watchdog is the switch's watchdog for received PFC.
type Watchdog interface {
	Setting[externs.Settings]
	// Storms returns the classes of ports that are or were in a storm.
	Storms() []externs.Storm
}

// extern is an instance of an extern of the switch.
type extern struct {
	read  func() []*p4v1.Entity
	write func(p4v1.Update_Type, *p4v1.ExternEntry) error
}

var errExtern = status.Error(codes.Unimplemented,
	"extern_entry: this switch has no externs beyond those of the program's architecture but the lossless classes, those that ports obey, the weights of queues and the PFC watchdog, and the watchdog with --pfc only")

// externs returns the instances that this switch has, by id.
func (s *State) externs() map[uint32]extern {
	has := map[uint32]extern{}
	if w := s.opts.Watchdog; w != nil {
		has[externs.SettingsID] = ofSetting[externs.Settings](w, externs.ReadSettings)
		has[externs.StormsID] = extern{
			read: func() []*p4v1.Entity { return []*p4v1.Entity{externs.StormsEntity(w.Storms())} },
			write: func(p4v1.Update_Type, *p4v1.ExternEntry) error {
				return denied("extern_entry 0x%08x: storms can only be read", uint32(externs.StormsID))
			},
		}
	} else {
		kept := ofSetting(&s.unwatched, externs.ReadSettings)
		has[externs.SettingsID] = extern{kept.read, func(op p4v1.Update_Type, in *p4v1.ExternEntry) error {
			if v, err := externs.ReadSettings(in); op != p4v1.Update_DELETE && (err != nil || !v.Default) {
				return errExtern
			}
			return kept.write(op, in)
		}}
	}
	if l := s.opts.Lossless; l != nil {
		has[externs.LosslessID] = ofSetting(l, func(e *p4v1.ExternEntry) (externs.Lossless, error) { return externs.ReadLossless(e, s.opts.Queues) })
	}
	if w := s.opts.Weights; w != nil {
		has[externs.WeightsID] = ofSetting(w, func(e *p4v1.ExternEntry) (externs.Weights, error) { return externs.ReadWeights(e, s.opts.Queues) })
	}
	if o := s.opts.Obeyed; o != nil {
		has[externs.ObeyedID] = ofSetting(o, externs.ReadObeyed)
	}
	return has
}

// ofSetting returns the instance of a setting, which has one entry once a controller has set it.
func ofSetting[T interface{ Entity() *p4v1.Entity }](to Setting[T], parse func(*p4v1.ExternEntry) (T, error)) extern {
	return extern{
		read: func() []*p4v1.Entity {
			if v, set := to.Settings(); set {
				return []*p4v1.Entity{v.Entity()}
			}
			return nil
		},
		write: func(op p4v1.Update_Type, in *p4v1.ExternEntry) error { return writeSetting(op, in, to, parse) },
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

func (s *State) writeExtern(op p4v1.Update_Type, in *p4v1.ExternEntry) error {
	x, known := s.externs()[in.GetExternId()]
	switch {
	case in.GetExternTypeId() != externs.ExternType, !known && s.opts.Watchdog == nil:
		return errExtern
	case !known:
		return notFound("extern_entry 0x%08x: want 0x%08x, or 0x%08x to 0x%08x", in.GetExternId(), uint32(externs.SettingsID), uint32(externs.LosslessID), uint32(externs.ObeyedID))
	}
	return x.write(op, in)
}

func (s *State) readExterns(req *p4v1.ExternEntry, emit func(Found)) error {
	has, kind, id := s.externs(), req.GetExternTypeId(), req.GetExternId()
	_, known := has[id]
	switch {
	case kind != 0 && kind != externs.ExternType, id != 0 && !known && s.opts.Watchdog == nil:
		return errExtern
	case id != 0 && !known:
		return notFound("extern_entry 0x%08x: want 0x%08x to 0x%08x", id, uint32(externs.SettingsID), uint32(externs.ObeyedID))
	}
	for _, at := range slices.Sorted(maps.Keys(has)) {
		if id == 0 || id == at {
			for _, e := range has[at].read() {
				emit(found(e))
			}
		}
	}
	return nil
}
