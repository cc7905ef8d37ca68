/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the fragments of a dataset tell of the accuracy that was kept. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "io/container/visit.h"
#include "io/read/fetch.h"
#include "io/read/read.h"

typedef struct reporter {
    esdm_session *session;
    esdm_accuracy_report *report;
    const esdm__region_map *map; /* NULL: all fragments count */
    uint32_t region;             /* else those that touch this one */
    esdm_status status;
    esdm_error error;
} reporter;

static double
largest(double a, double b)
{
    return a > b ? a : b;
}

static void
add_fragment(esdm_accuracy_report *report, const esdm__blob_accuracy *a)
{
    bool first = report->lossy_fragments == 0;
    report->lossy_fragments++;
    report->changed_fragments += a->facts.largest_error > 0;
    report->points += a->facts.points;
    report->exact_points += a->facts.exact_points;
    report->absolute = first ? a->absolute : largest(report->absolute, a->absolute);
    report->relative = first ? a->relative : largest(report->relative, a->relative);
    report->finest = largest(report->finest, a->finest);
    report->largest_error = largest(report->largest_error, a->facts.largest_error);
    report->largest_share = largest(report->largest_share, a->facts.largest_share);
    report->sum_change += a->facts.sum_change;
    report->blocks_again += a->blocks_again;
    report->blocks_lossless += a->blocks_lossless;
}

static bool
visit(const esdm__fragment *fragment, void *user)
{
    reporter *r = user;
    esdm__blob_accuracy accuracy;
    bool lossy = false;
    if (r->map != NULL && (esdm__region_map_touched(r->map, &fragment->box) >> r->region & 1) == 0)
        return true;
    r->report->fragments++;
    if (esdm__fragment_is_raw(fragment))
        return true;
    r->status = esdm__fetch_accuracy(r->session, fragment, &lossy, &accuracy, &r->error);
    if (r->status == ESDM_OK && lossy)
        add_fragment(r->report, &accuracy);
    return r->status == ESDM_OK;
}

esdm_status
esdm__accuracy_report(esdm_dataset *dataset, const esdm__region_map *map, uint32_t region,
                      esdm_accuracy_report *ret_report, esdm_error *err)
{
    esdm_accuracy_report report = {.absolute = (double) INFINITY, .relative = (double) INFINITY};
    reporter r = {.session = dataset->group->container->session,
                  .report = &report,
                  .map = map,
                  .region = region};
    esdm_status status = esdm__io_visit_fragments(dataset, visit, &r, err);
    if (status != ESDM_OK)
        return status;
    if (r.status != ESDM_OK) {
        if (err != NULL)
            *err = r.error;
        return esdm__dataset_prefix(dataset, r.status, err);
    }
    if (report.points > 0)
        report.mean_change = report.sum_change / (double) report.points;
    *ret_report = report;
    return ESDM_OK;
}
