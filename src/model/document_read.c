/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Reading the container document (schemas/container.schema.json), which nobody trusts. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_locale.h"
#include "model/accuracy.h"
#include "model/document_put.h"
#include "model/document_value.h"
#include "model/group.h"

/* ---- objects ------------------------------------------------------------------------------- */

esdm_status
esdm__document_members(esdm__document_reader *r, uint32_t object, const char *const *keys,
                       size_t required, uint32_t *slots)
{
    esdm_status st = esdm__document_expect(r, NULL, object, ESDM__TAPE_OBJECT);
    if (st != ESDM_OK)
        return st;
    const esdm__tape_node *nodes = r->tape.nodes;
    for (size_t i = 0; keys[i] != NULL; i++)
        slots[i] = 0;
    for (uint32_t key = object + 1; key < nodes[object].next; key = nodes[key + 1].next) {
        size_t i = 0;
        while (keys[i] != NULL &&
               !esdm__tape_equals(&r->tape, &nodes[key], keys[i], strlen(keys[i])))
            i++;
        if (keys[i] == NULL)
            return esdm__document_wrong(r, NULL, "unknown member '%.*s'",
                                        nodes[key].length < 100 ? (int) nodes[key].length : 100,
                                        r->tape.text + nodes[key].start);
        if (slots[i] != 0)
            return esdm__document_wrong(r, NULL, "member '%s' is there twice", keys[i]);
        slots[i] = key + 1;
    }
    for (size_t i = 0; i < required; i++) {
        if (slots[i] == 0)
            return esdm__document_wrong(r, NULL, "member '%s' is missing", keys[i]);
    }
    return ESDM_OK;
}

static esdm_status
read_hints(esdm__document_reader *r, uint32_t node, esdm__hints *hints)
{
    const esdm__tape_node *nodes = r->tape.nodes;
    if (node == 0)
        return ESDM_OK;
    esdm__document_enter(r, "hints");
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_OBJECT);
    for (uint32_t key = node + 1; st == ESDM_OK && key < nodes[node].next;
         key = nodes[key + 1].next) {
        char *name = NULL;
        char *value = NULL;
        bool changed;
        st = esdm__document_text(r, NULL, key, &name);
        if (st == ESDM_OK)
            st = esdm__document_text(r, NULL, key + 1, &value);
        if (st == ESDM_OK && esdm__hints_get(hints, name) != NULL)
            st = esdm__document_wrong(r, NULL, "hint '%.100s' is there twice", name);
        if (st == ESDM_OK)
            st = esdm__document_result(r, esdm__hints_set(hints, name, value, &changed, r->err));
        free(name);
        free(value);
    }
    esdm__document_leave(r);
    return st;
}

/* The values of an attribute, from `node` on: of user-defined types their count and one text. */
static esdm_status
read_attribute_values(esdm__document_reader *r, uint32_t node, uint32_t nodes, esdm_type type,
                      uint64_t *ret_count, void **ret_values)
{
    if (esdm_type_size(type) > 0)
        return esdm__document_values(r, NULL, node, nodes, type, ret_count, ret_values);
    *ret_count = 0;
    *ret_values = NULL;
    if (nodes == 0)
        return ESDM_OK;
    if (nodes != 2)
        return esdm__document_wrong(r, NULL, "expected the number of values and a text");
    esdm_status st = esdm__document_u64(r, NULL, node, UINT64_MAX, ret_count);
    if (st == ESDM_OK && *ret_count == 0)
        st = esdm__document_wrong(r, NULL, "expected at least one value");
    if (st != ESDM_OK)
        return st;
    return esdm__document_user_values(r, NULL, r->tape.nodes[node].next, type, *ret_count,
                                      ret_values);
}

