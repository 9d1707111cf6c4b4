package engine

// Native is a program as the Go code that WriteNative writes. It runs instead of the program's
// instructions, and uses the instance's tables, registers and operations.
type Native struct {
	// Exec runs code from instruction pc to its end or to exit, and returns its result.
	Exec func(p *Packet, pc uint32) uint64
	// Parse runs the parser; nil if the parser is interpreted.
	Parse func(p *Packet)
}

// natives holds the linked-in programs by the SHA-256 of their JSON.
var natives = map[string]Native{}

// Register links a program in. program is the SHA-256 of its JSON in hexadecimal. Call it only
// from package initialisation, because it takes no lock.
func Register(program string, n Native) bool {
	natives[program] = n
	return true
}

// Machine is an Instance as its Native sees it. All methods are small enough to be inlined.
type Machine Instance

// Machine returns the instance that processes the packet.
func (p *Packet) Machine() *Machine { return (*Machine)(p.in) }

// Op returns operation i of the program.
func (m *Machine) Op(i int) func(p *Packet) { return m.prog.code.ops[i] }

// ParserOp returns operation i of the parser, which returns false when it fails.
func (m *Machine) ParserOp(i int) func(p *Packet) bool { return m.prog.code.parserOps[i] }

// Args returns list i of constant arguments.
func (m *Machine) Args(i int) []uint64 { return m.prog.code.args[i] }

// RegisterLock returns the lock of register i.
func (m *Machine) RegisterLock(i int) *shortLock { return m.registers[i].mu }

// Cells returns the cells of register i. Each cell has one word.
func (m *Machine) Cells(i int) []uint64 { return m.registers[i].cells }

// Counters returns the cells of counter array i.
func (m *Machine) Counters(i int) []counterCell { return m.counters[i] }

// Table returns table i.
func (m *Machine) Table(i int) *table { return m.tables[i] }

// Used reports whether the table has entries.
func (t *table) Used() bool { return t.used }

// Next returns the arguments of the step's action, where its code begins, and where the code
// continues after it.
func (s *step) Next() (args []uint64, pc, ret uint32) { return s.args, s.pc, s.ret }

// Key returns the packet's memory for a table's key.
func (p *Packet) Key() *[4]uint64 { return &p.key }

// Begin clears the exit that earlier code set.
func (p *Packet) Begin() { p.exit = false }

// Exited reports whether an action called exit.
func (p *Packet) Exited() bool { return p.exit }

// Rest returns the bytes from which no header was parsed yet, and the slack behind them.
func (p *Packet) Rest() []byte { return p.buf[p.head:] }

// Left returns the number of bytes that the parser may still read.
func (p *Packet) Left() int { return p.dataEnd() - p.head }

// TooShort ends the parser with PacketTooShort.
func (p *Packet) TooShort() { p.parserError = p.in.prog.codes.tooShort }

// Timeout ends the parser with ParserTimeout.
func (p *Packet) Timeout() { p.parserError = p.in.prog.codes.timeout }

// HasPlace reports whether the packet can remember where one more header was extracted.
func (p *Packet) HasPlace() bool { return uint(p.nPlaced) < uint(len(p.placed)) }

// Place records that header h was extracted at the parser's position. The packet must have a place
// for it.
func (p *Packet) Place(h uint32) {
	n := p.nPlaced
	p.placed[n] = placement{h, uint32(p.head)}
	p.nPlaced = n + 1
}

// ExtractUnplaced extracts header h if the packet has no place for it.
func (p *Packet) ExtractUnplaced(h int) { p.extractUnplaced(p.in.prog.layout.List[h]) }

// Advance moves the parser on by n bytes.
func (p *Packet) Advance(n int) { p.head += n }
