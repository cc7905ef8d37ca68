/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file ESDM for compare.py: a site in memory, one thread, all through the public API. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/esdm.h"
#include "field_file.h"
#include "rivals.h"

#define NAME "field"

struct own {
    char *config; /* owned */
    esdm_session *session;
    esdm_container *container;
    esdm_dataset *dataset;
    const rivals_field *field;  /* borrowed */
    uint64_t turn;              /* the next one */
    const own_variable *beside; /* borrowed */
    size_t beside_count;
    const char *coordinates; /* borrowed */
    char chain[128];
    esdm_error err;
};

/* ---- fields ------------------------------------------------------------------------------- */

int
rivals_load(const char *path, rivals_field *ret_field)
{
    field_file file;
    int status = field_file_load(path, &file);
    if (status != NC_NOERR)
        return status;
    if (file.rank == 0 || file.rank > 4) {
        field_file_clear(&file);
        return NC_EBADDIM;
    }
    *ret_field =
        (rivals_field){.block = {.elements = file.elements, .rank = file.rank, .fill = file.fill},
                       .values = file.values,
                       .range = file.range};
    memcpy(ret_field->block.shape, file.shape, file.rank * sizeof *file.shape);
    (void) snprintf(ret_field->name, sizeof ret_field->name, "%.63s", file.name);
    return NC_NOERR;
}

void
rivals_free(rivals_field *field)
{
    free(field->values);
    field->values = NULL;
}

/* ---- the site ----------------------------------------------------------------------------- */

own *
own_open(const char *folder)
{
    static const char form[] = "{\"site\":{\"name\":\"bench\"},"
                               "\"targets\":[{\"name\":\"memory\",\"plugin\":\"mem\"}],"
                               "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"%s\"},"
                               "\"engine\":{\"threads\":1,\"inline\":0}}";
    own *o = calloc(1, sizeof *o);
    size_t bytes = sizeof form + strlen(folder);
    if (o == NULL)
        return NULL;
    o->config = malloc(bytes);
    if (o->config == NULL)
        return o;
    (void) snprintf(o->config, bytes, form, folder);
    esdm_site_options site = {.config_json = o->config};
    esdm_session_options session = {.config_json = o->config};
    if (esdm_site_create(&site, &o->err) == ESDM_OK &&
        esdm_session_open(&session, &o->session, &o->err) != ESDM_OK)
        o->session = NULL;
    return o;
}

static void
drop_container(own *o)
{
    esdm_error ignored;
    if (o->container == NULL)
        return;
    esdm_container_discard(o->container);
    o->container = NULL;
    (void) !esdm_container_remove(o->session, NAME, &ignored);
}

void
own_close(own *o)
{
    esdm_error ignored;
    if (o == NULL)
        return;
    drop_container(o);
    esdm_session_close(o->session);
    if (o->config != NULL) {
        esdm_site_options options = {.config_json = o->config, .remove_data = true};
        (void) !esdm_site_remove(&options, &ignored);
    }
    free(o->config);
    free(o);
}

const char *
own_error(const own *o)
{
    return o->err.message;
}

const char *
own_chain(const own *o)
{
    return o->chain;
}

/* ---- a dataset ---------------------------------------------------------------------------- */

void
own_beside(own *o, size_t count, const own_variable *variables, const char *coordinates)
{
    o->beside = variables;
    o->beside_count = count;
    o->coordinates = coordinates;
}

const char *
own_doubt(const own *o)
{
    return esdm_dataset_region_doubt(o->dataset);
}

static esdm_status
set_text(own *o, esdm_dataset *dataset, const char *name, const char *text)
{
    return esdm_attribute_set(esdm_dataset_attributes(dataset), name, ESDM_TYPE_CHAR, strlen(text),
                              text, &o->err);
}

/* @param dims those of the field, without turns. */
static esdm_status
put_beside(own *o, const own_variable *v, esdm_dimension *const *dims)
{
    const uint64_t offset[2] = {0, 0};
    esdm_dataset *dataset = NULL;
    esdm_dataspace space;
    esdm_status st =
        esdm_dataset_create(esdm_container_root(o->container), v->name, ESDM_TYPE_FLOAT64, v->rank,
                            dims + v->first, &dataset, &o->err);
    if (st == ESDM_OK && v->units[0] != '\0')
        st = set_text(o, dataset, "units", v->units);
    if (st == ESDM_OK)
        st =
            esdm_dataspace_init(&space, v->rank, offset, o->field->block.shape + v->first, &o->err);
    return st == ESDM_OK ? esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, v->values, NULL, &o->err)
                         : st;
}