/* ["name", "type", value …] */
static esdm_status
read_attribute(esdm__document_reader *r, uint32_t node, esdm_attributes *list)
{
    const esdm__tape_node *nodes = r->tape.nodes;
    char name[ESDM_NAME_MAX + 1];
    esdm_type type = ESDM_TYPE_NONE;
    uint64_t count = 0;
    void *values = NULL;

    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    if (st == ESDM_OK && nodes[node].length < 2)
        st = esdm__document_wrong(r, NULL, "expected a name and a type");
    if (st == ESDM_OK)
        st = esdm__document_name(r, NULL, node + 1, name);
    if (st == ESDM_OK)
        st = esdm__document_type(r, NULL, node + 2, &type);
    if (st == ESDM_OK)
        st = read_attribute_values(r, node + 3, nodes[node].length - 2, type, &count, &values);
    if (st != ESDM_OK)
        return st;
    st = esdm__attribute_adopt(list, name, type, count, values, r->err);
    if (st != ESDM_OK)
        esdm__attribute_values_free(r->container, type, count, values);
    return esdm__document_result(r, st);
}

static esdm_status
read_attributes(esdm__document_reader *r, uint32_t node, esdm_attributes *list)
{
    if (node == 0)
        return ESDM_OK;
    esdm__document_enter(r, "attributes");
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    for (uint32_t i = node + 1; st == ESDM_OK && i < r->tape.nodes[node].next;
         i = r->tape.nodes[i].next) {
        esdm__document_advance(r);
        st = read_attribute(r, i, list);
    }
    esdm__document_leave(r);
    return st;
}

esdm_status
esdm__document_parent(esdm__document_reader *r, uint32_t node, esdm_group **ret_group)
{
    uint64_t id = 0;
    const esdm__pointers *groups = &r->container->groups;
    if (node != 0) {
        esdm_status st = esdm__document_u64(r, "group", node, UINT32_MAX, &id);
        if (st != ESDM_OK)
            return st;
    }
    /* Groups come in order of creation, so that a parent stands before its children: no cycles. */
    if (id >= groups->count)
        return esdm__document_wrong(r, "group", "there is no group %" PRIu64 " before it", id);
    *ret_group = groups->items[id];
    return ESDM_OK;
}

static esdm_status
read_group(esdm__document_reader *r, uint32_t node)
{
    enum { NAME, GROUP };
    static const char *const keys[] = {"name", "group", "attributes", NULL};
    uint32_t slots[ESDM__DOCUMENT_MEMBERS_MAX];
    char name[ESDM_NAME_MAX + 1];
    esdm_group *group = NULL;
    esdm_group *parent = NULL;
    bool is_root = r->path[r->depth - 1].index == 0;

    esdm_status st = esdm__document_members(r, node, keys, 1, slots);
    if (st == ESDM_OK && is_root &&
        (slots[GROUP] != 0 || !esdm__tape_equals(&r->tape, &r->tape.nodes[slots[NAME]], "", 0)))
        st = esdm__document_wrong(r, NULL, "the root group has no name and no parent");
    if (st == ESDM_OK && !is_root)
        st = esdm__document_name(r, "name", slots[NAME], name);
    if (st == ESDM_OK && !is_root)
        st = esdm__document_parent(r, slots[GROUP], &parent);
    if (st == ESDM_OK && !is_root)
        st = esdm__document_result(r, esdm__group_new(parent, name, &group, r->err));
    return st;
}

/* After the types, which lie in groups. */
static esdm_status
read_group_attributes(esdm__document_reader *r, uint32_t node)
{
    const esdm__tape_node *nodes = r->tape.nodes;
    esdm_group *group = r->container->groups.items[r->path[r->depth - 1].index];
    for (uint32_t key = node + 1; key < nodes[node].next; key = nodes[key + 1].next) {
        if (esdm__tape_equals(&r->tape, &nodes[key], "attributes", 10))
            return read_attributes(r, key + 1, &group->attributes);
    }
    return ESDM_OK;
}

