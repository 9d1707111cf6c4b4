// Package lawtest is a tiny packet-level network for the tests of congestion laws: FIFO links with
// ECN and in-band telemetry, flows over fixed paths with the transport's own sender and receiver,
// probes, congestion notifications, delay noise. Acknowledgements are only delayed. Events run in
// (time, sequence) order and randomness has one seed, so every run is the same. Package sim has the
// full fabric; this network is small enough to be understood together with a law's test.
package lawtest