static esdm_status
define(own *o, const char *quantities)
{
    esdm_dimension *dims[5];
    const rivals_block *b = &o->field->block;
    esdm_accuracy accuracy;
    esdm_group *root = esdm_container_root(o->container);
    esdm_status st = esdm_dimension_create(root, "turn", ESDM_UNLIMITED, &dims[0], &o->err);
    for (uint32_t d = 0; d < b->rank && st == ESDM_OK; d++) {
        char name[16];
        (void) snprintf(name, sizeof name, "d%u", d);
        st = esdm_dimension_create(root, name, b->shape[d], &dims[d + 1], &o->err);
    }
    if (st == ESDM_OK)
        st = esdm_dataset_create(root, o->field->name, ESDM_TYPE_FLOAT32, b->rank + 1, dims,
                                 &o->dataset, &o->err);
    if (st == ESDM_OK && o->field->block.fill != 0)
        st = esdm_attribute_set(esdm_dataset_attributes(o->dataset), "_FillValue",
                                ESDM_TYPE_FLOAT32, 1, &o->field->block.fill, &o->err);
    if (st == ESDM_OK && o->coordinates != NULL)
        st = set_text(o, o->dataset, "coordinates", o->coordinates);
    for (size_t i = 0; i < o->beside_count && st == ESDM_OK; i++)
        st = put_beside(o, &o->beside[i], dims + 1);
    esdm_accuracy_init(&accuracy);
    if (st == ESDM_OK)
        st = esdm_accuracy_parse(&accuracy, quantities, NULL, &o->err);
    return st == ESDM_OK ? esdm_dataset_set_accuracy(o->dataset, &accuracy, &o->err) : st;
}

bool
own_prepare(own *o, const rivals_field *field, const char *quantities)
{
    drop_container(o);
    o->field = field;
    o->turn = 0;
    if (o->session == NULL || esdm_container_create(o->session, NAME, ESDM_CREATE_REPLACE,
                                                    &o->container, &o->err) != ESDM_OK)
        return false;
    return define(o, quantities) == ESDM_OK && own_write(o);
}

static esdm_status
turn_space(const own *o, uint64_t turn, esdm_dataspace *ret_space, esdm_error *err)
{
    uint64_t offset[5] = {turn, 0, 0, 0, 0};
    uint64_t size[5] = {1};
    for (uint32_t d = 0; d < o->field->block.rank; d++)
        size[d + 1] = o->field->block.shape[d];
    return esdm_dataspace_init(ret_space, o->field->block.rank + 1, offset, size, err);
}

bool
own_write(own *o)
{
    esdm_dataspace space;
    return turn_space(o, o->turn++, &space, &o->err) == ESDM_OK &&
           esdm_write(o->dataset, &space, ESDM_TYPE_FLOAT32, o->field->values, NULL, &o->err) ==
               ESDM_OK &&
           esdm_container_commit(o->container, NULL, &o->err) == ESDM_OK;
}

bool
own_read(own *o, float *values)
{
    esdm_container *container = NULL;
    esdm_dataspace space;
    if (esdm_container_open(o->session, NAME, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            &o->err) != ESDM_OK)
        return false;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), o->field->name);
    bool good = turn_space(o, o->turn - 1, &space, &o->err) == ESDM_OK &&
                esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, &o->err) == ESDM_OK;
    esdm_container_discard(container);
    return good;
}

/* ---- what was stored ---------------------------------------------------------------------- */

typedef struct tally {
    own *o;
    uint64_t bytes;
} tally;

static bool
add_fragment(const esdm_fragment_info *info, void *user)
{
    tally *t = user;
    if (info->offset[0] != t->o->turn - 1)
        return true;
    t->bytes += info->stored_bytes;
    (void) snprintf(t->o->chain, sizeof t->o->chain, "%s", info->codec);
    return true;
}

uint64_t
own_stored(own *o)
{
    tally t = {.o = o};
    return esdm_dataset_fragments(o->dataset, add_fragment, &t, &o->err) == ESDM_OK ? t.bytes : 0;
}
