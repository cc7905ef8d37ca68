/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_ELSEWHERE_H
#define ESDM_IO_READ_ELSEWHERE_H

/**
 * @file
 * What the engine calls for fragments whose values are neither in a pack of the site nor in an
 * index page: one table of functions for each kind (layout/fragment.h), listed in elsewhere.c. What
 * their descriptions contain is in layout/source.h; io/write/refer.h makes such fragments.
 */

#include "io/container/dataset_io.h"
#include "layout/source.h"

/** Elements that are wanted: along each axis `count`, from `lo` on every `step`-th one. They lie in
 *  the box of the fragment. */
typedef struct esdm__source_request {
    esdm_dataset *dataset;          /* borrowed; that of the fragment */
    const esdm__fragment *fragment; /* borrowed; dense, of this kind */
    const esdm__elements *elements; /* borrowed; of the dataset */
    uint64_t lo[ESDM_MAX_RANK];     /* indices of the dataset */
    uint64_t count[ESDM_MAX_RANK];
    uint64_t step[ESDM_MAX_RANK];
    /** For the first element, in the engine's form of the dataset (`elements->type`); texts are
     *  `char *`: NULL before, then malloc'ed or NULL. */
    void *target;
    int64_t target_stride[ESDM_MAX_RANK]; /* in elements */
} esdm__source_request;

/**
 * One kind of source. Functions may be called by several threads at once, also by those of the
 * session's pool; no lock is held. They may block, and they may read other containers of the
 * session. What they keep between calls is session->sources[kind] (io/session/session.h).
 */
typedef struct esdm__source_ops {
    const char *name; /* "foreign" */
    /** Fills the target. When it fails, what is there is undefined; texts are freed by the caller.
     *  ESDM_ENOENT: the source is gone; ESDM_ECONFLICT: it is not what it was; ESDM_ENOTSUP: it
     *  cannot be decoded here; ESDM_ECORRUPT, ESDM_EIO, ESDM_EACCES, ESDM_ENOMEM. Messages need not
     *  name the fragment. */
    esdm_status (*read)(esdm_session *session, const esdm__source_request *request,
                        esdm_error *err);
    /** For esdm-fsck: whether the source is there and what it was. @param data read all of it.
     *  Errors as above. NULL: not looked at. */
    esdm_status (*check)(esdm_session *session, const esdm__fragment *fragment, bool data,
                         esdm_error *err);
    /** What and where, in one line, for messages and esdm-stat. */
    void (*describe)(const esdm__fragment *fragment, char *text, size_t room);
    /** Whether several threads read boxes of a part of it faster than one the part. NULL: never. */
    bool (*is_divisible)(esdm_session *session, const esdm__fragment *fragment,
                         const esdm__box *part);
} esdm__source_ops;

/** NULL: this program cannot read such fragments. */
const esdm__source_ops *esdm__source_ops_of(uint8_t kind);
/** What and where the values of a fragment are; any kind. */
void esdm__source_describe(const esdm__fragment *fragment, char *text, size_t room);
/** Reads elements; ESDM_ENOTSUP for kinds that nobody knows here. */
esdm_status esdm__source_read(const esdm__source_request *request, esdm_error *err);

#endif
