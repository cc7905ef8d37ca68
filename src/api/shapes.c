/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Public functions on second shapes. */

#include <stdlib.h>
#include <string.h>

#include "api/catalogue.h"
#include "base/arguments.h"
#include "base/error.h"
#include "esdm/float_env.h"
#include "io/read/second_shape.h"
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "io/session/session.h"
#include "upkeep/shapes.h"

esdm_status
esdm_shapes_update(esdm_session *session, const char *name, const esdm_shapes_options *options,
                   esdm_shapes_result *ret_result, esdm_error *err)
{
    ESDM_FLOAT_ENV_OWN;
    static const esdm_shapes_options none = {0};
    esdm_shapes_result result = {0};
    esdm_container *base = NULL;
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    options = options != NULL ? options : &none;
    if (options->wishes == NULL && options->nwishes > 0)
        return esdm__error_set(err, ESDM_EINVAL, "esdm_shapes_update: NULL argument");
    esdm_status status = options->dry_run ? ESDM_OK : esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status =
            esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &base, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__upkeep_shapes(base, options, &result, err);
    esdm_container_discard(base);
    if (result.commits > 0)
        esdm__session_replaced(session); /* of what was another container's */
    if (ret_result != NULL)
        *ret_result = result;
    return status;
}

esdm_status
esdm_shapes_remove(esdm_session *session, const char *name, uint64_t *ret_bytes, esdm_error *err)
{
    char normal[ESDM_CONTAINER_NAME_MAX + 1];
    char shapes[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_container *second = NULL;
    esdm_meta_container record = {0};
    uint64_t removed = 0;
    esdm_error why = {0};
    ESDM__NEED(err, session);
    ESDM__NEED(err, name);
    esdm_status status = esdm__name_normalise(name, normal, err);
    if (status == ESDM_OK)
        status = esdm__need_writable(session, err);
    if (status == ESDM_OK)
        status = esdm__shapes_name(normal, shapes, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__shapes_open(session, shapes, ESDM_OPEN_READ, &second, &why);
    if (status == ESDM_OK) {
        esdm_container_discard(second);
        status = session->meta->container_find(session->store, shapes, &record, &why);
    }
    if (status == ESDM_OK)
        status = esdm__named_remove(session, shapes, &removed, &why);
    if (status == ESDM_ENOENT)
        return esdm__error_set(err, ESDM_ENOENT, "container '%s' has no second shape", normal);
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = why;
        return status;
    }
    esdm__session_replaced(session);
    if (ret_bytes != NULL)
        *ret_bytes = record.stored_bytes;
    return ESDM_OK;
}

esdm_status
esdm_shapes_visit(const esdm_container *container, esdm_shape_visitor visit, void *user,
                  uint64_t *ret_stored_bytes, esdm_error *err)
{
    ESDM__NEED(err, container);
    ESDM__NEED(err, visit);
    esdm_session *session = container->session;
    char shapes[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_container *second = NULL;
    esdm_meta_container record = {0};
    esdm_error ignored;
    if (ret_stored_bytes != NULL)
        *ret_stored_bytes = 0;
    if (container->provider != NULL || esdm__io_of(container)->record == 0 ||
        esdm__name_is_own(container->name) || esdm__name_is_shapes(container->name, NULL) ||
        esdm__shapes_name(container->name, shapes, &ignored) != ESDM_OK ||
        esdm__shapes_open(session, shapes, ESDM_OPEN_READ, &second, &ignored) != ESDM_OK)
        return ESDM_OK;
    esdm_status status = session->meta->container_find(session->store, second->name, &record, err);
    if (status == ESDM_ENOENT) { /* removed meanwhile */
        esdm_container_discard(second);
        return ESDM_OK;
    }
    const char *of = esdm_container_hint(second, ESDM__HINT_SHAPES_OF);
    bool ours = strcmp(of, esdm__io_of(container)->uuid) == 0;
    bool goes_on = true;
    for (size_t i = 0; i < second->datasets.count && status == ESDM_OK && ours && goes_on; i++) {
        const esdm_dataset *one = second->datasets.items[i];
        uint64_t id = esdm__shapes_number(esdm_dataset_hint(one, ESDM__HINT_SHAPE_OF));
        const esdm_dataset *dataset = esdm__container_dataset(container, (uint32_t) id);
        char *path = dataset != NULL ? esdm__dataset_path(dataset) : NULL;
        const esdm_shape_info info = {
            .variable = path,
            .rank = one->rank,
            .chunk = esdm_dataset_chunk(one),
            .snapshot = esdm__shapes_number(esdm_dataset_hint(one, ESDM__HINT_SHAPE_UNTIL)),
        };
        if (path != NULL && info.chunk != NULL)
            goes_on = visit(&info, user);
        free(path);
    }
    if (status == ESDM_OK && ours && ret_stored_bytes != NULL)
        *ret_stored_bytes = record.stored_bytes;
    esdm_container_discard(second);
    return status;
}
