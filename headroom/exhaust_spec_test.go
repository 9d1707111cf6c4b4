package headroom

// The abstract model of exhaust_test.go: the accounts, in packets, of one ingress port with two
// lossless queues, and of lossy traffic's part of the shared pool. It is written from the papers
// and the pipeline, independently of package headroom, which is compared with it.

// safeguards can be switched off one by one, to show what each prevents.
type safeguards struct {
	portPauseObeyed bool // the peer stops all classes on a port-level PAUSE (DSH §IV-E)
	drainFirst      bool // a queue that uses headroom or insurance does not resume (SIH, Eq. 3; DSH)
	resumeEmpty     bool // an empty queue resumes, whatever the threshold (LocalResume)
	holdAtReset     bool // a paused port is no victim (SPFC Fig. 10, the State Holder)
	inOrder         bool // PFC frames are not reordered on the way
	oldPoolCounts   bool // bytes beyond a new policy's reserve are not free in its pool
}

var allOn = safeguards{true, true, true, true, true, true}

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
}

// accounts holds a port's counts. off has a bit for each queue, and bit 2 for the port.
type accounts struct {
	private, shared, head, tau [2]uint8
	insured, lossy             uint8
	off                        uint8
	count                      uint8 // SPFC's IRC, up to depart
	victim                     bool
	policy                     uint8    // index into rules
	old                        [2]uint8 // packets admitted under the previous policy
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
	victimUnlimited := r.victims && a.victim
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
	case free > 0 && (victimUnlimited || level+1 < limit):
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
		queueLimit, portLimit = r.pool, r.pool
	}
	if a.length(q) > 0 && (stopQueue || a.shared[q]+a.tau[q] > queueLimit) {
		a.off |= 1 << q
	}
	if port := a.shared[0] + a.shared[1]; r.insured && port > 0 && (stopPort || port > portLimit) {
		a.off |= portOff
	}
	return a.tell(s, told)
}

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
	if r.victims {
		if a.count = min(a.count+1, depart); a.count == depart && (told == 0 || !s.holdAtReset) {
			a.victim = true
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
	return a.tell(s, told)
}

// tell returns the frames for changed pause states, and updates SPFC's State Holder.
func (a *accounts) tell(s safeguards, told uint8) (frames []frame) {
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
	if s.holdAtReset && (now == 0) != (told == 0) {
		a.victim = now == 0 && a.count == depart
	}
	return frames
}

// tick ends a period of SPFC's Timeout Clock.
func (a *accounts) tick() {
	if a.count < depart {
		a.victim = false
	}
	a.count = 0
}

// lossyArrives admits a lossy packet if there is room.
func (a *accounts) lossyArrives(r *rule, s safeguards) {
	if free := a.free(r, s); free > 0 && a.lossy+1 < r.threshold(free) {
		a.lossy++
	}
}
