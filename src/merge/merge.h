/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MERGE_MERGE_H
#define ESDM_MERGE_MERGE_H

/**
 * @file
 * What one line of commits changed since a snapshot, made to another line: one began with the
 * other.
 *
 * Three sides: *base*, the snapshot that both have in common; *theirs*, where it was changed;
 * *ours*, which gets the change. What changed of values is told by the order of fragments: theirs
 * are those published after the base; where the base is a snapshot of another line those published
 * since the lines parted, but for what the base or ours shows, too. They are entered into ours as
 * they are, no byte is copied.
 * Where ours has fragments since the two parted, too, the values of all three are read: an element
 * is in conflict when both differ from the base and from each other. Where ours must stay, its
 * values are written again over theirs. Groups, dimensions, variables and attributes are compared
 * one by one.
 * Threads: one.
 */

#include "esdm/branch.h"
#include "io/container/container_io.h"
#include "io/packs/pack_guard.h"
#include "layout/records.h"

#define ESDM__BASES_LEAVES 48u
#define ESDM__BASES_NODES  160u
#define ESDM__BASE_UNKNOWN UINT8_MAX /* as a node, and as what is picked */

/** What two lines have in common: a snapshot, or two such things merged, since a third one. */
typedef struct esdm__base_node {
    bool is_leaf;
    uint8_t leaf;             /* number of the snapshot */
    uint8_t base, one, other; /* nodes */
} esdm__base_node;

/** Snapshots of which no one has all that both lines have, and how they are one base. Those before
 *  a node are before it in the list. */
typedef struct esdm__bases {
    esdm_container *leaves[ESDM__BASES_LEAVES]; /* for reading */
    size_t nleaves;
    esdm__base_node nodes[ESDM__BASES_NODES];
    size_t count;
    uint8_t last; /* the node that is the base */
} esdm__bases;

/** Whether two of the snapshots have the same. @param i which element of many. */
typedef bool (*esdm__bases_same)(const void *user, uint32_t one, uint32_t other, uint64_t i);
/** The snapshot that has what both lines have; ESDM__BASE_UNKNOWN: both have changed it before they
 *  were merged, and nobody knows which one is meant. */
uint8_t esdm__bases_pick(const esdm__bases *bases, esdm__bases_same same, const void *user,
                         uint64_t i);

/** Why a merge is asked for, and how it goes. Handles are borrowed. */
typedef struct esdm__merging {
    esdm_container *fork;   /* what both began with; NULL: not known */
    esdm_container *base;   /* what both have; the first one of `bases` where these are several */
    esdm__bases *bases;     /* NULL: `base` has all, and is known */
    esdm_container *theirs; /* for reading */
    esdm_container *before; /* ours, for reading, as it was when `ours` was opened */
    esdm_container *ours;   /* for writing; nobody else writes over this handle */
    const esdm_merge_options *options;
    esdm_merge_result *result;
    bool whole;              /* theirs has all of ours: nothing is compared */
    bool apart;              /* the base is of another line than `theirs` */
    bool known;              /* ours has changes of theirs since the base already */
    uint64_t after;          /* fragments of theirs up to this snapshot are in the base */
    bool writes;             /* else conflicts are only looked for */
    bool shares;             /* `ours` refers to packs that theirs refers to */
    esdm__pack_guard *guard; /* of the packs that are named; NULL: nothing is written */
} esdm__merging;

/** Makes the change; with `writes` it is pending in `ours` then. Conflicts are told and counted,
 * and are no failure. */
esdm_status esdm__merge_branch(esdm__merging *m, esdm_error *err);

/* ---- parts ---------------------------------------------------------------------------------- */

/** Tells a conflict, and whether theirs wins. @param decidable by a preference.
 *  @param path of the object. */
bool esdm__merge_conflict(esdm__merging *m, esdm_merge_conflict *conflict, bool decidable);

/** Groups, dimensions, variables, attributes. */
esdm_status esdm__merge_structure(esdm__merging *m, esdm_error *err);
/** How many snapshots make the base, and one of them. */
uint32_t esdm__merge_leaves(const esdm__merging *m);
esdm_container *esdm__merge_leaf(const esdm__merging *m, uint32_t leaf);
/** The dataset of a snapshot of the base; NULL: there was none. */
esdm_dataset *esdm__merge_before(const esdm__merging *m, const esdm_dataset *theirs, uint32_t leaf);
/** The dataset of `in` that is the same as one of theirs; NULL: there is none. */
esdm_dataset *esdm__merge_same(const esdm__merging *m, esdm_container *in,
                               const esdm_dataset *theirs);

/** The dimension of `in` that is the same. */
esdm_dimension *esdm__merge_dimension_in(const esdm__merging *m, esdm_container *in,
                                         const esdm_dimension *theirs);

/** Whether two datasets can hold each other's fragments. */
bool esdm__merge_fits(const esdm_dataset *theirs, const esdm_dataset *ours);

/** Values of one dataset. @param bases of all snapshots of the base; NULL: it has none.
 *  @param ours,before NULL: there is none (yet). */
esdm_status esdm__merge_values(esdm__merging *m, esdm_dataset *theirs, esdm_dataset *const *bases,
                               esdm_dataset *before, esdm_dataset *ours, esdm_error *err);

/** Boxes of one dataset. Zero-initialise. */
typedef struct esdm__boxes {
    esdm__box *items; /* owned */
    size_t count;
    size_t capacity;
    bool failed; /* out of memory */
} esdm__boxes;
void esdm__boxes_add(esdm__boxes *boxes, const esdm__box *box);
void esdm__boxes_clear(esdm__boxes *boxes);
/** Takes out what is there twice. */
esdm_status esdm__boxes_part(esdm__boxes *boxes, esdm_error *err);
/** Puts boxes together that lie side by side. They do not meet. */
void esdm__boxes_join(esdm__boxes *boxes);
/** Adds the elements of a box that are marked, as boxes that do not meet. @param marks one byte an
 *  element, in C order. */
void esdm__boxes_of_marks(esdm__boxes *boxes, const esdm__box *box, const uint8_t *marks);

/** Fragments of theirs that were published after the base. */
typedef struct esdm__merge_changes {
    esdm__records records;
    esdm__packs *packs; /* names that the records point to */
    uint32_t *order;    /* owned: those that can be seen, oldest first */
    size_t count;
    esdm__boxes *visible; /* owned; what of each record can be seen, for each of `order` */
} esdm__merge_changes;
/** @param ret zeroed; esdm__merge_changes_clear() in any case. */
esdm_status esdm__merge_changes_load(const esdm__merging *m, esdm_dataset *theirs,
                                     esdm__merge_changes *ret, esdm_error *err);
void esdm__merge_changes_clear(esdm__merge_changes *changes);
/** Takes out fragments of which all that can be seen is seen in one of two other datasets as well.
 *  @param base,ours may be NULL. @param known set where it is seen in ours alone. */
esdm_status esdm__merge_changes_drop_known(esdm__merge_changes *changes, esdm_dataset *base,
                                           esdm_dataset *ours, bool *known, esdm_error *err);

#endif
