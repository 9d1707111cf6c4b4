/* PrioPlus over Swift for one flow: the C form of packages hosts/law/prioplus and hosts/law/swift, whose comments
 * explain the laws and cite the papers' lines. The delay is the round trip. Units: times are ns, rates B/s,
 * windows and steps 1/1024 B, flows (the papers' #flow) 1/65536. */
#pragma once
#include "fixed.h"

#define WINDOW_BITS 10
#define FLOWS_BITS 16
/* Round trips without a signal count up to this number. The Go law counts all; the verifier needs a bound. */
#define MOST_TRIPS 200

struct prio_params {
	__u64 base_rtt, tolerance, line_rate;
	__u64 increase, linear_start;
	__u64 beta, max_mdf; /* factors */
	__u32 filter, retx_reset, count_down, unused;
};

struct prio_channel {
	__u64 target, limit;
};

struct prio_flow {
	__u64 window, flows, scale, extra; /* scale is flows when the step was set last */
	__u64 rtt, last_at, probe_at, round_end, round_at;
	__u64 beyond; /* end of the data that had left when a round trip was beyond the limit, 0 if the last one was not */
	__u32 mss, count_down, over, losses;
	__u32 dual, stopped, waiting, lowered, begun, unused;
};

struct prio_ack {
	__u64 now, rtt, acked, inflight, acked_seq, sent_seq;
	__u64 random; /* any 64 bits */
	__u32 probe, unused;
};

/* in_flight returns the bytes in flight on a full path with the given delay, as a window. */
FN __u64 prio_in_flight(const struct prio_params *p, __u64 delay) { return sent(p->line_rate, delay) << WINDOW_BITS; }

FN void prio_set_window(struct prio_flow *f, __u64 window)
{
	f->window = max(window, (__u64)f->mss * (1 << WINDOW_BITS) / 100);
}

/* per_flow returns v / #flow. */
FN __u64 prio_per_flow(__u64 v, __u64 flows) { return (v << FLOWS_BITS) / max(flows, 1); }

FN void prio_set_increase(struct prio_flow *f, __u64 extra)
{
	f->scale = f->flows;
	f->extra = extra;
}

FN void prio_count_down(struct prio_flow *f)
{
	if (f->count_down > 0)
		f->count_down--;
	else
		f->flows = max(1 << FLOWS_BITS, f->flows / 2);
}

FN void prio_schedule(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a, __u64 delay)
{
	__u64 wait = (delay > c->target ? delay - c->target : 0) + ((a->random >> 32) * p->base_rtt >> 32);
	f->waiting = 0;
	f->probe_at = a->now + wait;
}

FN void prio_stop(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a, __u64 delay)
{
	f->stopped = 1;
	if (!f->waiting)
		prio_schedule(f, p, c, a, delay);
}

FN void prio_resume(struct prio_flow *f, __u64 next, __u64 now)
{
	f->stopped = f->dual = 0;
	f->round_at = now;
	f->round_end = next;
	f->begun = 1;
	prio_set_increase(f, 0);
}

FN void prio_start(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a, __u32 mss)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->mss = mss;
	f->rtt = p->base_rtt;
	f->flows = f->scale = 1 << FLOWS_BITS;
	prio_set_window(f, max(prio_in_flight(p, p->base_rtt), (__u64)mss << WINDOW_BITS));
	prio_stop(f, p, c, a, p->base_rtt);
}

FN int prio_at_base(const struct prio_params *p, __u64 delay) { return delay <= p->base_rtt + p->tolerance; }

FN void prio_probe_answer(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a)
{
	f->waiting = 0;
	f->probe_at = 0;
	if (!f->stopped)
		return;
	if (a->rtt >= c->limit) {
		prio_schedule(f, p, c, a, a->rtt);
		return;
	}
	if (prio_at_base(p, a->rtt)) {
		prio_set_window(f, prio_per_flow(p->linear_start << WINDOW_BITS, f->flows));
		prio_count_down(f);
	} else {
		prio_set_window(f, (__u64)f->mss << WINDOW_BITS);
	}
	prio_resume(f, a->sent_seq, a->now);
}

FN int prio_can_decrease(const struct prio_flow *f, __u64 now) { return !f->lowered || now - f->last_at >= f->rtt; }

