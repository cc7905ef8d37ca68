/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_MEASURE_CALIBRATE_H
#define ESDM_IO_MEASURE_CALIBRATE_H

/** @file Measuring the targets of a site through the plug-in interface. */

#include "esdm/placement.h"
#include "io/session/session.h"
#include "placement/site_model.h"

/** Sizes, concurrencies and repetitions of a calibration, and what it may take. */
typedef struct esdm__calibration {
    uint64_t sizes[12];
    size_t nsizes;
    uint32_t concurrencies[12];
    size_t nconcurrencies;
    unsigned repetitions;
    uint64_t bytes_max; /* to write on a target */
    double seconds_max; /* for a target */
    uint64_t memory_bytes;
} esdm__calibration;

/** What the options mean for a session. */
esdm__calibration esdm__calibration_of(const esdm_session *session,
                                       const esdm_calibrate_options *how);
/** Requests of this size that one thread makes one after the other. */
unsigned esdm__calibration_requests(uint64_t bytes);

/** How far a calibration is. */
typedef struct esdm__calibration_watch {
    const esdm_calibrate_options *how;
    size_t target; /* number of the target */
    size_t targets;
} esdm__calibration_watch;

/** Measures one target, both directions, and fits their models. What it writes it removes.
 *  @param ret_model `name` is untouched; samples are owned by the caller, also after a failure. */
esdm_status esdm__calibrate_target(esdm_session *session, esdm__target *target,
                                   const esdm__calibration *c, const esdm__calibration_watch *watch,
                                   esdm__target_model *ret_model, esdm_error *err);

/** What esdm_site_calibrate() does. */
esdm_status esdm__calibrate(const esdm_site_options *options, const esdm_calibrate_options *how,
                            esdm_error *err);

#endif
