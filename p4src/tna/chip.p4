// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the chip, Tofino 1 or Tofino 2; included before everything else.

#ifndef HEADGATE_TNA_CHIP_P4
#define HEADGATE_TNA_CHIP_P4

// The port to the switch's own CPU. On another board than the usual one the compiler is
// told (-DCPU_PORT=192).
#ifndef CPU_PORT
#if __TARGET_TOFINO__ == 2
#define CPU_PORT 9w0
#else
#define CPU_PORT 9w320
#endif
#endif

#endif
