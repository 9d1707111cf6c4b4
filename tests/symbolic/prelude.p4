// What headgate_tna.p4 reads and writes of the Tofino native architecture, with the names and widths of
// the public tofino1_base.p4 and tofino2_base.p4 (p4lang/p4c, backends/tofino/bf-p4c/p4include). What it
// does not name is left out or padding. Externs are in extern.go.

#if __TARGET_TOFINO__ == 2
typedef bit<7> QueueId_t;
typedef bit<8> MirrorId_t;
typedef bit<4> MirrorType_t;
const bit<32> PORT_METADATA_SIZE = 192;
#else
typedef bit<5> QueueId_t;
typedef bit<10> MirrorId_t;
typedef bit<3> MirrorType_t;
const bit<32> PORT_METADATA_SIZE = 64;
#endif
typedef bit<3> DigestType_t;
const bit<16> PARSER_ERROR_OK = 0;

extern packet_in;
extern packet_out;
extern Register;
extern RegisterAction;
extern MathUnit;
extern Hash;
extern Random;
extern Counter;
extern DirectCounter;
extern Lpf;
extern Checksum;
extern Digest;
extern Mirror;
extern ActionProfile;
extern ActionSelector;

header ingress_intrinsic_metadata_t {
    bit<7>  padding_0;
    bit<9>  ingress_port;
    bit<48> ingress_mac_tstamp;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp; // ns
    bit<16> parser_err;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl;
    DigestType_t digest_type;
}

struct ingress_intrinsic_metadata_for_tm_t {
    bit<9>    ucast_egress_port;
    bit<3>    ingress_cos;
    QueueId_t qid;
}

header egress_intrinsic_metadata_t {
    bit<7>  padding_0;
    bit<9>  egress_port;
    bit<5>  padding_1;
    bit<19> enq_qdepth; // cells, when the packet was enqueued
    bit<5>  padding_2;
    bit<19> deq_qdepth; // and when it was dequeued
#if __TARGET_TOFINO__ == 2
    bit<32> deq_timedelta; // ns
#else
    bit<14> padding_3;
    bit<18> deq_timedelta;
#endif
    bit<16> pkt_length;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp; // ns
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl;
    MirrorType_t mirror_type;
    bit<1>       mirror_io_select;
}

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> update_delay_on_tx;
}
