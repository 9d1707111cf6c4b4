package headroom

// The abstract model of exhaust_test.go: the accounts, in packets, of two lossless queues, and of lossy traffic's part of
// the shared pool. The queues are of one ingress port, or of two ports (rule.apart). It is written from the papers and the
// pipeline, independently of package headroom, which is compared with it.

// safeguards can be switched off one by one, to show what each prevents.
type safeguards struct {
	portPauseObeyed bool // the peer stops all classes on a port-level PAUSE (DSH §IV-E)
	drainFirst      bool // a queue that uses headroom or insurance does not resume (SIH, Eq. 3; DSH)
	resumeEmpty     bool // an empty queue resumes, whatever the threshold (LocalResume)
	holdAtReset     bool // a paused port is no victim (SPFC Fig. 10, the State Holder)
	inOrder         bool // PFC frames are not reordered on the way
	oldPoolCounts   bool // bytes beyond a new policy's reserve are not free in its pool
	awaitsSilence   bool // a paused queue lends its headroom only once its peer is silent
}

var allOn = safeguards{true, true, true, true, true, true, true}

// rule is a policy in packets.
type rule struct {
	insured  bool // one reserve per port (DSH), otherwise one per queue (SIH)
	phi      uint8
	private  uint8 // ρ of each queue
	pool     uint8 // shared
	fixed    uint8 // static threshold; 0 for T = free
	gap      uint8 // δ, of queues and ports
	victims  bool  // SPFC
	estimate bool  // τ may be 0 or 1 (DSH), whatever Algorithm 3 says
	apart    bool  // each queue is a port of its own, and with SPFC a paused queue lends its headroom to the other's port
	silence  uint8 // slots without a packet after which a paused peer is silent
}

// port returns the port of a queue, and classes the queues of a port.
func (r *rule) port(q int) int {
	if r.apart {
		return q
	}
	return 0
}

func (r *rule) classes(port int) uint8 {
	if r.apart {
		return 1 << port
	}
	return 0xFF
}

// accounts holds a port's counts. off has a bit for each queue, and bit 2 for the port.
type accounts struct {
	private, shared, head, tau [2]uint8
	insured, lossy             uint8
	off                        uint8
	count                      [2]uint8 // by port, SPFC's IRC, up to depart
	victim                     [2]bool  // by port
	policy                     uint8    // index into rules
	old                        [2]uint8 // packets admitted under the previous policy
	quiet                      [2]uint8 // slots since a packet paused a queue or found it paused, up to silence + 1
	lent                       [2]uint8 // headroom that a queue lends
}

// depart is SPFC's departure threshold in packets.
const depart = 2

const portOff = 4

// frame is a PFC frame: the classes of the two queues, and whether it is for all eight classes.
type frame struct {
	classes    uint8
	pause, all bool
}

func (a *accounts) told() uint8 {
	if a.off&portOff != 0 {
		return 0xFF
	}
	return a.off & 3
}

func minus(a, b uint8) uint8 {
	if a < b {
		return 0
	}
	return a - b
}

func (a *accounts) length(q int) uint8 { return a.private[q] + a.shared[q] + a.head[q] }

func (a *accounts) used() uint8 { return a.shared[0] + a.shared[1] - a.insured + a.lossy }

// reserve returns all headroom or insurance of a policy.
func (r *rule) reserve() uint8 {
	if r.insured {
		return r.phi
	}
	return 2 * r.phi
}

// free returns the free packets of the pool under a policy.
func (a *accounts) free(r *rule, s safeguards) uint8 {
	free := minus(r.pool, a.used())
	if !s.oldPoolCounts {
		return free
	}
	head, insurance := a.head[0]+a.head[1], a.insured
	if r.insured {
		insurance = minus(insurance, r.phi)
	} else {
		head = minus(head, 2*r.phi)
	}
	return minus(minus(free, head), insurance)
}

func (r *rule) threshold(free uint8) uint8 {
	if r.fixed > 0 {
		return r.fixed
	}
	return free
}

// arrive puts a packet into a queue's account and returns false if it is dropped (Algorithm 1).
func (a *accounts) arrive(r *rule, s safeguards, q int, tau uint8) (ok bool, frames []frame) {
	told := a.told()
	victimUnlimited := r.victims && a.victim[r.port(q)]
	free := a.free(r, s)
	level, limit := a.shared[q], r.threshold(free)
	if r.insured {
		level, limit = a.shared[0]+a.shared[1], 2*limit
	}
	total := a.used() + a.insured + a.head[0] + a.head[1]
	inHeadroom, insured := false, false
	switch {
	case a.private[q] < r.private:
		a.private[q]++
	case total >= r.pool+r.reserve():
		return false, a.stop(r, s, q, victimUnlimited, true, true, told)
	case victimUnlimited && a.used() < a.most(r), free > 0 && level+1 < limit:
		a.shared[q]++
	case r.insured && a.insured < r.phi:
		a.shared[q]++
		a.insured++
		insured = true
	case !r.insured && a.head[q] < r.phi:
		a.head[q]++
		inHeadroom = true
	default:
		return false, a.stop(r, s, q, victimUnlimited, true, true, told)
	}
	if r.estimate {
		a.tau[q] = tau
	}
	return true, a.stop(r, s, q, victimUnlimited, inHeadroom, insured, told)
}

// stop pauses the queue and port that a packet has filled.
func (a *accounts) stop(r *rule, s safeguards, q int, victimUnlimited, stopQueue, stopPort bool, told uint8) []frame {
	queueLimit := r.threshold(a.free(r, s))
	portLimit := 2 * queueLimit
	if victimUnlimited {
		queueLimit, portLimit = a.most(r), r.pool
	}
	if a.length(q) > 0 && (stopQueue || a.shared[q]+a.tau[q] > queueLimit) {
		a.off |= 1 << q
	}
	if port := a.shared[0] + a.shared[1]; r.insured && port > 0 && (stopPort || port > portLimit) {
		a.off |= portOff
	}
	if a.off>>q&1 == 1 {
		a.quiet[q] = 0
		a.lend(r, s, q)
	}
	return a.tell(r, s, told)
}

// most returns the shared packets that victims may fill: the pool and what paused queues lend.
func (a *accounts) most(r *rule) uint8 { return r.pool + a.lent[0] + a.lent[1] }

// leave removes a packet from a queue and resumes what may resume.
func (a *accounts) leave(r *rule, s safeguards, q int) []frame {
	told := a.told()
	switch {
	case a.head[q] > 0:
		a.head[q]--
	case a.shared[q] == 0:
		a.private[q]--
	default:
		a.shared[q]--
		a.insured = minus(a.insured, 1)
	}
	if p := r.port(q); r.victims {
		if a.count[p] = min(a.count[p]+1, depart); a.count[p] == depart && (told&r.classes(p) == 0 || !s.holdAtReset) {
			a.victim[p] = true
		}
	}
	t := r.threshold(a.free(r, s))
	if a.off>>q&1 == 1 {
		drained := a.head[q] == 0 || !s.drainFirst
		empty := a.length(q) == 0 && s.resumeEmpty
		if drained && a.shared[q]+a.tau[q]+r.gap < t || empty {
			a.off &^= 1 << q
		}
	}
	if port := a.shared[0] + a.shared[1]; a.off&portOff != 0 && (a.insured == 0 || !s.drainFirst) && (port+r.gap < 2*t || port == 0 && s.resumeEmpty) {
		a.off &^= portOff
	}
	a.lend(r, s, q)
	return a.tell(r, s, told)
}

// lend sets what a queue lends after a packet has come or left: its unused headroom, at most what it holds of the pool.
func (a *accounts) lend(r *rule, s safeguards, q int) {
	silent := a.quiet[q] > r.silence || !s.awaitsSilence
	if a.lent[q] = 0; r.apart && r.victims && a.off>>q&1 == 1 && silent {
		a.lent[q] = min(r.phi-a.head[q], a.shared[q])
	}
}

// slot counts the time since packets of paused queues came.
func (a *accounts) slot(r *rule) {
	for q := range a.quiet {
		if a.quiet[q] = min(a.quiet[q]+1, r.silence+1); !r.apart || a.off>>q&1 == 0 {
			a.quiet[q] = 0
		}
	}
}

// tell returns the frames for changed pause states, and updates SPFC's State Holder.
func (a *accounts) tell(r *rule, s safeguards, told uint8) (frames []frame) {
	now := a.told()
	if more := now &^ told; more != 0 {
		f := frame{classes: more & 3, pause: true}
		if a.off&portOff != 0 {
			f.classes, f.all = 3, true
		}
		frames = append(frames, f)
	}
	if less := told &^ now; less != 0 {
		frames = append(frames, frame{classes: less & 3})
	}
	for p := range 1 + btoi(r.apart) {
		if of := r.classes(p); s.holdAtReset && (now&of == 0) != (told&of == 0) {
			a.victim[p] = now&of == 0 && a.count[p] == depart
		}
	}
	return frames
}

// tick ends a period of SPFC's Timeout Clocks.
func (a *accounts) tick() {
	for p := range a.count {
		if a.count[p] < depart {
			a.victim[p] = false
		}
		a.count[p] = 0
	}
}

// lossyArrives admits a lossy packet if there is room.
func (a *accounts) lossyArrives(r *rule, s safeguards) {
	if free := a.free(r, s); free > 0 && a.lossy+1 < r.threshold(free) {
		a.lossy++
	}
}
