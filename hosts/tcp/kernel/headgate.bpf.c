//go:build ignore

/* Söze and PrioPlus for the kernel's TCP: two congestion controls, and a sockops program that chooses
 * one per connection and carries maxQD in a TCP option. User space writes classes, orders and params;
 * the kernel writes flows. The licence is one that the kernel accepts for the helpers called here. */
#include "kernel.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "prioplus.h"
#include "soze.h"

char _license[] SEC("license") = "Dual MIT/GPL";

enum law { KERNELS, SOZE, PRIOPLUS };

/* The settings of all connections, written by user space. */
struct params {
	struct soze_params soze;
	struct prio_params prio;
	__u64 unit;         /* of maxQD, ns */
	__u64 netns;        /* cookie of the only network namespace that is governed, 0 for all */
	__u8 name[3][16];   /* of the congestion controls, by law */
};

/* The settings, by socket mark or cgroup, of connections without an order from the controller. */
struct class {
	__u32 law, priority;
	__s64 lg_weight;
	struct prio_channel channel;
};

struct flow_key {
	__u8 src[16], dst[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u16 src_port, dst_port;
};

/* The settings of one connection, written by user space. */
struct order {
	__s64 lg_weight;
	struct prio_channel channel;
	__u32 held, unused;
};

/* The kernel's report on one connection. */
struct flow {
	__u64 started, acked, rate, rtt, least_rtt, max_qd;
	__s64 lg_weight;
	struct prio_channel channel;
	__u32 retransmits, class, law, crowded, held, unused;
};

/* The state of one socket. */
struct conn {
	struct flow_key key;
	struct order order;
	struct soze_flow soze;
	struct prio_flow prio;
	__u64 looked, acked, rtt, stay, least_rtt, window_acc, stop_seq; /* stay: how long acknowledged segments were in flight, their mean */
	__u32 class, law, srtt, losses; /* losses: segments */
	__u32 seen, segments; /* the sum of maxQD over the data segments since the last echo, and their number */
	__u16 mean, echo;     /* the mean echoed last, and what the peer echoed */
	__u8 agreed, listed, lost;
};

struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int); __type(value, struct conn); } conns SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct params); } parameters SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 64); __type(key, __u32); __type(value, struct class); } classes SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, __u32); __type(value, __u32); } marks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(map_flags, BPF_F_NO_PREALLOC); __uint(max_entries, 65536); __type(key, struct flow_key); __type(value, struct order); } orders SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(map_flags, BPF_F_NO_PREALLOC); __uint(max_entries, 65536); __type(key, struct flow_key); __type(value, struct flow); } flows SEC(".maps");

/* The class of the sockets in a copy's cgroup: the program is loaded once per cgroup. */
volatile const __u32 cgroup_class;

FN struct params *the_params(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&parameters, &zero);
}

/* The option's wire form. Package int/maxqd explains the fields. */
#define OPTION_KIND 254
#define OPTION_EXID 0x4847
struct option {
	__u8 kind, len;
	__be16 exid, max_qd, echo;
};
#define OPTION_SYN_LEN 4

FN int find_option(struct bpf_sock_ops *ctx, struct option *o, __u64 flags)
{
	__builtin_memset(o, 0, sizeof(*o));
	o->kind = OPTION_KIND;
	o->len = OPTION_SYN_LEN;
	o->exid = bpf_htons(OPTION_EXID);
	return bpf_load_hdr_opt(ctx, o, sizeof(*o), flags);
}

FN int set_flags(struct bpf_sock_ops *ctx, int set, int clear)
{
	return bpf_sock_ops_cb_flags_set(ctx, (ctx->bpf_sock_ops_cb_flags | set) & ~clear);
}

#define OPTION_FLAGS (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG)

FN void fill_key(struct bpf_sock_ops *ctx, struct flow_key *k)
{
	__u32 *src = (void *)k->src, *dst = (void *)k->dst, src4 = ctx->local_ip4, dst4 = ctx->remote_ip4;
	src[0] = ctx->local_ip6[0]; src[1] = ctx->local_ip6[1]; src[2] = ctx->local_ip6[2]; src[3] = ctx->local_ip6[3];
	dst[0] = ctx->remote_ip6[0]; dst[1] = ctx->remote_ip6[1]; dst[2] = ctx->remote_ip6[2]; dst[3] = ctx->remote_ip6[3];
	if (ctx->family == AF_INET) {
		src[0] = src[1] = dst[0] = dst[1] = 0;
		src[2] = dst[2] = bpf_htonl(0xffff);
		src[3] = src4;
		dst[3] = dst4;
	}
	k->src_port = ctx->local_port;
	k->dst_port = bpf_ntohl(ctx->remote_port);
}

