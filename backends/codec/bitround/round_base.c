/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The loops of rounding for any processor. */

#define ROUNDER bitround__base
#include "round.inc"
