package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"runtime"
	"sync"
	"weak"

	"golang.org/x/sync/singleflight"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/softswitch/stages"
)

// Program is a compiled BMv2 JSON program. It is immutable.
type Program struct {
	doc       []byte
	source    *bmv2json.Program
	layout    *phv.Layout
	arch      *Architecture
	model     Model
	passes    [2]pass
	codes     parserCodes
	checksums []*checksum // verified by the parser of ingress
	code      code
	unloaded  [][]phv.Load // fields that extraction leaves in the frame, by header; see loadRest
	actions   []*action    // in order of declaration
	actionID  map[int]*action
	actionBy  map[string]*action // the first action of each name
	tables    catalogue[*tableSpec]
	profiles  catalogue[*profileSpec]
	calcs     catalogue[*calculation]
	counters  catalogue[*arraySpec]
	meters    catalogue[*meterSpec]
	registers catalogue[*registerSpec]
	vsets     catalogue[*vsetSpec]
	robins    int  // number of round-robin calculations
	serial    bool // the parser uses registers, so packets must be parsed in turn
	lists     map[int][]phv.Ref
	learns    map[int]*learnList
	errorBy   map[string]uint32
}

// pass is the compiled blocks of a Pass.
type pass struct {
	name     string // name of the pipeline
	stage    stages.Stage
	parser   *parser // nil for none
	first    *node   // first node of the pipeline, nil if it is empty
	pc       uint32  // first's code
	deparser *deparser
}

// The programs in use and those being compiled, by the SHA-256 of their JSON. The switches of a
// process share them.
var (
	inUse     sync.Map // string to weak.Pointer[Program]
	compiling singleflight.Group
)

// Load parses, checks and compiles BMv2 JSON, versions 2.0 to 2.24. The error names the place in
// the JSON, the value and what is allowed. If a program of the same JSON is in use, Load returns
// that one. The program keeps doc, which must not be changed.
func Load(doc []byte) (*Program, error) {
	sum := sha256.Sum256(doc)
	key := string(sum[:])
	prog, err, _ := compiling.Do(key, func() (any, error) {
		if p, ok := inUse.Load(key); ok {
			if prog := p.(weak.Pointer[Program]).Value(); prog != nil {
				return prog, nil
			}
		}
		j, err := bmv2json.Parse(doc)
		if err != nil {
			return nil, err
		}
		prog, err := compile(j, false)
		if err != nil {
			return nil, err
		}
		prog.doc, prog.code.native = doc, natives[hex.EncodeToString(sum[:])]
		prog.passes[Ingress].parser.native = prog.code.native.Parse
		p := weak.Make(prog)
		inUse.Store(key, p)
		runtime.AddCleanup(prog, func(key string) { inUse.CompareAndDelete(key, p) }, key)
		return prog, nil
	})
	if err != nil {
		return nil, err
	}
	return prog.(*Program), nil
}

// loadError is an error of the compiler.
type loadError struct{ error }

func (e loadError) Unwrap() error { return ErrInvalid }

// Compiler is the state of a compilation, as a Model sees it.
type Compiler = compiler

type compiler struct {
	*Program
	bmv2json.Reader
	asm          assembler
	scratch      int  // word that passes a computed number to an assignment
	reference    bool // compile without optimisations, for tests
	depth        int
	action       *action     // being compiled, nil outside of actions
	locals       *phv.Header // its fields are the locals of the length expression being compiled
	regs         map[int]bool
	nodes        map[string]*node
	directMeters catalogue[*meterSpec]
	used         map[int]bool         // words of fields that the program reads
	writing      bool                 // the code being compiled reads no field, see unread
	chosen       map[*phv.Header]bool // headers chosen at run time: members of stacks and unions
	written      map[int]bool         // words of fields that the program writes
	parsed       map[int]bool         // words of fields written in the parser or in clones
	extracts     []*parseStep         // the steps that extract a header in line
	inputs       []*Field             // inputs of the architecture; see Input
	stateBytes   int64
}

// compile compiles a program. With reference set it compiles without optimisations, for tests to
// compare with: the evaluator computes all expressions, headers are read and written as a whole,
// and checksums are computed from fields.
func compile(j *bmv2json.Program, reference bool) (prog *Program, err error) {
	c := &compiler{Program: &Program{source: j}, reference: reference, used: map[int]bool{}, written: map[int]bool{}}
	defer func() {
		if err != nil {
			prog, err = nil, loadError{err}
		}
	}()
	defer bmv2json.Catch(&err)
	c.In("__meta__", -1, func() { c.checkVersion(j.Meta.Version) })
	c.arch = c.architecture(j)
	var temporaries map[string]bool
	if !reference {
		temporaries = j.Temporaries()
	}
	c.layout = phv.NewLayout(&c.Reader, j, c.arch.Scratch(j), temporaries)
	c.findChosen()
	c.scratch = c.layout.Words
	c.code.base = uint32(c.scratch + 1)
	c.asm = assembler{code: &c.code, reference: reference, bits: c.layout.PossibleBits()}
	c.asm.emit(instr{op: opEnd})
	c.buildErrors(j)
	c.buildState(j)
	c.buildLists(j)
	c.calcs.kind = "calculation"
	for i := range j.Calculations {
		c.In("calculations", i, func() {
			jc := &j.Calculations[i]
			c.calcs.add(c, jc.Name, c.calculation(jc.Algo, jc.Input))
		})
	}
	c.model = c.arch.New(c)
	c.buildParsers(j)
	c.parsed = maps.Clone(c.written)
	c.buildActions(j)
	c.buildPipelines(j)
	c.buildDeparsers(j)
	c.buildChecksums(j)
	c.lower()
	c.finishChecksums()
	c.finishDeparsers()
	c.finishInputs()
	c.finishHeaders()
	return c.Program, nil
}

