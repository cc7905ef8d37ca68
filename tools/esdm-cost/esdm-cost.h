/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ESDM_COST_H
#define ESDM_TOOLS_ESDM_COST_H

/** @file What the files of esdm-cost share. */

#include "cost/cost.h"

/* ---- esdm-cost/report.c -----------------------------------------------------------------------
 */

/** Tables and sentences of all cases. */
void cost_print(const cost_centre *centre);
void cost_print_json(const cost_centre *centre);

#endif