static esdm_status
read_dimension(esdm__document_reader *r, uint32_t node)
{
    enum { NAME, GROUP, LENGTH, UNLIMITED };
    static const char *const keys[] = {"name", "group", "length", "unlimited", NULL};
    uint32_t slots[ESDM__DOCUMENT_MEMBERS_MAX];
    char name[ESDM_NAME_MAX + 1];
    esdm_group *group = NULL;
    esdm_dimension *dimension;
    uint64_t length = ESDM_UNLIMITED;

    esdm_status st = esdm__document_members(r, node, keys, 1, slots);
    if (st == ESDM_OK)
        st = esdm__document_name(r, "name", slots[NAME], name);
    if (st == ESDM_OK)
        st = esdm__document_parent(r, slots[GROUP], &group);
    if (st == ESDM_OK && (slots[LENGTH] != 0) == (slots[UNLIMITED] != 0))
        st = esdm__document_wrong(r, NULL, "expected either 'length' or 'unlimited'");
    if (st == ESDM_OK && slots[UNLIMITED] != 0)
        st = esdm__document_expect(r, "unlimited", slots[UNLIMITED], ESDM__TAPE_TRUE);
    if (st == ESDM_OK && slots[LENGTH] != 0)
        st = esdm__document_u64(r, "length", slots[LENGTH], ESDM_UNLIMITED - 1, &length);
    if (st == ESDM_OK)
        st = esdm__document_result(r, esdm__dimension_new(group, name, length, &dimension, r->err));
    return st;
}

/* ---- datasets ------------------------------------------------------------------------------ */

static esdm_status
read_dimensions(esdm__document_reader *r, uint32_t node, uint32_t *ret_rank,
                esdm_dimension **ret_dimensions)
{
    const esdm__pointers *all = &r->container->dimensions;
    uint32_t rank = 0;
    esdm__document_enter(r, "dimensions");
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    if (st == ESDM_OK && r->tape.nodes[node].length > ESDM_MAX_RANK)
        st = esdm__document_wrong(r, NULL, "rank %u exceeds %d", r->tape.nodes[node].length,
                                  ESDM_MAX_RANK);
    for (uint32_t i = node + 1; st == ESDM_OK && i < r->tape.nodes[node].next;
         i = r->tape.nodes[i].next) {
        uint64_t id;
        esdm__document_advance(r);
        st = esdm__document_u64(r, NULL, i, UINT32_MAX, &id);
        if (st == ESDM_OK && id >= all->count)
            st = esdm__document_wrong(r, NULL, "there is no dimension %" PRIu64, id);
        if (st == ESDM_OK)
            ret_dimensions[rank++] = all->items[id];
    }
    esdm__document_leave(r);
    *ret_rank = rank;
    return st;
}

/* Ids rise in the order of creation, hence are unique, and lie below the next one to be given. */
static esdm_status
read_id(esdm__document_reader *r, uint32_t node, uint32_t *ret_id)
{
    const esdm__pointers *datasets = &r->container->datasets;
    uint64_t id;
    uint32_t last = 0;
    esdm_status st = esdm__document_u64(r, "id", node, UINT32_MAX, &id);
    if (st != ESDM_OK)
        return st;
    if (datasets->count > 0)
        last = ((const esdm_dataset *) datasets->items[datasets->count - 1])->id;
    if (id <= last || id >= r->container->next_dataset_id)
        return esdm__document_wrong(r, "id", "%" PRIu64 " is not between %u and next_dataset %u",
                                    id, last, r->container->next_dataset_id);
    *ret_id = (uint32_t) id;
    return ESDM_OK;
}

static esdm_status
read_chunk(esdm__document_reader *r, uint32_t node, esdm_dataset *dataset, esdm__stated *to)
{
    uint32_t axis = 0;
    if (node == 0)
        return ESDM_OK;
    esdm__document_enter(r, "chunk");
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    if (st == ESDM_OK && r->tape.nodes[node].length != dataset->rank)
        st = esdm__document_wrong(r, NULL, "expected %u sizes", dataset->rank);
    if (st == ESDM_OK) {
        to->chunk = malloc((dataset->rank + 1) * sizeof *to->chunk);
        if (to->chunk == NULL) {
            (void) esdm__error_nomem(r->err, dataset->rank * sizeof *to->chunk, "a chunk");
            st = ESDM_ENOMEM;
        }
    }
    for (uint32_t i = node + 1; st == ESDM_OK && i < r->tape.nodes[node].next;
         i = r->tape.nodes[i].next) {
        esdm__document_advance(r);
        st = esdm__document_u64(r, NULL, i, UINT64_MAX, &to->chunk[axis]);
        if (st == ESDM_OK && to->chunk[axis] == 0)
            st = esdm__document_wrong(r, NULL, "a chunk size must not be 0");
        axis++;
    }
    esdm__document_leave(r);
    return st;
}

