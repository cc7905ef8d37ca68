/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_REGIONS_H
#define ESDM_API_REGIONS_H

/** @file Where the regions of accuracies lie is found out before data are stored. No lock is held.
 */

#include "model/container.h"

/** Of a dataset that is about to be written. Where it fails regions are not known, so that the
 *  strictest of all holds. */
void esdm__regions_look(esdm_dataset *dataset);
/** Of all datasets that a commit is about to store what was gathered of. */
void esdm__regions_look_all(esdm_container *container);

#endif