/* establish chooses the connection's law: Söze if both ends understand the option, PrioPlus otherwise. */
FN void establish(struct bpf_sock_ops *ctx, struct params *p, struct conn *c)
{
	struct bpf_sock *sk = ctx->sk;
	__u32 mark = sk ? sk->mark : 0, index = cgroup_class, *marked = bpf_map_lookup_elem(&marks, &mark);
	struct class *k;
	if (c->law)
		return; /* a copy of the program in a cgroup further down has been first */
	if (mark && marked)
		index = *marked;
	k = bpf_map_lookup_elem(&classes, &index);
	if (!k || k->law == KERNELS || (k->law == SOZE && !c->agreed)) {
		set_flags(ctx, 0, c->agreed ? 0 : OPTION_FLAGS);
		return;
	}
	c->class = index;
	c->law = k->law == PRIOPLUS ? PRIOPLUS : SOZE; /* bounded, for the verifier */
	c->order.lg_weight = k->lg_weight;
	c->order.channel = k->channel;
	fill_key(ctx, &c->key);
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, p->name[c->law], sizeof(p->name[0])))
		c->law = KERNELS;
	else
		set_flags(ctx, BPF_SOCK_OPS_STATE_CB_FLAG, 0);
}

FN void parse_option(struct bpf_sock_ops *ctx, struct conn *c)
{
	struct option o;
	if (find_option(ctx, &o, 0) < (int)sizeof(o) || o.len != sizeof(o))
		return;
	c->echo = bpf_ntohs(o.echo);
	if (ctx->skb_len > (__u64)ctx->skb_data_end - (__u64)ctx->skb_data) { /* it bears data */
		c->seen += bpf_ntohs(o.max_qd);
		c->segments++;
	}
}

FN void write_option(struct bpf_sock_ops *ctx, struct conn *c)
{
	struct option o = {OPTION_KIND, sizeof(o), bpf_htons(OPTION_EXID)};
	if (ctx->skb_tcp_flags & TCPHDR_SYN) {
		o.len = OPTION_SYN_LEN;
		bpf_store_hdr_opt(ctx, &o, OPTION_SYN_LEN, 0);
		return;
	}
	if (!c)
		return;
	if (c->segments)
		c->mean = c->seen / c->segments;
	c->seen = c->segments = 0;
	o.echo = bpf_htons(c->mean);
	bpf_store_hdr_opt(ctx, &o, sizeof(o), 0);
}

SEC("sockops")
int headgate(struct bpf_sock_ops *ctx)
{
	struct params *p = the_params();
	struct bpf_sock *sk = ctx->sk;
	struct conn *c = NULL;
	struct option o;
	if (!p)
		return 1;
	if (sk)
		c = bpf_sk_storage_get(&conns, sk, 0, 0);
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (!p->netns || p->netns == bpf_get_netns_cookie(ctx))
			set_flags(ctx, OPTION_FLAGS, 0);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (!(ctx->skb_tcp_flags & TCPHDR_SYN)) {
			if (c && c->agreed)
				bpf_reserve_hdr_opt(ctx, sizeof(o), 0);
		} else if (ctx->is_fullsock || find_option(ctx, &o, BPF_LOAD_HDR_OPT_TCP_SYN) > 0) {
			bpf_reserve_hdr_opt(ctx, OPTION_SYN_LEN, 0);
		}
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ctx, c);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (!sk || (p->netns && p->netns != bpf_get_netns_cookie(ctx)))
			break;
		if (!c)
			c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c)
			break;
		/* The SYN-ACK has the short form; the segment that answers it has the long form. */
		if (find_option(ctx, &o, 0) > 0)
			c->agreed = 1;
		establish(ctx, p, c);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		if (c && c->agreed)
			parse_option(ctx, c);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (c && c->listed && ctx->args[1] == TCP_CLOSE) {
			bpf_map_delete_elem(&flows, &c->key);
			bpf_map_delete_elem(&orders, &c->key);
			c->listed = 0;
		}
		break;
	}
	return 1;
}

FN __u64 inflight(const struct tcp_sock *tp)
{
	return (__u64)(tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out) * tp->mss_cache;
}

/* exchange reads the connection's order and writes its report, at most a thousand times a second. It returns
 * whether the weight has changed. */
