/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_ENCODE_CHOOSE_H
#define ESDM_IO_ENCODE_CHOOSE_H

/**
 * @file
 * Chooses the codecs of a dataset that states what it wants, by trying a few chains on blocks of
 * the data at hand. What was chosen stands in the record and the head of each fragment.
 *
 * cost = stored bytes / bandwidth + time to encode + w * time to decode, for the mode's bandwidth
 * and w; speeds that are stated are limits. Times are those of one thread's CPU.
 */

#include "codec/blob.h"
#include "esdm/accuracy.h"

/** What was chosen for a dataset. Guarded by the dataset's write lock. */
typedef struct esdm__choice {
    bool made;
    esdm__chain chain;
    esdm_codec_effort effort;
    bool exact;         /* numbers are kept, though they may be off */
    uint64_t fragments; /* that were written since */
    double ratio;       /* raw to stored bytes of the first of these; 0: not known yet */
    struct {
        uint64_t raw_bytes;
        uint64_t stored_bytes;
        uint32_t fragments;
    } latest;       /* of some fragments */
    bool drifted;   /* their ratio is another one */
    double loosest; /* bound of a committed fragment, where bounds come from values; 0: not known */
    uint64_t loosest_snapshot; /* of which it is */
} esdm__choice;

/** By so many fragments at most it is chosen. */
#define ESDM__CHOICE_FRAGMENTS 3u

/** What the chooser is told. */
typedef struct esdm__wish {
    esdm_accuracy_mode mode;
    double compression_speed; /* bytes per second at least; 0: not asked for */
    double decompression_speed;
    double bandwidth; /* bytes per second that storage takes of a thread; 0: not known */
    const esdm__blob_numbers *numbers; /* fragments; their chains and efforts do not count */
    uint32_t count;                    /* of these; each may be off, or none */
} esdm__wish;

/** Bytes per second that the measured targets of a site take together; 0: not known. */
double esdm__storage_bandwidth(esdm_session *session);
/** Whether to choose anew: nothing was chosen, long ago, or the data are not what they were. */
bool esdm__choice_is_due(const esdm__choice *choice);
/** Chooses. *choice stays as it was on failure (ESDM_ENOMEM, or what a codec reports). */
esdm_status esdm__choose(const esdm__wish *wish, esdm__choice *choice, esdm_error *err);
/** Notes what became of a fragment. */
void esdm__choice_note(esdm__choice *choice, uint64_t raw_bytes, uint64_t stored_bytes);

#endif
