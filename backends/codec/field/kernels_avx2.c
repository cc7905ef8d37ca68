/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with this instruction set switched on (cmake/EsdmBuild.cmake): calls need a check. */
#if defined(__x86_64__)
#define KERNELS      field__kernels_avx2
#define KERNELS_NAME "avx2"
#include "kernels.inc"
#endif