static esdm_status
read_fill(esdm__document_reader *r, uint32_t node, esdm_dataset *dataset, esdm__stated *to)
{
    uint64_t count = 0;
    if (node == 0)
        return ESDM_OK;
    if (esdm_type_size(dataset->type) == 0)
        return esdm__document_user_values(r, "fill", node, dataset->type, 1, &to->fill);
    esdm_status st = esdm__document_values(r, "fill", node, 1, dataset->type, &count, &to->fill);
    if (st == ESDM_OK && r->tape.nodes[node].kind == ESDM__TAPE_NULL && r->format < 3)
        st = esdm__document_wrong(r, "fill", "NULL needs format 3");
    if (st == ESDM_OK && count != 1)
        st = esdm__document_wrong(r, "fill", "expected one value of type %s",
                                  esdm_type_name(dataset->type));
    return st;
}

static esdm_status
read_codec(esdm__document_reader *r, uint32_t node, esdm__stated *to)
{
    return node != 0 ? esdm__document_text(r, "codec", node, &to->codec) : ESDM_OK;
}

static esdm_status
check_visible(esdm__document_reader *r, const esdm_group *group, uint32_t rank,
              esdm_dimension *const *dimensions)
{
    for (uint32_t i = 0; i < rank && r->format < 3; i++) {
        if (!esdm__dimension_is_visible(dimensions[i], group))
            return esdm__document_wrong(r, "dimensions",
                                        "dimension %" PRIu32 " (%s) is not of this group or of one "
                                        "above it, which needs format 3",
                                        i, dimensions[i]->name);
    }
    return ESDM_OK;
}

static esdm_status
read_accuracy(esdm__document_reader *r, uint32_t node, esdm_dataset *dataset)
{
    char *text = NULL;
    esdm_accuracy accuracy;
    if (node == 0)
        return ESDM_OK;
    if (r->format < 4)
        return esdm__document_wrong(r, "accuracy", "an accuracy needs format 4");
    esdm_status st = esdm__document_text(r, "accuracy", node, &text);
    if (st != ESDM_OK)
        return st;
    esdm_accuracy_init(&accuracy);
    st = esdm__document_result(r, esdm__accuracy_parse_stored(&accuracy, text, r->err));
    free(text);
    if (st == ESDM_OK && (accuracy.stated == 0 || !esdm__accuracy_has_type(dataset->type)))
        st = esdm__document_wrong(r, "accuracy", "nothing is stated, or not of numbers");
    return st == ESDM_OK ? esdm__document_result(
                               r, esdm__dataset_put_accuracy(dataset, &accuracy, NULL, r->err))
                         : st;
}

/* Whoever has set another mode since, not knowing the hint, is obeyed. */
static esdm_status
take_mode(esdm__document_reader *r, esdm_dataset *dataset, esdm__stated *stated)
{
    esdm_accuracy accuracy;
    bool changed;
    const char *mode = esdm__hints_get(&stated->hints, ESDM__HINT_MODE);
    if (mode == NULL)
        return ESDM_OK;
    bool fast = strcmp(mode, ESDM__HINT_MODE_FAST) == 0;
    esdm_status st = esdm__hints_set(&stated->hints, ESDM__HINT_MODE, NULL, &changed, r->err);
    if (st != ESDM_OK || !fast || !esdm_dataset_accuracy(dataset, &accuracy) ||
        (accuracy.stated & ESDM_ACCURACY_MODE) == 0 || accuracy.mode != ESDM_MODE_BALANCED)
        return st;
    accuracy.mode = ESDM_MODE_FAST;
    return esdm__dataset_put_accuracy(dataset, &accuracy, NULL, r->err);
}

