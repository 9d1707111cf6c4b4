package engine

// SharesRegisters reports whether ingress and egress use the same register, or registers that one
// action uses together. If they do, each depends on what the other did before, so packets must pass
// ingress and egress in the order that the program expects.
func (prog *Program) SharesRegisters() bool {
	ingress := prog.locksFrom(prog.ingress, map[*node]bool{}, map[int]bool{})
	for lock := range prog.locksFrom(prog.egress, map[*node]bool{}, map[int]bool{}) {
		if ingress[lock] {
			return true
		}
	}
	return false
}

// locksFrom adds the registers whose locks are held from a node on.
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