FN void prio_decrease(struct prio_flow *f, __u64 now, __u64 factor)
{
	prio_set_window(f, scale(f->window, ONE - factor));
	f->lowered = 1;
	f->last_at = now;
}

/* swift_ack takes Swift's step for one acknowledgement. */
FN void swift_ack(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a)
{
	__u64 mss = (__u64)f->mss << WINDOW_BITS, step;
	f->rtt = a->rtt;
	f->losses = 0;
	if (a->rtt < c->target) {
		if ((a->inflight + a->acked + f->mss) << WINDOW_BITS < f->window / 2)
			return;
		step = prio_per_flow(p->increase << WINDOW_BITS, f->scale) + f->extra;
		prio_set_window(f, f->window + step * a->acked / (max(f->window, mss) >> WINDOW_BITS));
	} else if (prio_can_decrease(f, a->now)) {
		step = scale(p->beta, part(a->rtt - c->target, a->rtt));
		prio_decrease(f, a->now, min(step, p->max_mdf));
	}
}

FN void prio_increase(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, __u64 delay, __u64 trips)
{
	__u64 mss = (__u64)f->mss << WINDOW_BITS, more;
	int i;
	if (prio_at_base(p, delay)) {
		for (i = 0; i < MOST_TRIPS; i++) {
			prio_set_window(f, f->window + prio_per_flow(p->linear_start << WINDOW_BITS, f->flows));
			prio_count_down(f);
			if (--trips == 0 || f->window >= mss)
				break;
		}
	} else if (f->dual) {
		more = f->window / 2;
		if (c->target - delay < delay / 2)
			more = scale(f->window, part(c->target - delay, delay));
		prio_set_increase(f, more);
	}
}

/* prio_filter keeps a round trip below the limit unless data that left after the first one beyond it is late, too. A link that
 * stood still, a late processor or a burst lengthens many round trips in a row, but only those of data that was in flight
 * then. The paper's filter, which wants two acknowledgements, would stop the flow. */
FN void prio_filter(struct prio_flow *f, const struct prio_channel *c, struct prio_ack *a)
{
	if (f->stopped)
		return; /* the round trip is a probe's */
	if (a->rtt < c->limit)
		f->beyond = 0;
	else if (!f->beyond)
		f->beyond = a->sent_seq;
	if (a->acked_seq <= f->beyond)
		a->rtt = min(a->rtt, c->limit - 1);
}

FN void prio_ack(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a)
{
	__u64 mss = (__u64)f->mss << WINDOW_BITS, trips = 1, most;
	int passed = 0;
	if (a->probe) {
		prio_probe_answer(f, p, c, a);
		return;
	}
	if (!a->acked)
		return;
	if (!f->begun) {
		f->begun = 1;
		f->round_end = a->sent_seq;
	} else if (a->acked_seq > f->round_end) {
		f->round_end = a->sent_seq;
		passed = 1;
		trips = max(1, (a->now - f->round_at) / max(a->rtt, p->base_rtt));
		f->round_at = a->now;
		f->dual = !f->dual;
		if (!f->dual)
			prio_set_increase(f, 0);
	}
	if (a->rtt < c->limit) {
		f->over = 0;
	} else if (++f->over >= p->filter) {
		most = (prio_in_flight(p, a->rtt) << FLOWS_BITS) / max(f->window, mss / 2);
		f->flows = max(f->flows, most);
		f->count_down = p->count_down;
		prio_set_increase(f, 0);
		prio_stop(f, p, c, a, a->rtt);
		return;
	}
	if (f->stopped)
		return;
	if (passed && a->rtt <= c->target)
		prio_increase(f, p, c, a->rtt, trips);
	swift_ack(f, p, c, a);
	most = prio_in_flight(p, c->target);
	if (f->window <= mss / 10)
		prio_stop(f, p, c, a, p->base_rtt);
	else if (f->window > most)
		prio_set_window(f, most);
}

FN void prio_loss(struct prio_flow *f, const struct prio_params *p, const struct prio_channel *c, const struct prio_ack *a)
{
	if (f->stopped) {
		if (!f->probe_at)
			prio_schedule(f, p, c, a, p->base_rtt);
		return;
	}
	if (++f->losses >= p->retx_reset)
		prio_set_window(f, 0);
	else if (prio_can_decrease(f, a->now))
		prio_decrease(f, a->now, p->max_mdf);
}
