/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_COMM_H
#define ESDM_COMM_H

/**
 * @file
 * Several processes, the *ranks*, work on one container together.
 *
 * A container that was created or opened with an esdm_comm is *shared by its ranks*. Then
 * esdm_container_commit(), _close(), _refresh(), _discard(), esdm_container_align(),
 * esdm_write_collective() and esdm_read_collective() are *collective*: all ranks call them, in the
 * same order. Everything else is independent. Structure (dimensions, datasets, attributes, …) is
 * defined by every rank alike; what differs is found at the next commit or align, and every rank is
 * told what it is.
 *
 * - A commit publishes what all ranks wrote and defined as one snapshot, whole or not at all. When
 *   one rank fails, all get its error and nothing is published.
 * - A rank reads its own writes at once, those of others after a commit, or in
 *   esdm_read_collective().
 * - Where writes of different ranks overlap: what was written before a collective call wins over
 *   nothing, what was written after it wins over what was written before it, and between two
 *   collective calls the higher rank wins. esdm_write_collective() and esdm_read_collective() count
 *   as such for their own dataset only.
 * - An unlimited dimension has the same length on all ranks after a collective call that concerns
 *   it: the largest one.
 *
 * esdm/mpi.h makes an esdm_comm of an MPI communicator; other ways of sending messages can be had
 * by filling in the table.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct esdm_comm esdm_comm;

/**
 * Messages between ranks. All but send and receive are collective. Calls on one comm come from one
 * thread at a time. A failure (ESDM_EIO, text in `err`) means that the ranks may disagree on what
 * happened; it ends the work on the container. When a message fails on one rank once pages are
 * published, the commit returns ESDM_EIO on all, and so does every later collective call; what all
 * are told last is told twice, and a rank that misses one of the two goes on as the others do.
 */
typedef struct esdm_comm_ops {
    /** Copies `bytes` bytes from rank `root` to all. */
    esdm_status (*broadcast)(esdm_comm *comm, void *data, size_t bytes, int root, esdm_error *err);
    /** Replaces each number by the largest one of any rank. */
    esdm_status (*maximum)(esdm_comm *comm, uint64_t *values, size_t count, esdm_error *err);
    /** Sums (modulo 2^64) of each number over the lower ranks, and over all. */
    esdm_status (*sums)(esdm_comm *comm, const uint64_t *values, size_t count, uint64_t *ret_lower,
                        uint64_t *ret_all, esdm_error *err);
    /** Concatenates `bytes` bytes of each rank, in order of ranks, on all. */
    esdm_status (*gather)(esdm_comm *comm, const void *data, size_t bytes, void *ret_all,
                          esdm_error *err);
    /** Returns when rank `to` is receiving: a sender has no more than one message under way. */
    esdm_status (*send)(esdm_comm *comm, const void *data, size_t bytes, int to, esdm_error *err);
    /** Of exactly that many bytes, as sent. */
    esdm_status (*receive)(esdm_comm *comm, void *data, size_t bytes, int from, esdm_error *err);
    /** Frees the comm; called once, when nobody uses it any more. */
    void (*release)(esdm_comm *comm);
} esdm_comm_ops;

/** Which ranks share a node, so that messages go inside nodes where they can. */
typedef struct esdm_comm_nodes {
    const int *here; /**< the ranks of this rank's node, rising */
    size_t nhere;
    const int *leaders; /**< the lowest rank of each node, rising; the same on all ranks */
    size_t nleaders;
} esdm_comm_nodes;

struct esdm_comm {
    const esdm_comm_ops *ops;
    int rank; /**< 0 … size-1 */
    int size;
    unsigned references;          /**< set to 1 by whoever makes it */
    const esdm_comm_nodes *nodes; /**< borrowed, as long as the comm lives; NULL on all ranks: the
                                     nodes are not known */
};

/** One more user of the comm. Returns it. */
ESDM_API esdm_comm *esdm_comm_ref(esdm_comm *comm);
/** The last user releases it. NULL is accepted. */
ESDM_API void esdm_comm_unref(esdm_comm *comm);

