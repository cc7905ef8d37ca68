/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "esdm/placement.h"
#include "io/container/behind.h"
#include "io/session/readers.h"
#include "io/session/session.h"

static const struct {
    const char *text;
    esdm__cut cut;
} patterns[] = {{"maps", ESDM__CUT_CONTIGUOUS},
                {"time-series", ESDM__CUT_SERIES},
                {"both", ESDM__CUT_EQUALIZED}};

/* The text of the attribute, without a NUL at its end. NULL: it is none. */
static const char *
text_of(const esdm_attribute *attribute, size_t *ret_bytes)
{
    const char *text = attribute->values;
    if (attribute->type == ESDM_TYPE_STRING && attribute->count == 1)
        text = *(const char *const *) attribute->values;
    else if (attribute->type != ESDM_TYPE_CHAR || attribute->count == 0)
        return NULL;
    if (text == NULL)
        return NULL;
    *ret_bytes =
        attribute->type == ESDM_TYPE_CHAR ? strnlen(text, (size_t) attribute->count) : strlen(text);
    return text;
}

static esdm_status
cut_of_text(const char *text, size_t bytes, esdm__cut *ret_cut, esdm_error *err)
{
    for (size_t i = 0; text != NULL && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strlen(patterns[i].text) == bytes && memcmp(patterns[i].text, text, bytes) == 0) {
            *ret_cut = patterns[i].cut;
            return ESDM_OK;
        }
    }
    return esdm__error_set(err, ESDM_EINVAL,
                           "the attribute \"" ESDM_ACCESS_ATTRIBUTE
                           "\" is \"%.*s\"; it can be \"maps\", \"time-series\" or \"both\"",
                           text != NULL ? (int) bytes : 0, text != NULL ? text : "");
}

esdm_status
esdm__access_wanted(const esdm_session *session, const char *container, const char *path,
                    const char *text, esdm__cut *ret_cut, esdm_error *err)
{
    static const esdm__cut cuts[] = {[ESDM__ACCESS_UNSTATED] = ESDM__CUT_CONTIGUOUS,
                                     [ESDM__ACCESS_MAPS] = ESDM__CUT_CONTIGUOUS,
                                     [ESDM__ACCESS_SERIES] = ESDM__CUT_SERIES,
                                     [ESDM__ACCESS_BOTH] = ESDM__CUT_EQUALIZED};
    if (text != NULL)
        return cut_of_text(text, strlen(text), ret_cut, err);
    *ret_cut = cuts[esdm__site_access(session->site, container, path)];
    return ESDM_OK;
}

esdm_status
esdm__access_of(const esdm_dataset *dataset, esdm__cut *ret_cut, esdm_error *err)
{
    esdm_attribute attribute;
    size_t bytes = 0;
    const esdm_container *container = dataset->group->container;
    if (esdm_attribute_find(esdm_dataset_attributes((esdm_dataset *) (uintptr_t) dataset),
                            ESDM_ACCESS_ATTRIBUTE, &attribute, NULL)) {
        const char *text = text_of(&attribute, &bytes);
        return cut_of_text(text, bytes, ret_cut, err);
    }
    *ret_cut = ESDM__CUT_CONTIGUOUS;
    if (container->session->site->npolicies == 0)
        return ESDM_OK;
    char *path = esdm__dataset_path(dataset);
    if (path == NULL)
        return esdm__error_nomem(err, 1, "the path of a dataset");
    esdm_status status =
        esdm__access_wanted(container->session, container->name, path, NULL, ret_cut, err);
    free(path);
    return status;
}

/* ---- what readers want --------------------------------------------------------------------- */

bool
esdm__access_is_stated(const esdm_dataset *dataset)
{
    const esdm_container *container = dataset->group->container;
    esdm_attributes *attributes = esdm_dataset_attributes((esdm_dataset *) (uintptr_t) dataset);
    esdm_attribute attribute;
    if (dataset->stated->chunk != NULL ||
        esdm_attribute_find(attributes, ESDM_ACCESS_ATTRIBUTE, &attribute, NULL))
        return true;
    if (container->session->site->npolicies == 0)
        return false;
    char *path = esdm__dataset_path(dataset);
    bool stated = path == NULL || esdm__site_access(container->session->site, container->name,
                                                    path) != ESDM__ACCESS_UNSTATED;
    free(path);
    return stated;
}

bool
esdm__access_is_coded(const esdm_dataset *dataset, const esdm__dataset_io *io)
{
    return io->chain->count > 0 || dataset->stated->codec != NULL ||
           dataset->stated->accuracy != NULL;
}

void
esdm__access_by_readers(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    const esdm_container *container = dataset->group->container;
    const esdm_session *session = container->session;
    esdm__cut cut = ESDM__CUT_CONTIGUOUS;
    io->readers_asked = true;
    bool wanted = dataset->rank >= 2 && !io->encodes && io->block_bytes == 0 &&
                  esdm__access_is_coded(dataset, io) && !esdm__elements_vary(&io->elements) &&
                  esdm__io_of(container)->comm == NULL && !esdm__access_is_stated(dataset) &&
                  esdm__readers_want(session->readers, dataset, &cut, NULL, 0);
    if (!wanted && io->for_readers == 0)
        return;
    esdm__dataset_wait(dataset, io); /* what is stored behind its put looks at these */
    io->for_readers = wanted ? (uint8_t) cut : 0;
    if (!wanted)
        return;
    esdm__dataset_io_widen(io, esdm__readers_gathered(session));
}

void
esdm__access_note(esdm_dataset *dataset, esdm__dataset_io *io)
{
    char why[400];
    esdm__cut cut;
    esdm_container *container = dataset->group->container;
    const esdm__container_io *own = esdm__io_of(container);
    /* Another description than others know would make their commits fail. */
    if (io->for_readers == 0 || (own->record != 0 && !own->sole) ||
        esdm_dataset_hint(dataset, ESDM__HINT_SHAPE) != NULL ||
        !esdm__readers_want(container->session->readers, dataset, &cut, why, sizeof why))
        return;
    /* Hints are structure, which other threads may read now. */
    if (esdm__dataset_note_shape(dataset, why))
        esdm__container_changed(container);
}
