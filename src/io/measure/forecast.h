/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_MEASURE_FORECAST_H
#define ESDM_IO_MEASURE_FORECAST_H

/** @file What would become of writes that nobody makes yet. */

#include "esdm/placement.h"

/** What esdm_forecast_write() does. */
esdm_status esdm__io_forecast(esdm_session *session, const esdm_forecast_request *request,
                              esdm_forecast_visitor visit, void *user, double *ret_seconds,
                              esdm_error *err);

#endif
