package symbolic

// typ is a type. Externs have only a name and type arguments.
type typ struct {
	name   string
	kind   byte // b bit, i int, B bool, s struct, h header, x extern
	width  int
	fields []variable
	args   []*typ
}

// variable is a field, a parameter, or a local variable with its initial value.
type variable struct {
	name string
	typ  *typ
	out  bool // an out or inout parameter
	init *expr
}

// expr is an expression. The fields that it uses depend on op; a holds its operands.
type expr struct {
	op   string // num, name, str, list, member, slice, index, call, cast, ?:, or an operator
	at   string
	name string
	n    uint64
	a    []*expr
	typ  *typ
}

// stmt is a statement, or a parser's transition.
type stmt struct {
	op    string // =, call, if, block, var, transition
	at    string
	e, to *expr // to is the target of an assignment
	body  []stmt
	other []stmt
	v     variable
	cases []branch
	seen  bool // a packet has reached it
}

// branch is a row of a select; without keys it is the default.
type branch struct {
	keys []*expr
	next string
}

// object is a constant, an extern's instance, a control's instance, or a property of a table.
type object struct {
	name, full string // full is the name in @name
	typ        *typ
	args       []*expr
	methods    map[string]*function // abstract ones
}

type function struct {
	name, full string
	params     []variable
	body       []stmt
}

type keyField struct {
	e          *expr
	kind, name string
}

type table struct {
	name, full string
	keys       []keyField
	actions    []string
	deflt      *expr
	entries    [][2]*expr
	props      map[string]*expr
}

// unit is a parser or a control.
type unit struct {
	name         string
	params, ctor []variable
	vars         []variable
	objects      []object
	actions      map[string]*function
	tables       map[string]*table
	states       map[string][]stmt
	apply        []stmt
}
