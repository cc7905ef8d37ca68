/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the fragments of a dataset tell of the accuracy that was kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/visit.h"
#include "io/read/fetch.h"
#include "io/read/read.h"

typedef struct reporter {
    esdm_session *session;
    const esdm__coarse *coarse; /* how the handle reads */
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

/* What is known of numbers of which fewer layers are read: bound and largest error. */
static esdm__blob_accuracy
coarse_accuracy(const esdm__blob_view *view, const esdm__coarse *coarse)
{
    double bound = largest(coarse->share * view->range, coarse->absolute);
    double error = view->errors[view->use - 1];
    return (esdm__blob_accuracy){
        .absolute = bound,
        .relative = (double) INFINITY,
        .conserved = (double) INFINITY,
        .facts = {.largest_error = error, .largest_share = error / bound},
    };
}

/* What became of the numbers of a fragment in a pack, as this handle reads them. */
static esdm_status
add_stored(reporter *r, const esdm__fragment *fragment, esdm_error *err)
{
    esdm__sources sources;
    esdm__blob_view view = {0};
    uint8_t *head = NULL;
    esdm_status status = esdm__sources_of(r->session, fragment->pack, &sources, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0;; i++) {
        status = esdm__fetch_head(r->session, fragment, sources.targets[i], r->coarse, &head, &view,
                                  err);
        if (!esdm__sources_go_on(&sources, i, status))
            break;
    }
    if (status == ESDM_OK && view.use < view.layers) {
        const esdm__blob_accuracy accuracy = coarse_accuracy(&view, r->coarse);
        add_fragment(r->report, &accuracy);
    } else if (status == ESDM_OK && view.lossy) {
        add_fragment(r->report, &view.accuracy);
    }
    free(head);
    return status;
}

static bool
visit(const esdm__fragment *fragment, void *user)
{
    reporter *r = user;
    if (r->map != NULL && (esdm__region_map_touched(r->map, &fragment->box) >> r->region & 1) == 0)
        return true;
    r->report->fragments++;
    if (esdm__fragment_is_raw(fragment))
        return true;
    r->status = add_stored(r, fragment, &r->error);
    return r->status == ESDM_OK;
}

esdm_status
esdm__accuracy_report(esdm_dataset *dataset, const esdm__region_map *map, uint32_t region,
                      esdm_accuracy_report *ret_report, esdm_error *err)
{
    esdm_accuracy_report report = {.absolute = (double) INFINITY, .relative = (double) INFINITY};
    reporter r = {.session = dataset->group->container->session,
                  .coarse = &dataset->stated->coarse,
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
