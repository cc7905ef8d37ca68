/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The loops of codec/across.h for any processor. */

#define TABLE esdm__across_base
#include "codec/across_kernels.inc"
