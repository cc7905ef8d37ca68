/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* For every CPU of the architecture: NEON on 64-bit Arm, SSE2 on x86. */
#define KERNELS      field__kernels_base
#define KERNELS_NAME "base"
#include "kernels.inc"