/**
 * Collective esdm_session_open(). Rank 0 alone connects to the metadata store, and tells the others
 * what they need; one of these connects when it asks for something by itself: opens a container
 * alone, lists the catalogue, or reads through a handle that writes what was committed. All ranks
 * use the same site (one whose configuration names the metadata store otherwise asks by itself).
 *
 * @param options may be NULL; the same on all ranks.
 * @param comm used during the call alone.
 * @param have a session of that site that this rank has open, which it then goes on with; NULL:
 *        none. Ranks may differ in that.
 * @param ret_session owned, as by esdm_session_open(); or `have`.
 * @return all ranks succeed, or all fail with the same error.
 */
ESDM_API ESDM_MUST_CHECK esdm_status
esdm_session_open_collective(const esdm_session_options *options, esdm_comm *comm,
                             esdm_session *have, esdm_session **ret_session, esdm_error *err);

/**
 * Collective esdm_container_create(). All ranks give the same name and mode and use the same site;
 * rank 0 looks whether the name is free. All ranks succeed, or all fail with the same error.
 *
 * @param comm the container takes a reference of its own.
 * @return also ESDM_EINVAL when the ranks disagree, ESDM_ENOTSUP when a target of the site cannot
 *         be read by other processes.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_create_collective(
    esdm_session *session, esdm_comm *comm, const char *name, esdm_create_mode mode,
    esdm_container **ret_container, esdm_error *err);

/**
 * Collective esdm_container_open(). Rank 0 reads the structure and sends it to the others; all have
 * the same snapshot.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_open_collective(
    esdm_session *session, esdm_comm *comm, const char *name, esdm_open_mode mode,
    uint64_t snapshot, esdm_container **ret_container, esdm_error *err);

/** The comm a container is shared by; borrowed. NULL: it is this process's alone. */
ESDM_API esdm_comm *esdm_container_comm(const esdm_container *container);

/**
 * Collective: checks that all ranks defined the same structure, makes the lengths of unlimited
 * dimensions equal, and orders writes. Publishes nothing.
 * Where only the value of an attribute differs (a time, a host), all ranks get rank 0's:
 * esdm_container_settled().
 * @return ESDM_EINVAL on all ranks when definitions differ; the message says in what.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_align(esdm_container *container,
                                                          esdm_error *err);

/**
 * What ranks stated differently and the last commit or align settled by taking rank 0's: one of
 * the attributes. The same on all ranks; asking forgets it. Not collective.
 * @param text receives "attribute 'history' of '/'", cut at `bytes`; untouched when there is none.
 */
ESDM_API bool esdm_container_settled(esdm_container *container, char *text, size_t bytes);

/**
 * Collective. All ranks tell what they are about to write to, or read from, the dataset: they learn
 * its lengths (and those that the writes will give it), writes are ordered against what other
 * ranks wrote before, and what others wrote and a rank is about to read becomes visible. The
 * transfers themselves follow with esdm_write() or esdm_read().
 *
 * @param space what this rank is about to transfer; NULL: nothing. Reads may lie past the lengths
 *              that this rank knows.
 * @return failures of messages, or of what another rank had to do for a read: the same on all.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_align(esdm_dataset *dataset,
                                                        const esdm_dataspace *space, bool writing,
                                                        esdm_error *err);

/**
 * Collective esdm_write(): also orders the writes of all ranks to this dataset, and all learn the
 * lengths that its dimensions get. A rank that fails does so alone.
 * @param space NULL: this rank writes nothing, but takes part.
 */
ESDM_API ESDM_MUST_CHECK esdm_status
esdm_write_collective(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                      const void *buffer, uint64_t *ret_out_of_range, esdm_error *err);

/**
 * Collective esdm_read(): sees what any rank wrote to the dataset before the call, committed or
 * not, and all lengths. @param space NULL: this rank reads nothing, but takes part.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_read_collective(esdm_dataset *dataset,
                                                          const esdm_dataspace *space,
                                                          esdm_type memory_type, void *buffer,
                                                          uint64_t *ret_out_of_range,
                                                          esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
