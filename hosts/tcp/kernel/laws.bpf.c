//go:build ignore

/* The laws alone, for the tests that compare them with the Go laws. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "prioplus.h"
#include "soze.h"

char _license[] SEC("license") = "Dual MIT/GPL";

enum event { START, ACK, LOSS, WEIGHT, PROBE_SENT, FILTERED_ACK };

struct soze_step {
	struct soze_params params;
	struct soze_flow flow;
	struct soze_ack ack;
	__s64 lg_weight;
	__u32 event, mss;
};

SEC("syscall")
int soze(struct soze_step *s)
{
	struct soze_flow f = s->flow;
	struct soze_params p = s->params;
	struct soze_ack a = s->ack;
	switch (s->event) {
	case START:
		soze_start(&f, &p, s->mss, s->lg_weight);
		break;
	case ACK:
		soze_ack(&f, &p, &a, s->lg_weight);
		break;
	case LOSS:
		soze_loss(&f, &p, a.acked, s->lg_weight);
		break;
	case WEIGHT:
		soze_apply(&f, &p, s->lg_weight);
		break;
	}
	s->flow = f;
	return 0;
}

struct prio_step {
	struct prio_params params;
	struct prio_channel channel;
	struct prio_flow flow;
	struct prio_ack ack;
	__u32 event, mss;
};

SEC("syscall")
int prioplus(struct prio_step *s)
{
	struct prio_flow f = s->flow;
	struct prio_params p = s->params;
	struct prio_channel c = s->channel;
	struct prio_ack a = s->ack;
	switch (s->event) {
	case START:
		prio_start(&f, &p, &c, &a, s->mss);
		break;
	case FILTERED_ACK:
		prio_filter(&f, &c, &a);
		prio_ack(&f, &p, &c, &a);
		break;
	case ACK:
		prio_ack(&f, &p, &c, &a);
		break;
	case LOSS:
		prio_loss(&f, &p, &c, &a);
		break;
	case PROBE_SENT:
		f.waiting = 1;
		f.probe_at = 0;
		break;
	}
	s->flow = f;
	return 0;
}
