/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "comm/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/comm.h"

/* Each level has so many times fewer ranks. */
#define BRANCHES 8

/* ---- its shape ---------------------------------------------------------------------------- */

/* Member `at` of `count`: its parent is the member whose number ends with one more zero (to the
 * base of the branches), so that those below a member are a run of numbers. */
static size_t
parent_of(size_t at)
{
    size_t step = 1;
    while (at % (step * BRANCHES) == 0)
        step *= BRANCHES;
    return at - at % (step * BRANCHES);
}

/* Appends the children of member `at`, rising. @param members NULL: their own numbers. */
static void
add_children(esdm__tree *tree, const int *members, size_t count, size_t at)
{
    for (size_t step = 1; step < count && at % (step * BRANCHES) == 0; step *= BRANCHES) {
        for (size_t i = 1; i < BRANCHES && at + i * step < count; i++) {
            size_t child = at + i * step;
            tree->children[tree->nchildren++] = members != NULL ? members[child] : (int) child;
        }
    }
}

static size_t
place_of(const int *members, size_t count, int rank)
{
    size_t at = 0;
    while (at + 1 < count && members[at] != rank)
        at++;
    return at;
}

esdm_status
esdm__tree_make(const esdm_comm *comm, esdm__tree *ret_tree, esdm_error *err)
{
    const esdm_comm_nodes *nodes = comm->nodes;
    esdm__tree tree = {.parent = -1};
    size_t levels = 2;
    for (size_t step = 1; step < (size_t) comm->size; step *= BRANCHES)
        levels += 2;
    tree.children = malloc(levels * BRANCHES * sizeof *tree.children);
    if (tree.children == NULL)
        return esdm__error_nomem(err, levels * BRANCHES * sizeof *tree.children, "a tree of ranks");
    if (nodes == NULL) {
        add_children(&tree, NULL, (size_t) comm->size, (size_t) comm->rank);
        if (comm->rank > 0)
            tree.parent = (int) parent_of((size_t) comm->rank);
        *ret_tree = tree;
        return ESDM_OK;
    }
    size_t here = place_of(nodes->here, nodes->nhere, comm->rank);
    add_children(&tree, nodes->here, nodes->nhere, here);
    if (here > 0) {
        tree.parent = nodes->here[parent_of(here)];
    } else {
        size_t at = place_of(nodes->leaders, nodes->nleaders, comm->rank);
        add_children(&tree, nodes->leaders, nodes->nleaders, at);
        if (at > 0)
            tree.parent = nodes->leaders[parent_of(at)];
    }
    *ret_tree = tree;
    return ESDM_OK;
}

void
esdm__tree_clear(esdm__tree *tree)
{
    free(tree->children);
    *tree = (esdm__tree){.parent = -1};
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* What fits goes along with the head. */
#define HEAD_BYTES 1000u
/* The rest goes in messages of this size, which can be received even without memory for the whole.
 */
#define PART_BYTES ((size_t) 64 << 10)

typedef struct block_head {
    uint64_t bytes;
    uint64_t failed;
    uint8_t data[HEAD_BYTES];
} block_head;

static size_t
part_of(size_t bytes, size_t at)
{
    return bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
}

esdm_status
esdm__parts_send(esdm_comm *comm, int to, const void *data, size_t bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t at = 0; at < bytes; at += PART_BYTES) {
        esdm_status sent = comm->ops->send(comm, (const uint8_t *) data + at, part_of(bytes, at),
                                           to, status == ESDM_OK ? err : NULL);
        status = status == ESDM_OK ? sent : status;
    }
    return status;
}

/* Apart, as its stack is rarely needed. */
static __attribute__((noinline)) esdm_status
receive_in_vain(esdm_comm *comm, int from, size_t bytes, esdm_error *err)
{
    uint8_t lost[PART_BYTES];
    esdm_status status = ESDM_OK;
    for (size_t at = 0; at < bytes; at += PART_BYTES) {
        esdm_status received = comm->ops->receive(comm, lost, part_of(bytes, at), from,
                                                  status == ESDM_OK ? err : NULL);
        status = status == ESDM_OK ? received : status;
    }
    return status;
}

esdm_status
esdm__parts_receive(esdm_comm *comm, int from, void *data, size_t bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (data == NULL)
        return receive_in_vain(comm, from, bytes, err);
    for (size_t at = 0; at < bytes; at += PART_BYTES) {
        esdm_status received = comm->ops->receive(comm, (uint8_t *) data + at, part_of(bytes, at),
                                                  from, status == ESDM_OK ? err : NULL);
        status = status == ESDM_OK ? received : status;
    }
    return status;
}

esdm_status
esdm__block_send(esdm_comm *comm, int to, const void *data, size_t bytes, bool failed,
                 esdm_error *err)
{
    block_head head = {.bytes = failed ? 0 : bytes, .failed = failed};
    esdm_error why = {0};
    if (head.bytes > 0 && head.bytes <= HEAD_BYTES)
        memcpy(head.data, data, bytes);
    esdm_status status = comm->ops->send(comm, &head, sizeof head, to, err);
    if (head.bytes > HEAD_BYTES)
        why.status = esdm__parts_send(comm, to, data, bytes, status == ESDM_OK ? err : &why);
    return status == ESDM_OK ? why.status : status;
}

esdm_status
esdm__block_receive(esdm_comm *comm, int from, esdm__buffer *buffer, esdm_error *err)
{
    block_head head;
    esdm_status status = comm->ops->receive(comm, &head, sizeof head, from, err);
    buffer->failed |= status != ESDM_OK || head.failed != 0;
    if (status != ESDM_OK || head.bytes == 0)
        return status;
    size_t bytes = (size_t) head.bytes;
    uint8_t *to = buffer->failed ? NULL : esdm__buffer_reserve(buffer, bytes);
    if (bytes > HEAD_BYTES)
        status = esdm__parts_receive(comm, from, to, bytes, err);
    else if (to != NULL)
        memcpy(to, head.data, bytes);
    if (status == ESDM_OK && to != NULL)
        buffer->bytes += bytes;
    buffer->failed |= status != ESDM_OK || to == NULL;
    return status;
}

/* ---- what all ranks have ------------------------------------------------------------------ */

esdm_status
esdm__tree_collect(esdm_comm *comm, const esdm__tree *tree, esdm__buffer *buffer,
                   esdm__tree_condense condense, void *user, esdm_error *err)
{
    esdm_error why = {0};
    esdm_error first = {0};
    for (int i = 0; i < tree->nchildren; i++) {
        why.status = esdm__block_receive(comm, tree->children[i], buffer, &why);
        first = first.status == ESDM_OK ? why : first;
    }
    if (condense != NULL && !buffer->failed)
        condense(user, buffer);
    if (tree->parent >= 0) {
        why.status =
            esdm__block_send(comm, tree->parent, buffer->data, buffer->bytes, buffer->failed, &why);
        first = first.status == ESDM_OK ? why : first;
    }
    if (first.status != ESDM_OK && err != NULL)
        *err = first;
    return first.status;
}

esdm_status
esdm__tree_spread(esdm_comm *comm, const esdm__tree *tree, esdm__buffer *buffer, esdm_error *err)
{
    esdm_error why = {0};
    why.status = esdm__tree_collect(comm, tree, buffer, NULL, NULL, &why);
    if (why.status == ESDM_OK && buffer->failed)
        why.status = esdm__error_nomem(&why, buffer->bytes, "what all ranks tell");
    esdm_status status = esdm__comm_agree(comm, why.status, &why);
    if (status == ESDM_OK) {
        void *all = buffer->data;
        size_t bytes = buffer->bytes;
        status = esdm__comm_share_block(comm, &all, &bytes, &why);
        if (status == ESDM_OK && comm->rank != 0) {
            esdm__buffer_clear(buffer);
            *buffer = (esdm__buffer){.data = all, .bytes = bytes, .capacity = bytes};
        }
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}
