/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_REPLAY_H
#define ESDM_JOURNAL_REPLAY_H

/** @file One container, made of what a backup has of it and what the journals tell since. */

#include "journal/scan.h"
#include "site/admin.h"
#include "site/catalogue.h"

/** What is known of a container afterwards. */
typedef struct esdm__replayed {
    uint64_t commits;      /* that were added */
    uint64_t moved;        /* pages whose fragments lie elsewhere since */
    uint64_t lost_commits; /* between those that are known: no journal tells of them */
    uint64_t lost_packs;   /* that its pages name, and that are on no target */
    uint64_t tags;         /* that are others than before, or of another snapshot */
    uint64_t lost_tags;    /* whose snapshots are not there */
    uint64_t damaged;      /* records that could not be read */
    bool failed;           /* out of memory */
} esdm__replayed;

/** What the site says about it. */
typedef struct esdm__replay_rules {
    const char *name;           /* for messages */
    const esdm__report_to *say; /* what is lost */
    esdm__retention keep;       /* snapshots */
    uint64_t tags_since_ns;     /* tags that the journals tell of before that time are in `whole` */
} esdm__replay_rules;

/**
 * Adds what the journals tell.
 * @param whole what is known of the container, all pages loaded; one that is all zeros but for its
 *        uuid to begin with nothing. Its name stays.
 * @param refs those of its uuid, in their order.
 * @return ESDM_ENOENT: nothing can be made of it, for its structure is not known.
 */
esdm_status esdm__replay(const esdm__scan *scan, const esdm__journal_ref *refs, size_t nrefs,
                         const esdm__replay_rules *rules, esdm__whole *whole,
                         esdm__replayed *ret_result, esdm_error *err);

/* Tags: replay_tags.c */

/** Gives the tags of which the journals tell since, in the order of time; what the catalogue has
 *  for a name since a later time stays. */
esdm_status esdm__replay_tags(const esdm__scan *scan, const esdm__journal_ref *refs, size_t nrefs,
                              uint64_t since_ns, esdm__whole *whole, esdm__replayed *result,
                              esdm_error *err);
/** Drops tags whose snapshots are not there, and tells of them. */
void esdm__replay_check_tags(esdm__whole *whole, const esdm__replay_rules *rules,
                             esdm__replayed *result);

/** Loads the pages of a container from its store, so that esdm__replay() can compare them. */
esdm_status esdm__replay_load_pages(const esdm__catalogue *from, esdm__whole *whole,
                                    esdm_error *err);

#endif
