/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/line_bases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* How often a line is looked for that goes, or gets another name, while it is looked at. */
#define LOOKS 8

/* A line with what its snapshot has. */
typedef struct candidate {
    const esdm__vector_item *item;
    esdm__line l;
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__vector has;
    bool below; /* another one has it */
} candidate;

typedef struct finding {
    esdm_session *session;
    const char *name;
    esdm__line_bases *ret;
    esdm__vector known[ESDM__BASES_NODES]; /* of what each node is the base */
} finding;

/* In the order in which they are merged with each other: it decides about three and more. Vectors
 * have theirs by chance. */
static int
by_branch(const void *a, const void *b)
{
    const esdm__vector_item *x = ((const candidate *) a)->item;
    const esdm__vector_item *y = ((const candidate *) b)->item;
    int order = strcmp(x->branch, y->branch);
    return order != 0 ? order : strcmp(x->id, y->id);
}

/* What its snapshot has, which is whole where the line is there afterwards. Else it is looked for
 * again, under another name: no program is as fast as that each time. */
static esdm_status
load_one(const finding *f, candidate *c, esdm_error *err)
{
    bool there = false;
    esdm_status status = ESDM_OK;
    for (int i = 0; i < LOOKS && !there && status == ESDM_OK; i++) {
        esdm__vector_clear(&c->has);
        status = esdm__line_by_id(f->session, f->name, c->item->branch, c->item->id, &c->l, c->name,
                                  err);
        if (status != ESDM_OK || c->l.record == 0)
            return status;
        status = esdm__line_vector(f->session, c->name, &c->l, c->item->snapshot, &c->has, err);
        if (status == ESDM_OK)
            status = esdm__line_is_there(f->session, &c->l, &there, err);
    }
    if (status == ESDM_OK && !there) {
        esdm__vector_clear(&c->has);
        c->l.record = 0;
    }
    return status;
}

static esdm_status
load(const finding *f, const esdm__vector *both, candidate *all, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < both->count; i++)
        all[i].item = &both->items[i];
    qsort(all, both->count, sizeof *all, by_branch);
    for (size_t i = 0; i < both->count && status == ESDM_OK; i++)
        status = load_one(f, &all[i], err);
    for (size_t i = 0; i < both->count && status == ESDM_OK; i++) {
        for (size_t k = 0; k < both->count; k++) {
            if (k != i && !all[k].below &&
                esdm__vector_get(&all[k].has, all[i].item->id) >= all[i].item->snapshot)
                all[i].below = true;
        }
    }
    return status;
}

/* @return the number of the node. */
static uint8_t
add_node(finding *f, esdm__base_node node)
{
    esdm__bases *bases = &f->ret->bases;
    if (bases->count == ESDM__BASES_NODES)
        return ESDM__BASE_UNKNOWN;
    bases->nodes[bases->count] = node;
    return (uint8_t) bases->count++;
}

static uint8_t
add_leaf(finding *f, const candidate *c)
{
    esdm__bases *bases = &f->ret->bases;
    size_t i = 0;
    if (c->l.record == 0) { /* what it had is not known */
        f->ret->lacks = true;
        return ESDM__BASE_UNKNOWN;
    }
    while (i < bases->nleaves && (f->ret->leaves[i].snapshot != c->item->snapshot ||
                                  f->ret->leaves[i].record != c->l.record))
        i++;
    if (i == ESDM__BASES_LEAVES)
        return ESDM__BASE_UNKNOWN;
    if (i == bases->nleaves) {
        esdm__base_leaf *leaf = &f->ret->leaves[bases->nleaves++];
        leaf->snapshot = c->item->snapshot;
        leaf->record = c->l.record;
        (void) snprintf(leaf->holder, sizeof leaf->holder, "%s", c->l.stored);
        (void) snprintf(leaf->line, sizeof leaf->line, "%s", c->name);
    }
    return add_node(f, (esdm__base_node){.leaf = (uint8_t) i, .is_leaf = true});
}

static esdm_status find(finding *f, const esdm__vector *both, uint8_t *ret, esdm_error *err);

/* The next one to those before, of which `has` is all that they have. */
static esdm_status
join(finding *f, esdm__vector *has, const candidate *c, uint8_t *node, esdm_error *err)
{
    esdm__vector both = {0};
    uint8_t base = ESDM__BASE_UNKNOWN;
    esdm_status status = esdm__vector_meet(has, &c->has, &both, err);
    if (status == ESDM_OK && both.count > 0)
        status = find(f, &both, &base, err);
    if (status == ESDM_OK) {
        uint8_t other = add_leaf(f, c);
        *node = add_node(f, (esdm__base_node){.base = base, .one = *node, .other = other});
        status = esdm__vector_join(has, &c->has, err);
    }
    esdm__vector_clear(&both);
    return status;
}

static esdm_status
find_in(finding *f, const esdm__vector *both, candidate *all, uint8_t *ret, esdm_error *err)
{
    esdm__vector has = {0};
    bool first = true;
    esdm_status status = load(f, both, all, err);
    for (size_t i = 0; i < both->count && status == ESDM_OK; i++) {
        if (all[i].below)
            continue;
        if (first) {
            *ret = add_leaf(f, &all[i]);
            status = esdm__vector_join(&has, &all[i].has, err);
        } else {
            status = join(f, &has, &all[i], ret, err);
        }
        first = false;
    }
    esdm__vector_clear(&has);
    return status;
}

/* @param both has less with each call below another one. */
static esdm_status
find(finding *f, const esdm__vector *both, uint8_t *ret, esdm_error *err)
{
    *ret = ESDM__BASE_UNKNOWN;
    for (size_t i = 0; i < f->ret->bases.count; i++) {
        if (f->known[i].count > 0 && esdm__vector_equal(&f->known[i], both)) {
            *ret = (uint8_t) i;
            return ESDM_OK;
        }
    }
    if (f->ret->bases.count == ESDM__BASES_NODES)
        return ESDM_OK;
    candidate *all = calloc(both->count + 1, sizeof *all);
    if (all == NULL)
        return esdm__error_nomem(err, both->count * sizeof *all, "lines");
    esdm_status status = find_in(f, both, all, ret, err);
    for (size_t i = 0; i < both->count; i++)
        esdm__vector_clear(&all[i].has);
    free(all);
    if (status == ESDM_OK && *ret != ESDM__BASE_UNKNOWN && f->known[*ret].count == 0)
        status = esdm__vector_join(&f->known[*ret], both, err);
    return status;
}

esdm_status
esdm__line_find_bases(esdm_session *session, const char *name, const esdm__vector *both,
                      esdm__line_bases *ret, esdm_error *err)
{
    finding *f = calloc(1, sizeof *f);
    *ret = (esdm__line_bases){0};
    if (f == NULL)
        return esdm__error_nomem(err, sizeof *f, "lines");
    *f = (finding){.session = session, .name = name, .ret = ret};
    esdm_status status = find(f, both, &ret->bases.last, err);
    for (size_t i = 0; i < ESDM__BASES_NODES; i++)
        esdm__vector_clear(&f->known[i]);
    free(f);
    return status;
}
