/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_ROUND_H
#define ESDM_IO_WRITE_ROUND_H

/**
 * @file
 * The fragments that the pool makes at once of a box that is written: their elements are gathered
 * from the caller's memory, codecs are chosen for them, and each is encoded and stored. How a box
 * is cut into fragments and rounds is in write_fragments.c.
 */

#include "io/container/accuracy.h"
#include "io/container/missing.h"
#include "io/encode/choose.h"
#include "io/write/append.h"
#include "io/write/write.h"

/** A fragment in the making. */
typedef struct esdm__slot {
    esdm__fragment fragment;
    esdm__box part;          /* of the round's box */
    esdm__whereabouts where; /* in the regions of the accuracy */
    esdm__appended stored;
    void *inline_data; /* owned; NULL for fragments in packs */
    void *outline;     /* owned; NULL for others, and where none is kept */
} esdm__slot;

/** By which codecs fragments are stored. */
typedef struct esdm__way {
    const esdm__chain *chain;
    esdm__choice *chosen; /* where the chain comes from; NULL: it was stated, or is the site's */
    esdm_codec_effort effort;
    bool exact; /* numbers are kept, whatever may become of them */
} esdm__way;

/** A write box in the caller's memory, and the fragments that one round of the pool makes of it. */
typedef struct esdm__round {
    const esdm__transfer *transfer; /* the next four are from it */
    esdm_dataset *dataset;
    esdm__dataset_io *io;
    const esdm__elements *elements;
    const esdm_dataspace *strided; /* the selection whose indices the box holds; NULL: dense */
    const esdm__box *box;
    esdm__slot *slots;                 /* of the fragments of one round */
    size_t batch;                      /* slots there are */
    atomic_uint_fast64_t behind_bytes; /* raw ones of the round that nobody has stored yet */
    bool inline_room;
    bool small;                     /* more than usual may stay in the index page (small.h) */
    bool by_content;                /* values say where fragments begin */
    const esdm__accuracy *accuracy; /* what the dataset states */
    esdm__missing missing;          /* what does not count in statistics */
    const esdm__region_map *map;    /* of its regions; NULL: there are none, or nobody knows */
    esdm__way ways[2];              /* elsewhere, and where a region is touched */
    struct esdm__equals *equals;    /* what is stored already; NULL: nothing is looked for */
    atomic_uint_fast64_t out_of_range;
} esdm__round;

/** Raw bytes of a fragment, about: elements may vary in length. */
uint64_t esdm__round_part_bytes(const esdm__round *r, size_t i);
/** The codecs of a round: those of fragments that touch a region, and of others. Under write_lock.
 */
esdm_status esdm__round_choose_codecs(esdm__round *r, size_t count, esdm_error *err);
/** Stores one fragment in a pack, or in its record: for the pool. @param context the round. */
esdm_status esdm__round_store(void *context, size_t i, esdm_error *err);
/** Tells the choices of codecs what the stored fragments take. */
void esdm__round_note_sizes(const esdm__round *r, size_t count);

#endif
