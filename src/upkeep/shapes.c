/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Second shapes of variables, made and brought up to date. */

#include "upkeep/shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/read/second_shape.h"
#include "io/session/models.h"
#include "io/session/session.h"
#include "layout/fragmenter.h"
#include "upkeep/boxes.h"
#include "upkeep/upkeep.h"

/* Values between two commits. */
#define STEP_BYTES   (UINT64_C(4) << 30)
#define NUMBER_BYTES 24

typedef struct shaping {
    const esdm_shapes_options *options;
    esdm_shapes_result *result;
    esdm_container *base;
    esdm_container *second; /* owned; NULL: there is none, and this only counts */
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    double began_s;
    uint64_t pending; /* bytes that are written, and not committed */
    bool changed;     /* there is something to commit */
} shaping;

/* One variable. */
typedef struct target {
    esdm_dataset *from;
    esdm_dataset *to; /* NULL: there is none yet */
    uint64_t chunk[ESDM_MAX_RANK];
    uint64_t until;
    const char *purpose; /* NULL: as it is noted */
    bool named;
} target;

/* ---- what may have one ----------------------------------------------------------------------- */

/* Why a variable cannot have another shape; NULL: it can. */
static const char *
hindrance(const esdm_dataset *dataset)
{
    if (dataset->rank == 0 || esdm_type_size(dataset->type) == 0 ||
        dataset->type == ESDM_TYPE_STRING)
        return "only arrays of numbers and characters can have a second shape";
    if (esdm__boxes_are_rounded(dataset))
        return "its numbers may be rounded: it stays as it is";
    return NULL;
}

static bool
is_allowed(const shaping *s, const esdm_dataset *dataset)
{
    char *path = esdm__dataset_path(dataset);
    bool allowed =
        path != NULL && esdm__site_shapes(s->base->session->site, s->base->name, path) > 1;
    free(path);
    return allowed;
}

static esdm_status
refuse(const shaping *s, const esdm_dataset *dataset, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EACCES,
                           "container '%s', dataset '%s': the site's configuration allows one "
                           "shape: \"shapes\": 2, of the site or in its policies, allows two",
                           s->base->name, dataset->name);
}

