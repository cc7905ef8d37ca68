/* SPDX-License-Identifier: LGPL-3.0-or-later */
#define ROUNDER bitround__base
#include "round.inc"
