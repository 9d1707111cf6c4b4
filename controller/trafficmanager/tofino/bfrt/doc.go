// Package bfrt is a client of BF Runtime, the interface of the driver of Tofino chips, for
// tables that P4Runtime does not know: the traffic manager's and filters. Rows are built
// and read by names; a Schema says which names there are and what their values may be, and
// nothing that it does not allow is sent.
//
// Facts about the interface are from the public driver (p4lang/open-p4studio,
// pkgsrc/bf-drivers/src/bf_rt).
package bfrt
