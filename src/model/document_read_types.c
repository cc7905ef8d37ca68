/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Reading the types of a container document. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/copy.h"
#include "model/document_value.h"

/* ["name", type, size …]: offsets are not stored. */
static esdm_status
read_member(esdm__document_reader *r, uint32_t node, esdm__usertype *type)
{
    const esdm__tape_node *nodes = r->tape.nodes;
    char name[ESDM_NAME_MAX + 1];
    esdm_type member = ESDM_TYPE_NONE;
    uint32_t shape[ESDM__MEMBER_RANK_MAX];
    uint32_t rank = 0;

    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    if (st == ESDM_OK && (nodes[node].length < 2 || nodes[node].length > 2 + ESDM__MEMBER_RANK_MAX))
        st = esdm__document_wrong(r, NULL, "expected a name, a type and at most %d sizes",
                                  ESDM__MEMBER_RANK_MAX);
    if (st == ESDM_OK)
        st = esdm__document_name(r, NULL, node + 1, name);
    if (st == ESDM_OK)
        st = esdm__document_type(r, NULL, node + 2, &member);
    for (uint32_t i = node + 3; st == ESDM_OK && i < nodes[node].next; i = nodes[i].next) {
        uint64_t size = 0;
        st = esdm__document_u64(r, NULL, i, UINT32_MAX, &size);
        shape[rank++] = (uint32_t) size;
    }
    if (st != ESDM_OK)
        return st;
    return esdm__document_result(
        r, esdm__usertype_add_member(type, name, 0, member, rank, shape, r->err));
}

/* ["name", value] */
static esdm_status
read_enumerator(esdm__document_reader *r, uint32_t node, esdm__usertype *type)
{
    char name[ESDM_NAME_MAX + 1];
    uint64_t count = 0;
    void *value = NULL;

    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    if (st == ESDM_OK && r->tape.nodes[node].length != 2)
        st = esdm__document_wrong(r, NULL, "expected a name and a value");
    if (st == ESDM_OK)
        st = esdm__document_name(r, NULL, node + 1, name);
    if (st == ESDM_OK)
        st = esdm__document_values(r, NULL, node + 2, 1, type->base, &count, &value);
    if (st != ESDM_OK)
        return st;
    st = esdm__usertype_add_enumerator(type, name, value, r->err);
    free(value);
    return esdm__document_result(r, st);
}

static esdm_status
read_type_members(esdm__document_reader *r, uint32_t node, esdm__usertype *type)
{
    esdm__document_enter(r, "members");
    esdm_status st = esdm__document_expect(r, NULL, node, ESDM__TAPE_ARRAY);
    for (uint32_t i = node + 1; st == ESDM_OK && i < r->tape.nodes[node].next;
         i = r->tape.nodes[i].next) {
        esdm__document_advance(r);
        st = type->kind == ESDM_CLASS_ENUM ? read_enumerator(r, i, type) : read_member(r, i, type);
    }
    esdm__document_leave(r);
    return st;
}

/* What the class of a type says about its other members. */
typedef struct type_row {
    const char *name;
    esdm_type_class kind;
    bool has_bytes, has_base, has_members;
} type_row;

static const type_row *
find_class(const esdm__document_reader *r, uint32_t node)
{
    static const type_row rows[] = {{"compound", ESDM_CLASS_COMPOUND, false, false, true},
                                    {"enum", ESDM_CLASS_ENUM, false, true, true},
                                    {"opaque", ESDM_CLASS_OPAQUE, true, false, false},
                                    {"vlen", ESDM_CLASS_VLEN, false, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (r->tape.nodes[node].kind == ESDM__TAPE_STRING &&
            esdm__tape_equals(&r->tape, &r->tape.nodes[node], rows[i].name, strlen(rows[i].name)))
            return &rows[i];
    }
    return NULL;
}

/* Lays it out for this program, and checks it. */
static esdm_status
finish_type(esdm__document_reader *r, esdm__usertype *type)
{
    esdm_status st = ESDM_OK;
    if (type->kind == ESDM_CLASS_COMPOUND)
        st = esdm__usertype_align(type, r->err);
    if (st == ESDM_OK)
        st = esdm__usertype_complete(type, r->err);
    return esdm__document_result(r, st);
}

esdm_status
esdm__document_usertype(esdm__document_reader *r, uint32_t node)
{
    enum { NAME, CLASS, GROUP, BYTES, BASE, MEMBERS };
    static const char *const keys[] = {"name", "class", "group", "bytes", "base", "members", NULL};
    uint32_t slots[ESDM__DOCUMENT_MEMBERS_MAX] = {0};
    char name[ESDM_NAME_MAX + 1];
    esdm_group *group = NULL;
    esdm__usertype *type = NULL;
    esdm_type base = ESDM_TYPE_NONE;
    uint64_t bytes = 1; /* of a compound: not known yet */

    esdm_status st = esdm__document_members(r, node, keys, 2, slots);
    if (st != ESDM_OK)
        return st;
    const type_row *row = find_class(r, slots[CLASS]);
    if (row == NULL)
        return esdm__document_wrong(r, "class", "expected compound, enum, opaque or vlen");
    if ((slots[BYTES] != 0) != row->has_bytes || (slots[BASE] != 0) != row->has_base ||
        (slots[MEMBERS] != 0) != row->has_members)
        return esdm__document_wrong(r, NULL, "wrong members for a type of class %s", row->name);
    st = esdm__document_name(r, "name", slots[NAME], name);
    if (st == ESDM_OK)
        st = esdm__document_parent(r, slots[GROUP], &group);
    if (st == ESDM_OK && row->has_bytes)
        st = esdm__document_u64(r, "bytes", slots[BYTES], ESDM__TYPE_BYTES_MAX, &bytes);
    if (st == ESDM_OK && row->has_base)
        st = esdm__document_type(r, "base", slots[BASE], &base);
    if (st == ESDM_OK && row->kind == ESDM_CLASS_ENUM && !esdm__type_is_numeric(base))
        st = esdm__document_wrong(r, "base", "expected an integer type");
    if (st != ESDM_OK)
        return st;
    if (row->has_base)
        bytes = row->kind == ESDM_CLASS_ENUM ? esdm_type_size(base) : sizeof(esdm_vlen);
    st = esdm__document_result(
        r, esdm__usertype_new(group, name, row->kind, (size_t) bytes, base, &type, r->err));
    if (st == ESDM_OK && row->has_members)
        st = read_type_members(r, slots[MEMBERS], type);
    return st == ESDM_OK ? finish_type(r, type) : st;
}