func (c *compiler) checkVersion(v []int) {
	if len(v) == 0 {
		return // old programs have no version; BMv2 accepts them
	}
	if len(v) != 2 || v[0] != 2 || v[1] < 0 || v[1] > 24 {
		c.Fail("version %v is not supported, allowed are 2.0 to 2.24", v)
	}
}

func (c *compiler) findChosen() {
	c.chosen = map[*phv.Header]bool{}
	for _, h := range c.layout.List {
		c.chosen[h] = h.Union != nil
	}
	for _, s := range c.layout.Stacks {
		for _, e := range s.Elems {
			c.chosen[e[0]] = true
		}
	}
}

func (c *compiler) buildErrors(j *bmv2json.Program) {
	c.errorBy = map[string]uint32{}
	next := uint32(0)
	for i, e := range j.Errors {
		c.In("errors", i, func() {
			if e.Value < 0 || int64(e.Value) >= 1<<31-1 {
				c.Fail("error %q has value %d, allowed are 0 to 2^31−2", e.Name, e.Value)
			}
			c.errorBy[e.Name] = uint32(e.Value)
			next = max(next, uint32(e.Value)+1)
		})
	}
	for _, name := range []string{"NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout", "ParserInvalidArgument"} {
		if _, ok := c.errorBy[name]; !ok {
			c.errorBy[name] = next
			next++
		}
	}
}

// learnList is a digest: the fields of a learning message.
type learnList struct {
	name   string
	fields []phv.Ref
}

func (c *compiler) buildLists(j *bmv2json.Program) {
	c.lists, c.learns = map[int][]phv.Ref{}, map[int]*learnList{}
	for i := range j.FieldLists {
		l := &j.FieldLists[i]
		c.In("field_lists", i, func() {
			c.lists[l.ID] = c.fieldsOf(l)
			for _, r := range c.lists[l.ID] {
				c.writes(r) // a clone's metadata is written
			}
		})
	}
	for i := range j.LearnLists {
		l := &j.LearnLists[i]
		c.In("learn_lists", i, func() { c.learns[l.ID] = &learnList{l.Name, c.fieldsOf(l)} })
	}
}

func (c *compiler) fieldsOf(l *bmv2json.FieldList) []phv.Ref {
	var refs []phv.Ref
	for k := range l.Elements {
		e := &l.Elements[k]
		c.In("elements", k, func() {
			switch e.Type {
			case "field":
				refs = append(refs, c.fieldValue(e.Value))
			case "hexstr": // constants need no copying
			default:
				c.Fail("unknown type %q, allowed are field and hexstr", e.Type)
			}
		})
	}
	return refs
}

// catalogue holds the objects of one kind in order of declaration and finds them by name.
type catalogue[S any] struct {
	kind string
	list []S
	at   map[string]int
}

func (k *catalogue[S]) add(c *compiler, name string, s S) {
	if k.at == nil {
		k.at = map[string]int{}
	}
	if _, ok := k.at[name]; ok {
		c.Fail("%s %q is declared twice", k.kind, name)
	}
	k.at[name] = len(k.list)
	k.list = append(k.list, s)
}

func (k *catalogue[S]) get(name string) (s S, ok bool) {
	i, ok := k.at[name]
	if ok {
		s = k.list[i]
	}
	return s, ok
}

// named finds an object by name. It fails the compilation if there is none.
func (k *catalogue[S]) named(c *compiler, name string) S {
	s, ok := k.get(name)
	if !ok {
		c.Fail("unknown %s %q", k.kind, name)
	}
	return s
}

// find finds an object by name for a control method.
func (k *catalogue[S]) find(name string) (S, error) {
	s, ok := k.get(name)
	if !ok {
		return s, errorf(ErrNotFound, "%s %q", k.kind, name)
	}
	return s, nil
}

// JSON is the text that Load compiled; it must not be changed.
func (p *Program) JSON() []byte { return p.doc }

// Source is the document that the program was compiled from; it must not be changed.
func (p *Program) Source() *bmv2json.Program { return p.source }

// LearnLists describes the learn lists.
func (p *Program) LearnLists() []LearnInfo {
	var list []LearnInfo
	for _, l := range p.source.LearnLists {
		info := LearnInfo{ID: l.ID, Name: l.Name}
		for _, r := range p.learns[l.ID].fields {
			info.Bits = append(info.Bits, r.F.Bits)
		}
		list = append(list, info)
	}
	return list
}

// Tables describes the tables, in order of declaration.
func (p *Program) Tables() []TableInfo {
	infos := make([]TableInfo, len(p.tables.list))
	for i, t := range p.tables.list {
		infos[i] = t.info()
	}
	return infos
}

// Actions describes the actions, one per name.
func (p *Program) Actions() []ActionInfo {
	var infos []ActionInfo
	for _, a := range p.actions {
		if p.actionBy[a.name] != a {
			continue
		}
		info := ActionInfo{Name: a.name}
		for _, q := range a.params {
			info.Params = append(info.Params, q.ParamInfo)
		}
		infos = append(infos, info)
	}
	return infos
}
