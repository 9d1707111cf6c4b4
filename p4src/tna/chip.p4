// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the chip, Tofino 1 or Tofino 2. The other files need them, so this file comes first.

#ifndef HEADGATE_TNA_CHIP_P4
#define HEADGATE_TNA_CHIP_P4

// The port of the switch's CPU. A board with another port defines it for the compiler
// (-DCPU_PORT=192).
#ifndef CPU_PORT
#if __TARGET_TOFINO__ == 2
#define CPU_PORT 9w0
#else
#define CPU_PORT 9w320
#endif
#endif

// Tofino 1's ingress has no stages left for the gateway's answers.
#if __TARGET_TOFINO__ == 2
#define PIPELINE_IS_GATEWAY
#endif

#endif