/* What few datasets have. @param nodes of chunk, codec, accuracy, fill value and hints; 0: none. */
static esdm_status
read_stated(esdm__document_reader *r, const uint32_t nodes[5], esdm_dataset *dataset)
{
    if ((nodes[0] | nodes[1] | nodes[2] | nodes[3] | nodes[4]) == 0)
        return ESDM_OK;
    esdm__stated *stated = esdm__dataset_stated(dataset, r->err);
    if (stated == NULL)
        return ESDM_ENOMEM;
    esdm_status st = read_chunk(r, nodes[0], dataset, stated);
    if (st == ESDM_OK)
        st = read_codec(r, nodes[1], stated);
    if (st == ESDM_OK)
        st = read_accuracy(r, nodes[2], dataset);
    if (st == ESDM_OK)
        st = read_fill(r, nodes[3], dataset, stated);
    if (st == ESDM_OK)
        st = read_hints(r, nodes[4], &stated->hints);
    return st == ESDM_OK ? take_mode(r, dataset, stated) : st;
}

static esdm_status
read_dataset(esdm__document_reader *r, uint32_t node)
{
    enum { NAME, ID, TYPE, DIMENSIONS, GROUP, CHUNK, CODEC, FILL, HINTS, ATTRIBUTES, ACCURACY };
    static const char *const keys[] = {"name",  "id",   "type",  "dimensions", "group",    "chunk",
                                       "codec", "fill", "hints", "attributes", "accuracy", NULL};
    uint32_t slots[ESDM__DOCUMENT_MEMBERS_MAX];
    char name[ESDM_NAME_MAX + 1];
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_group *group = NULL;
    esdm_dataset *dataset;
    esdm_type type;
    uint32_t id = 0;
    uint32_t rank;

    esdm_status st = esdm__document_members(r, node, keys, 4, slots);
    if (st == ESDM_OK)
        st = esdm__document_name(r, "name", slots[NAME], name);
    if (st == ESDM_OK)
        st = esdm__document_parent(r, slots[GROUP], &group);
    if (st == ESDM_OK)
        st = read_id(r, slots[ID], &id);
    if (st == ESDM_OK)
        st = esdm__document_type(r, "type", slots[TYPE], &type);
    if (st == ESDM_OK)
        st = read_dimensions(r, slots[DIMENSIONS], &rank, dimensions);
    if (st == ESDM_OK)
        st = check_visible(r, group, rank, dimensions);
    if (st == ESDM_OK)
        st = esdm__document_result(
            r, esdm__dataset_new(group, id, name, type, rank, dimensions, &dataset, r->err));
    if (st == ESDM_OK)
        st = read_stated(
            r,
            (uint32_t[5]){slots[CHUNK], slots[CODEC], slots[ACCURACY], slots[FILL], slots[HINTS]},
            dataset);
    if (st == ESDM_OK)
        st = read_attributes(r, slots[ATTRIBUTES], &dataset->attributes);
    return st;
}

/* ---- document ------------------------------------------------------------------------------ */

static esdm_status
read_list(esdm__document_reader *r, uint32_t node, const char *key,
          esdm_status (*read)(esdm__document_reader *r, uint32_t node))
{
    esdm__document_enter(r, key);
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    for (uint32_t i = node + 1; st == ESDM_OK && i < r->tape.nodes[node].next;
         i = r->tape.nodes[i].next) {
        esdm__document_advance(r);
        st = read(r, i);
    }
    esdm__document_leave(r);
    return st;
}

/* Before anything else is looked at: a newer document may look different. */
static esdm_status
check_format(esdm__document_reader *r, uint64_t *ret_format)
{
    const esdm__tape_node *nodes = r->tape.nodes;
    uint64_t format = 0;
    esdm_status st = esdm__document_expect(r, NULL, 0, ESDM__TAPE_OBJECT);
    if (st != ESDM_OK)
        return st;
    for (uint32_t key = 1; key < nodes[0].next; key = nodes[key + 1].next) {
        if (!esdm__tape_equals(&r->tape, &nodes[key], "format", 6))
            continue;
        st = esdm__document_u64(r, "format", key + 1, INT64_MAX, &format);
        if (st == ESDM_OK && format > ESDM__DOCUMENT_FORMAT)
            return esdm__error_set(r->err, ESDM_ENOTSUP,
                                   "container document: format %" PRIu64 " is newer than %d, "
                                   "which this version of ESDM reads; use a newer one",
                                   format, ESDM__DOCUMENT_FORMAT);
        if (st == ESDM_OK && format == 0)
            return esdm__document_wrong(r, "format", "unknown format 0");
        *ret_format = format;
        return st;
    }
    return esdm__document_wrong(r, NULL, "member 'format' is missing");
}

