// Package bmv2 sets the queues of BMv2's simple_switch and simple_switch_grpc through their
// Thrift service: P4Runtime has no messages for the rate and depth of a queue. Without a rate
// no queue of BMv2 ever builds.
//
// # What a queue gets
//
//	rate   the port's, in packets per second: rate / (8 · packet_size), rounded down
//	depth  the port's largest queue_limit in packets of 60 B, and 64 more
//
// BMv2 counts packets, whatever their length. A queue runs at the port's rate while its packets
// have packet_size, the length of a full frame from the Ethernet header on; shorter ones leave
// it slower than the link would carry them: a link's acknowledgements for the data of two full
// links wait in their queue.
//
// The depth only keeps BMv2 from dropping by itself: what it drops never reaches egress, where
// the program releases the bytes that it admitted (p4src/v1model/accounting.p4). The program
// holds queue_limit and the policies of package headroom in bytes, and so the depth is what they
// let in of the shortest frames, with room for those that pass without admission.
//
// # What BMv2 cannot do
//
//   - A rate of the port: each priority queue is paced by itself, and a port whose queues are
//     all busy sends the sum. Priority decides which of the packets that are due goes first.
//   - Bytes, per packet or per queue.
//   - Pausing a queue: a rate of 0 is no limit, and PAUSE frames that arrive are ignored.
//   - Reading a setting back. A Driver remembers what it set over a connection; the service's
//     end ends the connection and with it all that is known. What somebody else sets meanwhile
//     shows in no plan, and is overwritten at the next comparison (controller.resync_interval).
//   - Refusing a value: BMv2 answers every call with 0.
//   - Setting the number of priority queues: --priority-queues says it when BMv2 starts.
package bmv2