FN int exchange(struct conn *c, const struct tcp_sock *tp, __u64 now, __u64 max_qd, __u64 rate, int crowded)
{
	struct flow r = {.started = now}, *f;
	struct order *o;
	__s64 was = c->order.lg_weight;
	if (now - c->looked < 1000000)
		return 0;
	c->looked = now;
	o = bpf_map_lookup_elem(&orders, &c->key);
	if (o)
		c->order = *o;
	f = bpf_map_lookup_elem(&flows, &c->key);
	if (!f) {
		bpf_map_update_elem(&flows, &c->key, &r, BPF_ANY);
		f = bpf_map_lookup_elem(&flows, &c->key);
		if (!f)
			return c->order.lg_weight != was;
		c->listed = 1;
	}
	f->acked = c->acked;
	f->rate = rate;
	f->rtt = c->rtt;
	f->least_rtt = c->least_rtt;
	f->max_qd = max_qd;
	f->lg_weight = c->order.lg_weight;
	f->channel = c->order.channel;
	f->retransmits = tp->total_retrans;
	f->class = c->class;
	f->law = c->law;
	f->crowded = crowded;
	f->held = c->order.held;
	return c->order.lg_weight != was;
}

/* A single segment would wait for the receiver's delayed acknowledgement. */
#define LEAST_WINDOW 2

/* allow gives the socket a window in bytes and a pace. The window in packets alternates between its
 * neighbours so that the mean is right. */
FN void allow(struct sock *sk, struct conn *c, __u64 window, __u64 rate)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u64 mss = max(tp->mss_cache, 1), whole;
	c->window_acc += window;
	whole = c->window_acc / mss;
	c->window_acc -= whole * mss;
	if (c->window_acc > mss)
		c->window_acc = 0;
	tp->snd_cwnd = clamp(whole, LEAST_WINDOW, 1 << 20);
	sk->sk_pacing_rate = rate;
}

SEC("struct_ops")
void BPF_PROG(soze_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct params *p = the_params();
	if (!c || !p)
		return;
	soze_start(&c->soze, &p->soze, tp->mss_cache, c->order.lg_weight);
	c->srtt = tp->srtt_us;
	sk->sk_pacing_status = 1; /* SK_PACING_NEEDED: TCP paces by itself */
	allow(sk, c, c->soze.window, c->soze.rate);
}

SEC("struct_ops")
void BPF_PROG(law_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	__u32 oldest;
	if (!c)
		return;
	/* The sample is the newest segment's round trip. The oldest segment's, which includes the wait for a delayed
	 * acknowledgement, is only in the smoothed round trip: the kernel has just replaced an eighth of that by it. */
	oldest = tp->srtt_us - c->srtt + (c->srtt >> 3);
	c->srtt = tp->srtt_us;
	if (sample->rtt_us <= 0)
		return;
	c->rtt = sample->rtt_us * 1000ull;
	c->stay = (sample->rtt_us + max(oldest, (__u32)sample->rtt_us)) * 500ull;
	if (!c->least_rtt || c->rtt < c->least_rtt)
		c->least_rtt = c->rtt;
}

SEC("struct_ops")
void BPF_PROG(prio_set_state, struct sock *sk, __u8 state)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (c && state >= TCP_CA_Recovery)
		c->lost = 1;
}

#define HELD_RATE 15000 /* B/s, some ten packets a second: the least that hears of its release */

SEC("struct_ops")
void BPF_PROG(soze_cong_control, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct params *p = the_params();
	struct soze_ack a;
	if (!c || !p || !c->rtt)
		return;
	a.now = bpf_ktime_get_ns();
	a.rtt = c->stay;
	a.max_qd = c->echo * p->unit;
	a.acked_seq = tp->bytes_acked;
	a.acked = a.acked_seq - c->acked;
	c->acked = a.acked_seq;
	a.sent_seq = a.acked_seq + (tp->snd_nxt - tp->snd_una);
	a.inflight = inflight(tp);
	c->soze.mss = tp->mss_cache;
	if (exchange(c, tp, a.now, a.max_qd, c->soze.rate, c->soze.slower < ONE) && c->soze.joined)
		soze_apply(&c->soze, &p->soze, c->order.lg_weight);
	soze_ack(&c->soze, &p->soze, &a, c->order.lg_weight);
	if (tp->lost != c->losses)
		soze_loss(&c->soze, &p->soze, (__u64)(tp->lost - c->losses) * tp->mss_cache, c->order.lg_weight);
	c->losses = tp->lost;
	if (c->order.held)
		allow(sk, c, 0, HELD_RATE);
	else
		allow(sk, c, c->soze.window + c->soze.kept, c->soze.rate);
}

