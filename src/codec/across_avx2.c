/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with this instruction set switched on (cmake/EsdmBuild.cmake): calls need a check. */
#if defined(__x86_64__)
#define TABLE esdm__across_avx2
#include "codec/across_kernels.inc"
#endif
