/* Söze for one flow: the C form of package hosts/law/soze, whose comments explain the law and its corner
 * cases. Units: times are ns, rates B/s; lg is the logarithm of a rate per weight. */
#pragma once
#include "fixed.h"

struct soze_params {
	__u64 p, k;             /* of the target function */
	__s64 lg_alpha, lg_beta;
	__u64 inv;              /* (lg_alpha - lg_beta) << 20 / k */
	__u64 per_lg;           /* k / (log2 α - log2 β) << 8 */
	__u64 k_per_ln;         /* k / (ln α - ln β) */
	__u64 m;                /* a factor */
	__u64 max_rate;
	__u64 full;             /* the longest delay that maxQD can say */
	__u32 least, unused;    /* segments in flight at least */
};

struct soze_flow {
	__s64 lg;
	__u64 rest, slower; /* slower is a factor */
	__u64 first_d, first_seq, first_out;
	__u64 window, rate; /* what the flow may have in flight, and its pace */
	__u32 mss, joined;
	__u64 initial;
	__s64 kept; /* see soze_keep */
};

/* One acknowledgement. acked_seq and sent_seq count payload bytes since the flow began. */
struct soze_ack {
	__u64 now, rtt, max_qd, acked, inflight, acked_seq, sent_seq;
};

FN __u64 soze_delay(const struct soze_params *p, __s64 lg)
{
	__u64 below = p->lg_alpha - clamp(lg, p->lg_beta, p->lg_alpha);
	return p->p + (below * p->per_lg >> (LG + 8));
}

FN __s64 soze_share(const struct soze_params *p, __u64 d)
{
	d = d > p->p ? min(d - p->p, p->k) : 0;
	return p->lg_alpha - (__s64)(d * p->inv >> 20);
}

/* soze_apply computes a window and a pace from the state; lg_weight is the weight's logarithm. */
FN void soze_apply(struct soze_flow *f, const struct soze_params *p, __s64 lg_weight)
{
	__s64 most = log2(p->max_rate) - lg_weight;
	__u64 rate;
	f->lg = min(f->lg, most);
	rate = exp2(f->lg + lg_weight);
	f->window = sent(rate, f->rest + soze_delay(p, f->lg));
	f->rate = rate + rate / 4;
	if (f->window < (__u64)p->least * f->mss) {
		f->window = (__u64)p->least * f->mss;
		f->rate = rate * (f->slower >> 10) >> (ONE_BITS - 10);
	}
	f->rate = clamp(f->rate, 1, p->max_rate);
}

FN void soze_start(struct soze_flow *f, const struct soze_params *p, __u32 mss, __s64 lg_weight)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->mss = mss;
	f->lg = log2(p->max_rate) - lg_weight;
	f->slower = ONE;
	f->rate = p->max_rate;
	f->window = f->initial = 8 * mss;
}

/* soze_exponent returns m, or less if the queue would otherwise react by more than 1 between two steps. */
FN __u64 soze_exponent(struct soze_flow *f, const struct soze_params *p, __s64 lg_weight)
{
	__u64 rate = max(exp2(f->lg + lg_weight), 1);
	__u64 time = max(f->rest + soze_delay(p, f->lg), p->least * f->mss * NS / rate);
	return min(p->m, (p->k_per_ln << ONE_BITS) / max(time, 1));
}

FN void soze_join(struct soze_flow *f, const struct soze_params *p, const struct soze_ack *a, __u64 rest, __s64 lg_weight)
{
	__u64 out = a->now - a->rtt;
	f->first_d = max(f->first_d, a->max_qd);
	if (!f->first_seq) {
		f->first_seq = a->acked_seq;
		f->first_out = out;
	}
	if (a->acked_seq < f->initial) {
		if (a->acked_seq >= a->sent_seq)
			f->first_seq = 0;
		return;
	}
	f->joined = 1;
	f->rest = rest;
	f->lg = soze_share(p, f->first_d);
	if (a->acked_seq > f->first_seq && out > f->first_out) {
		__s64 seen = log2((a->acked_seq - f->first_seq) * NS / (out - f->first_out)) - lg_weight;
		f->lg = min(f->lg, max(seen, p->lg_beta));
	}
	soze_apply(f, p, lg_weight);
}

/* soze_keep adjusts kept, which the socket may have in flight beyond the window. TCP keeps a part of its window back, until
 * a third of it can leave as one burst or no acknowledgement is near. kept is the mean of that part, so that the mean in
 * flight is the window: otherwise connections with longer bursts would have less than their shares. */
FN void soze_keep(struct soze_flow *f, const struct soze_params *p, const struct soze_ack *a)
{
	__u64 may = f->window + f->kept, out = a->inflight + a->acked, back = 0;
	if (out < may && f->window > (__u64)p->least * f->mss)
		back = min(may - out, f->window / 3);
	f->kept += scale((__s64)back - f->kept, part(a->acked, f->window));
}

FN void soze_ack(struct soze_flow *f, const struct soze_params *p, const struct soze_ack *a, __s64 lg_weight)
{
	__u64 rest = a->rtt > a->max_qd ? a->rtt - a->max_qd : 1, of, full;
	__s64 lg;
	if (a->max_qd >= p->full)
		rest = max(f->rest, 1);
	if (!f->joined) {
		soze_join(f, p, a, rest, lg_weight);
		return;
	}
	if (!a->acked)
		return;
	soze_keep(f, p, a);
	of = part(a->acked, f->window);
	f->rest += scale((__s64)rest - (__s64)f->rest, of);
	lg = f->lg + scale(soze_share(p, a->max_qd) - f->lg, scale(soze_exponent(f, p, lg_weight), of));
	if (lg > f->lg) { /* a flow that leaves most of its allowance unused may not have more */
		full = min(f->window, sent(f->rate, a->rtt));
		if (a->inflight + a->acked + f->mss < full / 2)
			return;
	}
	f->lg = lg;
	f->slower = clamp(((f->rest + p->p + p->k) << 20) / max(f->rest + a->max_qd, 1) << (ONE_BITS - 20), ONE / 4, ONE);
	soze_apply(f, p, lg_weight);
}

/* A lost segment counts as this many echoes of p + k: a queue that overflows loses a few of a hundred, and flows must fit. */
#define LOSS_ECHOES 8

/* soze_loss takes lost bytes. Each counts, so that flows of all weights answer the same rate of losses alike. Once per round
 * trip, as the Go law has it, which hears of gaps only, would take more from flows with more segments per round trip. */
FN void soze_loss(struct soze_flow *f, const struct soze_params *p, __u64 lost, __s64 lg_weight)
{
	if (!f->joined)
		return;
	f->lg += scale(min(p->lg_beta - f->lg, 0), scale(soze_exponent(f, p, lg_weight), part(lost * LOSS_ECHOES, f->window)));
	soze_apply(f, p, lg_weight);
}
