/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/measure/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "io/container/access.h"
#include "io/container/dataset_io.h"
#include "io/session/models.h"
#include "layout/fragmenter.h"
#include "placement/forecast.h"

/* One write of the request, as the engine would make it. */
typedef struct outlook {
    uint64_t writes;    /* that reach targets: small ones are gathered */
    uint64_t fragments; /* of each */
    uint64_t bytes;     /* of each fragment, about */
} outlook;

static esdm_status
box_of(const esdm_forecast_request *request, esdm__box *ret_box, uint64_t *ret_bytes,
       esdm_error *err)
{
    uint64_t bytes = request->element_bytes;
    if (request->rank > ESDM_MAX_RANK)
        return esdm__error_set(err, ESDM_EINVAL, "%u dimensions are more than %u",
                               (unsigned) request->rank, (unsigned) ESDM_MAX_RANK);
    for (uint32_t i = 0; i < request->rank; i++) {
        if (!esdm__mul_u64(bytes, request->shape[i], &bytes) || bytes > INT64_MAX)
            return esdm__error_set(err, ESDM_EINVAL, "one write has more than 2^63 bytes");
    }
    esdm__box_set(ret_box, request->rank, NULL, request->shape);
    *ret_bytes = bytes;
    return ESDM_OK;
}

static esdm_status
look_out(const esdm_session *session, const esdm_forecast_request *request, outlook *ret_outlook,
         esdm_error *err)
{
    esdm__box box;
    uint64_t bytes = 0;
    esdm__layout layout = {.rank = request->rank,
                           .element_bytes = request->element_bytes,
                           .preferred_bytes = session->fragment_bytes};
    esdm_status status = box_of(request, &box, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__access_wanted(session, request->container, request->path, request->access,
                                     &layout.cut, err);
    if (status != ESDM_OK)
        return status;
    *ret_outlook = (outlook){0};
    if (bytes == 0 || request->writes == 0)
        return ESDM_OK;
    uint64_t gathered = 1;
    if (bytes < ESDM__DIRECT_BYTES && bytes < session->fragment_bytes)
        gathered = session->fragment_bytes / bytes;
    gathered = gathered < request->writes ? gathered : request->writes;
    ret_outlook->writes = (request->writes + gathered - 1) / gathered;
    ret_outlook->fragments = gathered > 1 ? 1 : esdm__cutter_count(&layout, &box);
    ret_outlook->bytes = bytes * gathered / ret_outlook->fragments;
    return ESDM_OK;
}

/* The targets as they would be found with nothing under way. */
static bool
describe_targets(esdm_session *session, const esdm_forecast_request *request,
                 esdm__place_target *targets, esdm__perf *perfs, bool *measured)
{
    const bool *allowed = esdm__site_allowed(session->site, request->container, request->path);
    bool any = esdm__models_write(session, perfs, measured);
    for (size_t i = 0; i < session->ntargets; i++)
        targets[i] = (esdm__place_target){
            .write = any && measured[i] ? &perfs[i] : NULL,
            .cost = session->targets[i].cost,
            .allowed = (allowed == NULL || allowed[i]) && !session->targets[i].retiring,
            .failed = atomic_load(&session->targets[i].full),
        };
    return any;
}

static esdm_status
play(esdm_session *session, const esdm_forecast_request *request, const outlook *o,
     esdm_forecast_visitor visit, void *user, double *ret_seconds, esdm_error *err)
{
    size_t n = session->ntargets;
    esdm__place_target *targets = calloc(n, sizeof *targets);
    esdm__perf *perfs = calloc(n, sizeof *perfs);
    bool *measured = calloc(n, sizeof *measured);
    esdm__forecast_share *shares = calloc(n, sizeof *shares);
    esdm_status status = ESDM_OK;
    if (targets == NULL || perfs == NULL || measured == NULL || shares == NULL)
        status = esdm__error_nomem(err, n * sizeof *targets, "a forecast");
    if (status == ESDM_OK) {
        bool cheap = esdm__site_prefer(session->site, request->container, request->path) ==
                     ESDM__PREFER_CHEAP;
        bool any = describe_targets(session, request, targets, perfs, measured);
        /* Writes that have one fragment each are one after the other; they differ in their turns.
         */
        bool single = o->fragments == 1;
        const esdm__forecast_write write = {
            .count = single ? o->writes : o->fragments,
            .bytes = o->bytes,
            .streams = single ? 1 : session->streams,
            .batch = single ? 1 : ESDM__WRITE_BATCH,
            .copies = esdm__site_copies(session->site, request->container, request->path),
            .prefer = cheap ? ESDM__PREFER_COST : ESDM__PREFER_SPEED};
        double seconds = esdm__forecast(targets, n, &write, shares);
        uint64_t times = single ? 1 : o->writes;
        *ret_seconds = any ? seconds * (double) times : (double) NAN;
        bool more = true;
        for (size_t i = 0; i < n && more; i++) {
            const esdm_forecast_share share = {.target = session->targets[i].name,
                                               .fragments = shares[i].fragments * times,
                                               .bytes = shares[i].bytes * times,
                                               .busy_s = shares[i].busy_s * (double) times};
            more = visit(&share, user);
        }
    }
    free(targets);
    free(perfs);
    free(measured);
    free(shares);
    return status;
}

esdm_status
esdm__io_forecast(esdm_session *session, const esdm_forecast_request *request,
                  esdm_forecast_visitor visit, void *user, double *ret_seconds, esdm_error *err)
{
    outlook o;
    double seconds = 0;
    esdm_status status = look_out(session, request, &o, err);
    if (status != ESDM_OK)
        return status;
    if (o.writes > 0 && o.bytes <= session->site->engine.inline_bytes) {
        const esdm_forecast_share share = {.target = "(inline)",
                                           .fragments = o.writes * o.fragments,
                                           .bytes = o.writes * o.fragments * o.bytes};
        (void) visit(&share, user);
    } else if (o.writes > 0) {
        status = play(session, request, &o, visit, user, &seconds, err);
    }
    if (status == ESDM_OK)
        *ret_seconds = seconds;
    return status;
}