static void
leave_out(const shaping *s, const esdm_dataset *dataset, const char *why)
{
    char *path = esdm__dataset_path(dataset);
    const esdm_finding finding = {
        .kind = ESDM_FINDING_NOTE, .container = s->base->name, .dataset = path, .what = why};
    if (s->options->report != NULL)
        s->options->report(&finding, s->options->user);
    s->result->left++;
    free(path);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static bool
is_named(const esdm_shape_wish *wish, const esdm_dataset *dataset)
{
    if (strchr(wish->variable, '/') == NULL)
        return dataset->group->depth == 0 && strcmp(wish->variable, dataset->name) == 0;
    char *path = esdm__dataset_path(dataset);
    bool same =
        path != NULL && strcmp(wish->variable[0] == '/' ? path : path + 1, wish->variable) == 0;
    free(path);
    return same;
}

static const esdm_shape_wish *
wish_for(const shaping *s, const esdm_dataset *dataset)
{
    const esdm_shape_wish *found = NULL;
    for (size_t i = 0; i < s->options->nwishes; i++) {
        const esdm_shape_wish *wish = &s->options->wishes[i];
        if (wish->variable == NULL || is_named(wish, dataset))
            found = wish;
    }
    return found;
}

static esdm_status
check_wishes(const shaping *s, esdm_error *err)
{
    for (size_t i = 0; i < s->options->nwishes; i++) {
        const char *variable = s->options->wishes[i].variable;
        bool found = variable == NULL;
        for (size_t k = 0; k < s->base->datasets.count && !found; k++)
            found = is_named(&s->options->wishes[i], s->base->datasets.items[k]);
        if (!found)
            return esdm__error_set(err, ESDM_ENOENT, "container '%s' has no variable '%s'",
                                   s->base->name, variable);
    }
    return ESDM_OK;
}

static uint64_t
bytes_of(const esdm_dataset *dataset)
{
    uint64_t n[ESDM_MAX_RANK];
    for (uint32_t d = 0; d < dataset->rank; d++)
        n[d] = esdm_dimension_length(dataset->dimensions[d]);
    uint64_t count = esdm__boxes_volume(n, dataset->rank);
    uint64_t size = esdm_type_size(dataset->type);
    return size > 0 && count > UINT64_MAX / size ? UINT64_MAX : count * size;
}

/* @return ESDM_EINVAL: of another rank. */
static esdm_status
chunk_of(const esdm_shape_wish *wish, const esdm_dataset *dataset, uint64_t *ret_chunk,
         esdm_error *err)
{
    esdm__box all = {.rank = dataset->rank};
    esdm__cutter cutter;
    const esdm__layout layout = {
        .rank = dataset->rank,
        .element_bytes = esdm_type_size(dataset->type),
        .cut = wish->shape == ESDM_SHAPE_SERIES ? ESDM__CUT_SERIES : ESDM__CUT_CONTIGUOUS,
        .preferred_bytes = dataset->group->container->session->fragment_bytes,
    };
    if (wish->shape == ESDM_SHAPE_CHUNK) {
        bool fits = wish->rank == dataset->rank;
        for (uint32_t d = 0; d < dataset->rank && fits; d++)
            fits = (ret_chunk[d] = wish->chunk[d]) > 0;
        return fits ? ESDM_OK
                    : esdm__error_set(err, ESDM_EINVAL,
                                      "variable '%s' has %u dimensions: as many numbers from 1 on "
                                      "are a shape",
                                      dataset->name, (unsigned) dataset->rank);
    }
    for (uint32_t d = 0; d < dataset->rank; d++) {
        uint64_t length = esdm_dimension_length(dataset->dimensions[d]);
        all.n[d] = length > 0 ? length : 1;
    }
    esdm__cutter_init(&cutter, &layout, &all);
    for (uint32_t d = 0; d < dataset->rank; d++)
        ret_chunk[d] = cutter.cell[d] < all.n[d] ? cutter.cell[d] : all.n[d];
    return ESDM_OK;
}

static const char *const purposes[] = {
    [ESDM_SHAPE_MAPS] = "maps", [ESDM_SHAPE_SERIES] = "series", [ESDM_SHAPE_CHUNK] = "chunk"};

/* @param ret_wanted false: it has no second shape, and gets none. */
static esdm_status
find_target(const shaping *s, esdm_dataset *from, target *ret, bool *ret_wanted, esdm_error *err)
{
    const esdm_shape_wish *wish = wish_for(s, from);
    *ret_wanted = false;
    *ret = (target){.from = from};
    ret->to = s->second != NULL ? esdm__shapes_find(s->second, from->id) : NULL;
    bool named = ret->named = wish != NULL && wish->variable != NULL;
    if (ret->to == NULL && wish == NULL)
        return ESDM_OK;
    const char *why = hindrance(from);
    if (named && why != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP, "container '%s', dataset '%s': %s", s->base->name,
                               from->name, why);
    if (!named && ret->to == NULL &&
        (from->rank < 2 || bytes_of(from) <= s->base->session->fragment_bytes))
        return ESDM_OK;
    if (why != NULL) {
        leave_out(s, from, why);
        return ESDM_OK;
    }
    if (!is_allowed(s, from)) {
        if (named)
            return refuse(s, from, err);
        leave_out(s, from, "the site's configuration allows one shape (\"shapes\")");
        return ESDM_OK;
    }
    if (ret->to != NULL) {
        ret->until = esdm__shapes_number(esdm_dataset_hint(ret->to, ESDM__HINT_SHAPE_UNTIL));
        memcpy(ret->chunk, esdm_dataset_chunk(ret->to), from->rank * sizeof *ret->chunk);
    }
    *ret_wanted = true;
    if (wish == NULL)
        return ESDM_OK;
    uint64_t chunk[ESDM_MAX_RANK];
    esdm_status status = chunk_of(wish, from, chunk, err);
    bool same = ret->to != NULL && memcmp(chunk, ret->chunk, from->rank * sizeof *chunk) == 0;
    const char *is_for = ret->to != NULL ? esdm_dataset_hint(ret->to, ESDM__HINT_SHAPE_FOR) : NULL;
    ret->purpose = purposes[wish->shape];
    /* what is long enough for its purpose stays so when it grows */
    if (status != ESDM_OK || same ||
        (wish->shape != ESDM_SHAPE_CHUNK && is_for != NULL && strcmp(is_for, ret->purpose) == 0))
        return status;
    memcpy(ret->chunk, chunk, from->rank * sizeof *chunk);
    ret->until = 0;
    return ESDM_OK;
}

/* ---- structure ------------------------------------------------------------------------------- */

static esdm_status
put_number(esdm_dataset *dataset, const char *key, uint64_t number, esdm_error *err)
{
    char text[NUMBER_BYTES];
    (void) snprintf(text, sizeof text, "%" PRIu64, number);
    return esdm_dataset_set_hint(dataset, key, text, err);
}

static esdm_status
make_dimension(const shaping *s, const esdm_dimension *from, esdm_dimension **ret, esdm_error *err)
{
    char name[NUMBER_BYTES];
    esdm_group *root = s->second->groups.items[0];
    uint64_t length = esdm_dimension_length(from);
    (void) snprintf(name, sizeof name, "d%u", (unsigned) from->id);
    for (size_t i = 0; i < s->second->dimensions.count; i++) {
        *ret = s->second->dimensions.items[i];
        if (strcmp((*ret)->name, name) == 0)
            return ESDM_OK;
    }
    return esdm_dimension_create(root, name, from->unlimited ? ESDM_UNLIMITED : length, ret, err);
}

/* The policies of the site may be about paths of variables. */
static esdm_status
make_group(const shaping *s, const esdm_group *from, esdm_group **ret, esdm_error *err)
{
    if (from->parent == NULL) {
        *ret = s->second->groups.items[0];
        return ESDM_OK;
    }
    esdm_group *parent = NULL;
    esdm_status status = make_group(s, from->parent, &parent, err);
    if (status != ESDM_OK)
        return status;
    *ret = esdm_group_find(parent, from->name);
    return *ret != NULL ? ESDM_OK : esdm_group_create(parent, from->name, ret, err);
}

/* All that decides what is read but the shape. */
static esdm_status
copy_properties(const esdm_dataset *from, esdm_dataset *to, esdm_error *err)
{
    bool standard = false;
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    const void *fill = esdm_dataset_fill(from, &standard);
    esdm_status status = standard ? ESDM_OK : esdm_dataset_set_fill(to, fill, err);
    if (status == ESDM_OK && esdm_dataset_codec(from) != NULL)
        status = esdm_dataset_set_codec(to, esdm_dataset_codec(from), err);
    if (status == ESDM_OK && esdm_dataset_accuracy_in_force(from, &accuracy)) /* a mode alone */
        status = esdm_dataset_set_accuracy(to, &accuracy, err);
    return status;
}

static esdm_status
make_target(shaping *s, target *t, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_group *group = NULL;
    char name[ESDM_CONTAINER_NAME_MAX + NUMBER_BYTES];
    esdm_status status = make_group(s, t->from->group, &group, err);
    for (uint32_t d = 0; d < t->from->rank && status == ESDM_OK; d++)
        status = make_dimension(s, t->from->dimensions[d], &dimensions[d], err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(name, sizeof name, "%s", t->from->name);
    if (esdm_group_dataset_find(group, name) != NULL || esdm_group_find(group, name) != NULL)
        (void) snprintf(name, sizeof name, "esdm.%u", (unsigned) t->from->id); /* of old names */
    status =
        esdm_dataset_create(group, name, t->from->type, t->from->rank, dimensions, &t->to, err);
    if (status == ESDM_OK)
        status = copy_properties(t->from, t->to, err);
    if (status == ESDM_OK)
        status = put_number(t->to, ESDM__HINT_SHAPE_OF, t->from->id, err);
    return status;
}

static esdm_status
somebody_else(const shaping *s, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "container '%s': somebody else brings its second shape up to date: call "
                           "again when that is done",
                           s->base->name);
}

/* The container in which nothing is yet, or what is there; not what somebody has called so. */
static esdm_status
open_second(shaping *s, esdm_error *err)
{
    esdm_session *session = s->base->session;
    esdm_error why = {0};
    bool dry = s->options->dry_run;
    esdm_status status = esdm__shapes_open(session, s->name, dry ? ESDM_OPEN_READ : ESDM_OPEN_WRITE,
                                           &s->second, &why);
    const char *uuid = esdm__io_of(s->base)->uuid;
    bool stale = status == ESDM_OK &&
                 strcmp(esdm_container_hint(s->second, ESDM__HINT_SHAPES_OF), uuid) != 0;
    if (status == ESDM_OK && !stale) {
        const char *since = esdm_container_hint(s->second, ESDM__HINT_SHAPES_SINCE);
        /* It may have values of a snapshot that was not there when we looked. */
        return esdm__shapes_number(since) > s->base->snapshot ? somebody_else(s, err) : ESDM_OK;
    }
    if (stale)
        esdm__container_drop(s->second);
    s->second = NULL;
    if (status != ESDM_OK && status != ESDM_ENOENT && err != NULL)
        *err = why;
    if (status != ESDM_OK && status != ESDM_ENOENT)
        return status;
    if (dry || s->options->nwishes == 0)
        return ESDM_OK;
    status = esdm__io_create(session, s->name, stale ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW,
                             &s->second, err);
    return status == ESDM_OK ? esdm_container_set_hint(s->second, ESDM__HINT_SHAPES_OF, uuid, err)
                             : status;
}

/* Unlimited dimensions are as long as those of the snapshot that is copied: what lies behind what
 * was written shows the fill value there, too. */
static esdm_status
extend(const target *t, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (uint32_t d = 0; d < t->from->rank && status == ESDM_OK; d++) {
        if (t->to->dimensions[d]->unlimited)
            status = esdm_dimension_extend(t->to->dimensions[d],
                                           esdm_dimension_length(t->from->dimensions[d]), err);
    }
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Each commit changes the structure, so that the store refuses all but one of those who do the same
 * at the same time: an older copy is never laid over a newer one. */
static esdm_status
commit(shaping *s, esdm_error *err)
{
    char number[NUMBER_BYTES];
    char step[ESDM__UUID_BYTES];
    if (!s->changed)
        return ESDM_OK;
    esdm__uuid_new(step);
    (void) snprintf(number, sizeof number, "%" PRIu64, s->base->snapshot);
    esdm_status status = esdm_container_set_hint(s->second, ESDM__HINT_SHAPES_STEP, step, err);
    if (status == ESDM_OK)
        status = esdm_container_set_hint(s->second, ESDM__HINT_SHAPES_SINCE, number, err);
    if (status == ESDM_OK)
        status = esdm__io_commit(s->second, "esdm-compact: second shape", err);
    if (status == ESDM_ECONFLICT)
        return somebody_else(s, err);
    if (status != ESDM_OK)
        return status;
    s->changed = false;
    s->pending = 0;
    s->result->commits++;
    return ESDM_OK;
}

#define REFERS "it refers to files: bring their values in before (esdm-ref --pin --reflink=never)"

/* Whether the base shows anything of the box that is younger than `until`. */
static esdm_status
look_at(const esdm__boxes *boxes, const esdm__box *box, uint64_t until, bool *ret_news,
        esdm_error *err)
{
    esdm__plan plan = {0};
    *ret_news = false;
    esdm_status status = esdm__boxes_plan(boxes, box, &plan, err);
    for (size_t i = 0; i < plan.npieces && status == ESDM_OK; i++) {
        const esdm__fragment *fragment = plan.pieces[i].fragment;
        if (esdm__kind_is_elsewhere(fragment->kind))
            status = esdm__error_set(err, ESDM_ENOTSUP, REFERS);
        *ret_news = *ret_news || fragment->sequence >> 32 > until;
    }
    esdm__plan_clear(&plan);
    return status;
}

static esdm_status
copy_box(const target *t, const esdm__box *box, void *buffer, esdm_error *err)
{
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, box->rank, box->lo, box->n, err);
    if (status == ESDM_OK)
        status = esdm__io_read(t->from, &space, t->from->type, buffer, NULL, err);
    return status == ESDM_OK ? esdm__io_write(t->to, &space, t->from->type, buffer, NULL, err)
                             : status;
}

static esdm_status
update_boxes(shaping *s, const target *t, const esdm__boxes *boxes, esdm_error *err)
{
    uint64_t step = s->options->step_bytes > 0 ? s->options->step_bytes : STEP_BYTES;
    esdm__box box;
    esdm_status status = ESDM_OK;
    esdm__boxes_first(boxes, &box);
    void *buffer = malloc(esdm__box_elements(&box) * boxes->each);
    if (buffer == NULL)
        return esdm__error_nomem(err, ESDM__BOX_BYTES, "values of a second shape");
    do {
        bool news = false;
        uint64_t bytes = esdm__box_elements(&box) * boxes->each;
        status = look_at(boxes, &box, t->until, &news, err);
        if (status != ESDM_OK || !news)
            continue;
        if (!s->options->dry_run)
            status = copy_box(t, &box, buffer, err);
        s->result->bytes += bytes;
        s->pending += bytes;
        esdm__upkeep_pace(s->options->bytes_per_s, s->result->bytes, s->began_s);
        if (status == ESDM_OK && s->pending >= step && !s->options->dry_run) {
            s->changed = true;
            status = commit(s, err);
        }
    } while (status == ESDM_OK && esdm__boxes_next(boxes, &box));
    free(buffer);
    return status;
}

static esdm_status
update(shaping *s, target *t, esdm_error *err)
{
    esdm__boxes boxes;
    bool any = false;
    bool dry = s->options->dry_run;
    s->result->variables++;
    if (t->until == s->base->snapshot)
        return ESDM_OK;
    esdm_status status = t->to == NULL && !dry ? make_target(s, t, err) : ESDM_OK;
    if (status == ESDM_OK && !dry) {
        status = esdm_dataset_set_chunk(t->to, t->chunk, err);
        if (status == ESDM_OK)
            status = put_number(t->to, ESDM__HINT_SHAPE_UNTIL, t->until, err);
        if (status == ESDM_OK && t->purpose != NULL)
            status = esdm_dataset_set_hint(t->to, ESDM__HINT_SHAPE_FOR, t->purpose, err);
        if (status == ESDM_OK)
            status = extend(t, err);
    }
    if (status == ESDM_OK)
        status = esdm__boxes_begin_as(t->from, t->chunk, &boxes, &any, err);
    if (status == ESDM_OK && any)
        status = update_boxes(s, t, &boxes, err);
    if (status == ESDM_ENOTSUP && !t->named) { /* what was copied of it is newer than `until` */
        leave_out(s, t->from, REFERS);
        return ESDM_OK;
    }
    if (status != ESDM_OK)
        return esdm__dataset_prefix(t->from, status, err);
    if (dry)
        return ESDM_OK;
    s->changed = true;
    status = put_number(t->to, ESDM__HINT_SHAPE_UNTIL, s->base->snapshot, err);
    return status == ESDM_OK ? commit(s, err) : status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static esdm_status
check_base(const esdm_container *base, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(base);
    if (base->provider != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' is put together from several containers: give these a second "
                               "shape",
                               base->name);
    if (io->historic || base->coarse || esdm__name_is_own(base->name) ||
        esdm__name_branch(base->name, NULL) != NULL || esdm__name_is_shapes(base->name, NULL))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s': only the newest snapshot of a container can have a second "
                               "shape",
                               base->said != NULL ? base->said : base->name);
    return ESDM_OK;
}

static esdm_status
update_all(shaping *s, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (s->second == NULL && s->options->nwishes == 0)
        return ESDM_OK;
    if (s->second != NULL)
        esdm__io_of(s->second)->opened.guards_all = true;
    for (size_t i = 0; i < s->base->datasets.count && status == ESDM_OK; i++) {
        target t;
        bool wanted = false;
        status = find_target(s, s->base->datasets.items[i], &t, &wanted, err);
        if (status == ESDM_OK && wanted)
            status = update(s, &t, err);
    }
    return status;
}

esdm_status
esdm__upkeep_shapes(esdm_container *base, const esdm_shapes_options *options,
                    esdm_shapes_result *result, esdm_error *err)
{
    shaping s = {
        .options = options, .result = result, .base = base, .began_s = esdm__seconds_now()};
    if (options->nwishes == 0 && esdm__name_branch(base->name, NULL) != NULL)
        return ESDM_OK; /* branches have none that could be brought up to date */
    esdm_status status = check_base(base, err);
    if (status == ESDM_OK)
        status = esdm__shapes_name(base->name, s.name, err);
    if (status != ESDM_OK)
        return status;
    esdm__io_of(base)->shapes_sought = true; /* what is copied is read from the first one */
    status = check_wishes(&s, err);
    if (status == ESDM_OK)
        status = open_second(&s, err);
    if (status == ESDM_OK)
        status = update_all(&s, err);
    if (s.second != NULL)
        esdm__container_drop(s.second);
    return status;
}
