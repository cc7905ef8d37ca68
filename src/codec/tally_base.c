/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The loops of statistics for any processor. */

#define TALLIES esdm__tallies_base
#include "codec/tally_kernels.inc"
