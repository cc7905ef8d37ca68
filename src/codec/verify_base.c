/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The loops of verification for any processor. */

#define LOOKS esdm__looks_base
#include "codec/verify_kernels.inc"
