/* The fields of kernel types that the programs read or write. Loading relocates their offsets
 * (CO-RE), so that one object suits kernels with different layouts. */
#pragma once
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_ANY = 0, BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_LOAD_HDR_OPT_TCP_SYN = 1 };
enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
	BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,
};
enum {
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG = 1 << 5,
	BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 1 << 6,
};

enum { AF_INET = 2, SOL_TCP = 6, TCP_CONGESTION = 13, TCP_CLOSE = 7, TCP_CA_Recovery = 3, TCPHDR_SYN = 2 };

/* Part of the user-space interface, so never relocated: the verifier translates its fields. */
struct bpf_sock {
	__u32 bound_dev_if, family, type, protocol, mark, priority;
};
struct bpf_sock_ops {
	__u32 op, args[4], family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port;
	__u32 is_fullsock, snd_cwnd, srtt_us, bpf_sock_ops_cb_flags, state, rtt_min, snd_ssthresh, rcv_nxt;
	__u32 snd_nxt, snd_una, mss_cache, ecn_flags, rate_delivered, rate_interval_us, packets_out, retrans_out;
	__u32 total_retrans, segs_in, data_segs_in, segs_out, data_segs_out, lost_out, sacked_out, sk_txhash;
	__u64 bytes_received, bytes_acked;
	union { struct bpf_sock *sk; __u64 : 64; };
	union { void *skb_data; __u64 : 64; };
	union { void *skb_data_end; __u64 : 64; };
	__u32 skb_len, skb_tcp_flags;
	__u64 skb_hwtstamp;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	__u32 sk_pacing_status, sk_mark;
	unsigned long sk_pacing_rate;
};
struct inet_connection_sock { struct sock __unused; };
struct tcp_sock {
	__u32 mss_cache, snd_cwnd, packets_out, sacked_out, lost_out, retrans_out, snd_nxt, snd_una, total_retrans, srtt_us, lost;
	__u64 bytes_acked, tcp_mstamp;
};
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
};
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop
