/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_COMM_TREE_H
#define ESDM_COMM_TREE_H

/**
 * @file
 * A tree of ranks with rank 0 at its root, for what many ranks have and one wants: O(log R) deep,
 * inside nodes first when the comm tells them (esdm_comm_nodes). One thread of a rank.
 */

#include "base/buffer.h"
#include "esdm/comm.h"

/** Where a rank stands. */
typedef struct esdm__tree {
    int parent;    /* -1: the root */
    int nchildren; /* rising numbers, and with ranks that are numbered node by node each has a run
                      of ranks below it */
    int *children; /* owned */
} esdm__tree;

/** Not collective. @param ret_tree esdm__tree_clear(). */
esdm_status esdm__tree_make(const esdm_comm *comm, esdm__tree *ret_tree, esdm_error *err);
void esdm__tree_clear(esdm__tree *tree);

/** What a rank makes of its own and its children's bytes, which follow each other in order of
 *  ranks, before they go on. May set `failed`. */
typedef void (*esdm__tree_condense)(void *user, esdm__buffer *buffer);

/**
 * Collective: rank 0 gets what all ranks have. Where a rank has no memory, its buffer and those
 * above become `failed`.
 *
 * @param buffer of this rank; afterwards of the ranks below it, too. Empty ranks cost a message.
 * @return that messages failed; they are all sent and received nevertheless.
 */
esdm_status esdm__tree_collect(esdm_comm *comm, const esdm__tree *tree, esdm__buffer *buffer,
                               esdm__tree_condense condense, void *user, esdm_error *err);

/**
 * Collective: all ranks get what all ranks have, behind each other in order of ranks, by one round
 * up the tree and one message to all.
 *
 * @param buffer of this rank; afterwards of all.
 * @return on all ranks the same, as of esdm__comm_agree(): also ESDM_ENOMEM.
 */
esdm_status esdm__tree_spread(esdm_comm *comm, const esdm__tree *tree, esdm__buffer *buffer,
                              esdm_error *err);

/** Sends bytes in messages of bounded size, all of them whatever fails. */
esdm_status esdm__parts_send(esdm_comm *comm, int to, const void *data, size_t bytes,
                             esdm_error *err);
/** Receives what esdm__parts_send() sends. @param data NULL: there is no memory, but the sender
 *  waits. */
esdm_status esdm__parts_receive(esdm_comm *comm, int from, void *data, size_t bytes,
                                esdm_error *err);
/** Sends a block of any length, whose receiver does not know how long it is. @param failed it is
 *  told instead. */
esdm_status esdm__block_send(esdm_comm *comm, int to, const void *data, size_t bytes, bool failed,
                             esdm_error *err);
/** Appends a block to the buffer, which becomes `failed` when the sender says so or there is no
 *  memory. */
esdm_status esdm__block_receive(esdm_comm *comm, int from, esdm__buffer *buffer, esdm_error *err);

#endif
