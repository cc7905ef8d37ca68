/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with this instruction set switched on (cmake/EsdmBuild.cmake): calls need a check. */
#if defined(__x86_64__)
#define LOOKS esdm__looks_avx2
#include "codec/verify_kernels.inc"
#endif
