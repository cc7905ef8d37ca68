/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Views of a site as its metadata store keeps them. */

#include <stdlib.h>

#include "base/error.h"
#include "site/site.h"

void
esdm__site_view_describe(const esdm__site_view *view, esdm__view_shape *shape)
{
    for (size_t i = 0; i < view->nlevels; i++) {
        shape->attributes[i] = view->levels[i].attribute;
        shape->values[i] = view->levels[i].value;
    }
    shape->view = (esdm_meta_view){.attributes = shape->attributes,
                                   .values = shape->values,
                                   .nlevels = view->nlevels,
                                   .without = ESDM__SAVED_ATTRIBUTE};
}

esdm_status
esdm__site_views_keep(const esdm__site *site, const esdm_meta_plugin *meta, void *store, bool anew,
                      esdm_error *err)
{
    if (meta->view_set == NULL)
        return ESDM_OK;
    esdm__view_shape *shapes = calloc(site->nviews + 1, sizeof *shapes);
    esdm_meta_view *views = calloc(site->nviews + 1, sizeof *views);
    esdm_status status = shapes != NULL && views != NULL
                             ? ESDM_OK
                             : esdm__error_nomem(err, site->nviews * sizeof *shapes, "views");
    for (size_t i = 0; i < site->nviews && status == ESDM_OK; i++) {
        esdm__site_view_describe(&site->views[i], &shapes[i]);
        views[i] = shapes[i].view;
    }
    if (status == ESDM_OK)
        status = meta->view_set(store, views, site->nviews, anew, err);
    free(shapes);
    free(views);
    return status;
}
