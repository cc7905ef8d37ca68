/* SPDX-License-Identifier: LGPL-3.0-or-later */
#define TALLIES esdm__tallies_base
#include "codec/tally_kernels.inc"
