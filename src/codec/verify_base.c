/* SPDX-License-Identifier: LGPL-3.0-or-later */
#define LOOKS esdm__looks_base
#include "codec/verify_kernels.inc"
