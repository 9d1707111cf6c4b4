package engine

// SharesRegisters reports whether ingress and egress use the same register, or registers that one
// action uses together. Such programs depend on the order of ingress and egress, so packets must
// pass them in the order of their arrival.
func (prog *Program) SharesRegisters() bool {
	ingress := prog.locksFrom(prog.passes[Ingress].first, map[*node]bool{}, map[int]bool{})
	for lock := range prog.locksFrom(prog.passes[Egress].first, map[*node]bool{}, map[int]bool{}) {
		if ingress[lock] {
			return true
		}
	}
	return false
}

// locksFrom adds the registers whose locks code from node n on holds.
func (prog *Program) locksFrom(n *node, seen map[*node]bool, locks map[int]bool) map[int]bool {
	if n == nil || seen[n] {
		return locks
	}
	seen[n] = true
	add := func(lock int) {
		if lock >= 0 {
			locks[prog.registers.list[lock].lock] = true
		}
	}
	add(n.lock)
	if n.call != nil {
		add(n.call.act.lock)
	}
	if n.table != nil {
		for _, a := range n.table.actions {
			add(a.lock)
		}
	}
	for _, m := range n.followers() {
		prog.locksFrom(m, seen, locks)
	}
	return locks
}