/* The checksum is the last member, and of the form in which it is written. */
static esdm_status
check_sum(esdm__document_reader *r, bool stated)
{
    char end[ESDM__DOCUMENT_END_BYTES + 1];
    const char *text = r->tape.text;
    size_t bytes = r->tape.bytes;
    if (!stated && r->format < 5)
        return ESDM_OK;
    if (!stated)
        return esdm__document_wrong(r, NULL, "member 'checksum' is missing");
    bytes = bytes > ESDM__DOCUMENT_END_BYTES ? bytes - ESDM__DOCUMENT_END_BYTES : 0;
    esdm__document_end(text, bytes, end);
    if (r->tape.bytes - bytes != ESDM__DOCUMENT_END_BYTES ||
        memcmp(text + bytes, end, ESDM__DOCUMENT_END_BYTES) != 0)
        return esdm__document_wrong(r, NULL, "its checksum is wrong: the document is damaged");
    return ESDM_OK;
}

static esdm_status
read_document(esdm__document_reader *r)
{
    enum { FORMAT, NEXT, GROUPS, DIMENSIONS, DATASETS, HINTS, TYPES, CHECKSUM };
    static const char *const keys[] = {"format",     "next_dataset", "groups",
                                       "dimensions", "datasets",     "hints",
                                       "types",      "checksum",     NULL};
    uint32_t slots[ESDM__DOCUMENT_MEMBERS_MAX];
    uint64_t next = 0;

    esdm_status st = check_format(r, &r->format);
    if (st == ESDM_OK)
        st = esdm__document_members(r, 0, keys, DATASETS + 1, slots);
    if (st == ESDM_OK)
        st = check_sum(r, slots[CHECKSUM] != 0);
    if (st == ESDM_OK && slots[TYPES] != 0 && r->format < 2)
        st = esdm__document_wrong(r, "types", "format 1 has no types");
    if (st == ESDM_OK)
        st = esdm__document_u64(r, "next_dataset", slots[NEXT], UINT32_MAX, &next);
    if (st == ESDM_OK && next == 0)
        st = esdm__document_wrong(r, NULL, "next_dataset must not be 0");
    if (st != ESDM_OK)
        return st;
    r->container->next_dataset_id = (uint32_t) next;
    st = read_hints(r, slots[HINTS], &r->container->hints);
    if (st == ESDM_OK)
        st = read_list(r, slots[GROUPS], "groups", read_group);
    if (st == ESDM_OK && r->tape.nodes[slots[GROUPS]].length == 0)
        st = esdm__document_wrong(r, "groups", "the root group is missing");
    if (st == ESDM_OK && slots[TYPES] != 0)
        st = read_list(r, slots[TYPES], "types", esdm__document_usertype);
    if (st == ESDM_OK)
        st = read_list(r, slots[GROUPS], "groups", read_group_attributes);
    if (st == ESDM_OK)
        st = read_list(r, slots[DIMENSIONS], "dimensions", read_dimension);
    if (st == ESDM_OK)
        st = read_list(r, slots[DATASETS], "datasets", read_dataset);
    return st;
}

esdm_status
esdm__document_read(const char *text, size_t bytes, esdm_container *container, esdm_error *err)
{
    esdm__document_reader reader = {.container = container, .err = err};
    esdm__plain_locale locale;
    esdm_status st = esdm__plain_locale_enter(&locale, err);
    if (st != ESDM_OK)
        return st;
    st = esdm__tape_parse(&reader.tape, text, bytes, err);
    if (st == ESDM_OK)
        st = read_document(&reader);
    else
        st = esdm__error_prefix(err, st, "container document");
    esdm__tape_clear(&reader.tape);
    esdm__plain_locale_leave(&locale);
    return st;
}