/* A connection without data has no packets to probe with. While PrioPlus stops it, two segments are in flight
 * at a time, because a single one would wait for the receiver's delayed acknowledgement. Their round trip is
 * the probe's answer, and the pace holds the next two back until it is time to probe again. */
#define PROBE_SEGMENTS LEAST_WINDOW
/* A pace that does not bind. At the line's rate TCP would wait for the pace's time, collect a third of the window
 * meanwhile and send it as one burst, whose last segments see a queue of their own. */
#define FREE_PACE 8

FN void prio_allow(struct sock *sk, struct conn *c, const struct prio_params *p, __u64 now)
{
	struct prio_flow *f = &c->prio;
	__u64 mss = f->mss, bytes = PROBE_SEGMENTS * mss, window = f->window >> WINDOW_BITS, gap;
	if (c->order.held) {
		allow(sk, c, 0, HELD_RATE);
	} else if (f->stopped) {
		gap = f->rtt + (f->probe_at > now ? f->probe_at - now : 0);
		allow(sk, c, 0, max(bytes * NS / max(gap, 1), 1));
	} else {
		allow(sk, c, window, window < bytes ? max(window * NS / max(f->rtt, 1), 1) : FREE_PACE * p->line_rate);
	}
}

SEC("struct_ops")
void BPF_PROG(prio_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct params *p = the_params();
	struct prio_ack a = {};
	if (!c || !p)
		return;
	a.now = bpf_ktime_get_ns();
	a.random = (__u64)bpf_get_prandom_u32() << 32;
	prio_start(&c->prio, &p->prio, &c->order.channel, &a, tp->mss_cache);
	sk->sk_pacing_status = 1;
	prio_allow(sk, c, &p->prio, a.now);
}

SEC("struct_ops")
void BPF_PROG(prio_cong_control, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct params *p = the_params();
	struct prio_ack a = {};
	int was;
	if (!c || !p || !c->rtt)
		return;
	a.now = bpf_ktime_get_ns();
	a.rtt = c->rtt;
	a.random = (__u64)bpf_get_prandom_u32() << 32;
	a.acked_seq = tp->bytes_acked;
	a.acked = a.acked_seq - c->acked;
	c->acked = a.acked_seq;
	a.sent_seq = a.acked_seq + (tp->snd_nxt - tp->snd_una);
	a.inflight = inflight(tp);
	c->prio.mss = tp->mss_cache;
	exchange(c, tp, a.now, 0, c->prio.stopped ? 0 : (c->prio.window >> WINDOW_BITS) * NS / max(a.rtt, 1), 0);
	was = c->prio.stopped;
	a.probe = was && a.acked_seq > c->stop_seq;
	prio_filter(&c->prio, &c->order.channel, &a);
	c->prio.rtt = a.rtt;
	prio_ack(&c->prio, &p->prio, &c->order.channel, &a);
	if (c->lost) {
		prio_loss(&c->prio, &p->prio, &c->order.channel, &a);
		c->lost = 0;
	}
	if (c->prio.stopped && (!was || a.probe))
		c->stop_seq = a.sent_seq;
	prio_allow(sk, c, &p->prio, a.now);
}

SEC("struct_ops")
__u32 BPF_PROG(prio_min_tso_segs, struct sock *sk) { return PROBE_SEGMENTS; }

SEC("struct_ops")
__u32 BPF_PROG(law_ssthresh, struct sock *sk) { return 0x7fffffff; }

SEC("struct_ops")
__u32 BPF_PROG(law_undo_cwnd, struct sock *sk) { return ((struct tcp_sock *)sk)->snd_cwnd; }

SEC("struct_ops")
__u32 BPF_PROG(soze_min_tso_segs, struct sock *sk) { return 1; }

SEC(".struct_ops.link")
struct tcp_congestion_ops soze = {
	.init = (void *)soze_init,
	.cong_control = (void *)soze_cong_control,
	.pkts_acked = (void *)law_pkts_acked,
	.ssthresh = (void *)law_ssthresh,
	.undo_cwnd = (void *)law_undo_cwnd,
	.min_tso_segs = (void *)soze_min_tso_segs,
	.name = "soze",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops prioplus = {
	.init = (void *)prio_init,
	.cong_control = (void *)prio_cong_control,
	.pkts_acked = (void *)law_pkts_acked,
	.set_state = (void *)prio_set_state,
	.ssthresh = (void *)law_ssthresh,
	.undo_cwnd = (void *)law_undo_cwnd,
	.min_tso_segs = (void *)prio_min_tso_segs,
	.name = "prioplus",
};
