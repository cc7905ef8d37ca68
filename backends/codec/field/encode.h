/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_ENCODE_H
#define FIELD_ENCODE_H

/** @file What the steps of encoding one block share. */

#include "groups.h"
#include "levels.h"
#include "lorenzo.h"
#include "map.h"
#include "mask.h"
#include "pack.h"
#include "parts.h"
#include "predict.h"

/** Of all blocks but those of coder PACK without differences, which came later: who does not know
 *  these is to say so. A reader takes either for any. */
#define FIELD__VERSION       1u
#define FIELD__VERSION_PLAIN 2u
/** Of blocks of coder LORENZO or with a map of PIECES, which came later still. */
#define FIELD__VERSION_LORENZO 3u
/** Of blocks in parts, which came after these. */
#define FIELD__VERSION_PARTS 4u
/** Of blocks of coder GROUPS, which came then. */
#define FIELD__VERSION_GROUPS 5u
/** Of blocks of coder LEVELS whose first elements are nudged for the sum, which came last. */
#define FIELD__VERSION_NUDGED 6u

/** How the codes are stored. */
typedef enum field__coder {
    FIELD__CODER_BYTES,   /**< no codes: the elements, compressed as bytes */
    FIELD__CODER_NONE,    /**< no codes: every point is masked */
    FIELD__CODER_ROWS,    /**< predict.h */
    FIELD__CODER_LEVELS,  /**< levels.h */
    FIELD__CODER_PACK,    /**< pack.h */
    FIELD__CODER_LORENZO, /**< lorenzo.h */
    FIELD__CODER_GROUPS,  /**< groups.h */
    FIELD__CODERS
} field__coder;

#define FIELD__FLAG_MASK  1u
#define FIELD__FLAG_WIDE  2u
#define FIELD__FLAG_ONE   4u /* all elements under the mask are the same, which is stored once */
#define FIELD__FLAG_PARTS 8u /* of format 6: in parts */

#define FIELD__PROBES 2048
/** Points spread over the block that are not masked. */
typedef struct field__probes {
    double values[FIELD__PROBES + 1];
    size_t count;
    size_t numbers; /**< of them that are not 0 */
} field__probes;

/** Probes that were taken while so many points were masked: masks only grow, but where the block is
 *  split once more. */
typedef struct field__taken {
    field__probes probes;
    size_t masked; /**< SIZE_MAX: none were taken */
} field__taken;

typedef struct field__job {
    const field__block *block;
    const esdm_codec_accuracy *accuracy; /**< NULL: lossless */
    esdm_codec_effort effort;
    field__kind kind;
    const void *raw;
    field__axes axes;
    uint8_t *mask;       /**< owned; block->elements bytes */
    size_t masked;       /**< points in it */
    double least, most;  /**< of the points not masked; least > most: there are none */
    double smallest;     /**< the smallest size that is not 0; INFINITY: none */
    double apart;        /**< the largest size of what was masked as it stands apart; 0: nothing */
    double tighter;      /**< factor of bounds for the map: room to move codes for the sum */
    bool refined;        /**< the map has fine steps, on which levels left nearly all numbers */
    field__taken *taken; /**< borrowed; see field__probes_of() */
} field__job;

/** As field__encode(), of a block whose shape is right; of a few numbers, some may change once more
 *  when they are written again. */
esdm_status field__encode_once(const field__block *block, const esdm_codec_accuracy *accuracy,
                               esdm_codec_effort effort, const void *raw, esdm__buffer *out,
                               esdm_error *err);

/** What of a bound points are checked against: the check itself rounds. */
#define FIELD__BOUND_KEPT (1 - 0x1p-50)

/** Largest error allowed at a value. */
double field__bound(const esdm_codec_accuracy *accuracy, double value);

/** Masks NaN, infinities, what must be exact and what stands far outside; sets the statistics. */
esdm_status field__split(field__job *job, esdm_error *err);
/** Sets the statistics of the points that are not masked. */
void field__survey(field__job *job);

/** A grid on which nearly all values lie: exact, with the base, multiplier and divisor of `map`. */
bool field__grid_find(const field__job *job, field__map *map);
/**
 * Makes a palette when values repeat enough for it to be worth its bytes.
 * @param ret_ranks owned by the caller: codes of all elements; NULL: no palette, map untouched.
 */
esdm_status field__palette_make(const field__job *job, field__map *map, uint32_t **ret_ranks,
                                esdm_error *err);
esdm_status field__palette_put(const field__map *map, esdm__buffer *out, esdm_error *err);
/** At most `elements` values; map->type is set. */
esdm_status field__palette_get(field__map *map, size_t elements, esdm__cursor *in, esdm_error *err);
/** Codes of a palette into a volume. */
esdm_status field__palette_apply(const field__job *job, field__map *map, const uint32_t *ranks,
                                 field__volume *ret_volume, esdm_error *err);
/** Masks zeros where they are frequent: their patterns are far from those of other values. */
void field__mask_zeros(field__job *job);
/** Whether zeros and others beside them differ by more steps than neighbours do elsewhere: what
 *  predicts the one from the other costs more than a mask. Without a mask none is left out. */
bool field__zeros_have_edges(const field__job *job, double step);

/* Steps on which numbers lie already (grids.c). */

/** Distance of neighbouring numbers of the type at a size; the largest size of the block. */
double field__spacing(field__kind kind, double size);
double field__largest(const field__job *job);
/** Valid until more points are masked. */
const field__probes *field__probes_of(const field__job *job);
/** Whether the map is exact at nearly all probes. */
bool field__grid_fits(const field__probes *p, const field__map *map);
/** The same of a map with steps, and of numbers that are not all 0: they were rounded by it before.
 */
bool field__map_fits(const field__job *job, const field__map *map);
/** Whether the map is exact at most probes: others were kept exactly for their sum. */
bool field__nearly_fits(const field__probes *p, const field__map *map);
/** Steps of an absolute bound, of which rounding to the type takes a part. */
double field__step_of(double absolute, double rounding);
/** Bounds and roundings that numbers may have been rounded with under the same statement: the i-th
 * of FIELD__FORMER is that part i / FIELD__ROUNDINGS of the bound, and rounding i %
 * FIELD__ROUNDINGS. */
#define FIELD__ROUNDINGS 8
#define FIELD__FORMER    (9 * FIELD__ROUNDINGS)
extern const double field__former_parts[FIELD__FORMER / FIELD__ROUNDINGS];
double field__former_rounding(const field__job *job, double most, double absolute, size_t which);
/** The map of such steps; false where the numbers lie on none. */
bool field__find_former_steps(const field__job *job, double absolute, field__map *map);
/** In how many parts levels divide the steps of an absolute bound: as many as leave numbers on
 * steps that are found again (field__find_fine_steps()); 0: there are none such. */
int field__fineness(const field__job *job, double absolute);
/** The map of the fine steps that levels have left numbers on, under the same bound; false where
 * they lie on none. */
bool field__find_fine_steps(const field__job *job, double absolute, field__map *ret_fine);
/** Whether that will find them in what the volume's codes stand for: there are enough numbers. */
bool field__fine_steps_show(const field__job *job, const field__map *fine,
                            const field__volume *volume);
/** The same of the steps of a relative bound alone, for numbers of one sign. */
bool field__is_log_alone(const field__map *map);
bool field__fine_log(const field__job *job, field__map *ret_fine, uint32_t *ret_width);
bool field__find_fine_log_steps(const field__job *job, field__map *ret_fine);
/** Where logarithmic steps of that growth begin. */
double field__edge_below(double smallest, double growth);

/** Whether a code of the map stands for a value that must be exact: numbers that are not can not
 * have that code. Whether that concerns more than a few of them. */
bool field__meets_exact(const field__job *job, const field__map *map);
bool field__takes_exact(const field__job *job, const field__map *map);
/** Where the steps of a map of kind GRID, without a base, begin so that none is such a value; 0:
 * such steps are not found. */
double field__base_beside_exact(const field__job *job, const field__map *map);

/** The map for the accuracy asked for. */
void field__map_choose(const field__job *job, field__map *map);
/** The bound that maps of kind GRID have steps of, made tighter as the job says. */
double field__linear_bound(const field__job *job);

/** Fine parts of the steps of the same bound, for levels of *ret_width of them: false when that
 * does not suit. */
bool field__map_refine(const field__job *job, const field__map *map, field__map *ret_map,
                       uint32_t *ret_width);
/** Codes in refined steps, not checked against the bound. */
esdm_status field__map_refined_codes(const field__job *job, const field__map *map,
                                     field__volume *ret_volume, esdm_error *err);
/** Whether a point may become that value. */
bool field__keeps_bound(const field__job *job, double value, double again);
/** Sum of (decoded - original) over the points that are not masked. */
double field__sum_of_errors(const field__job *job, const field__map *map,
                            const field__volume *volume);
/** Of numbers that the map leaves as they are, but for a few that were kept exactly for their sum:
 * keeps these so once more. */
void field__sum_keep_again(field__job *job, const field__map *map, const field__volume *volume);
/** Moves the code of element i by `step` (1 or -1), where its bound allows that and the sum of
 *  errors gets smaller: then *sum is what it becomes. */
bool field__sum_move(const field__job *job, const field__map *map, const field__volume *volume,
                     size_t i, int step, double *sum);
/** Factor of bounds for the map, so that some codes have two neighbours within them (neutral.c);
 *  1: none, where numbers lie on steps already or a sum is asked for. Sets job->tighter to 1. */
double field__neutral_tightness(field__job *job);
/** Nudges elements of what levels left until the sum is about right (nudge.c): sets map->nudged.
 *  Bounds are not looked at, but by what is known of levels they are kept. */
void field__nudge(const field__job *job, field__map *map, const field__volume *volume);
/** Whether half of these steps are found again by field__find_fine_steps(). */
bool field__half_steps_show(const field__job *job, const field__map *fine);
/** Moves such codes until the sum is about right, or there are none left. */
void field__neutral_move(const field__job *job, const field__map *map, const field__volume *volume);
/** Moves codes and masks a few points, until the sum is within its bound: false when it is not. */
bool field__sum_keep(field__job *job, const field__map *map, const field__volume *volume);

/** Whether what levels left in the volume is within the bound everywhere, and on steps that are
 * found again; nudges some of it. */
bool field__levels_do(const field__job *job, field__map *refined, const field__volume *volume);
/** Whether what the volume's codes stand for is within the bound everywhere. */
bool field__map_holds(const field__job *job, const field__map *map, const field__volume *volume);

/** Codes without a look at special values, where that is enough and no point misses its bound:
 *  else *ret_good is false and the volume empty. */
esdm_status field__fast_codes(const field__job *job, field__map *map, field__volume *ret_volume,
                              bool *ret_good, esdm_error *err);

/** How a block is coded. */
typedef struct field__plan {
    field__coder coder; /**< ROWS or LEVELS */
    bool close;         /**< LEVELS, but rows may be as good */
    field__levels levels;
} field__plan;

/** The best of some choices on a part of the block. The maps are those of rows and of levels, whose
 * steps are `width` of those of the latter. */
esdm_status field__plan_make(const field__job *job, field__map *map, field__map *refined,
                             uint32_t width, field__plan *ret_plan, esdm_error *err);

/** One way to store codes. */
typedef struct field__coding {
    field__coder coder;          /**< ROWS, LEVELS, LORENZO or GROUPS */
    const field__levels *levels; /**< of LEVELS */
    size_t samples;              /**< that weights are fitted to */
} field__coding;

/** What begins a block. */
void field__put_head(const field__job *job, field__coder coder, uint8_t flags, esdm__buffer *out);
/** Copies n elements where the mask is, one after the other; returns where they end. */
uint8_t *field__gather(const uint8_t *mask, size_t n, const uint8_t *raw, size_t size, uint8_t *to);
bool field__all_same(const uint8_t *elements, size_t bytes, size_t size);
/** The mask, and the elements under it: `one` of them, where all are the same. */
esdm_status field__put_specials(const uint8_t *mask, const field__axes *axes,
                                const uint8_t *elements, size_t bytes, size_t size, bool one,
                                esdm__buffer *out, esdm_error *err);
/** Levels change the codes to those that the decoder will have. */
esdm_status field__put_codes(const field__coding *c, const field__volume *volume, esdm__buffer *out,
                             esdm_error *err);
bool field__suits_lorenzo(const field__volume *volume);

/**
 * Appends a block in parts, coded as it is shortest, by some of its parts: rows, differences
 * (lorenzo.h) or, where the plan says so, levels.
 * @param volume codes by `map`; `refined` is the map of levels.
 */
esdm_status field__parts_encode(field__job *job, const field__parts *parts, const field__map *map,
                                field__map *refined, const field__plan *plan,
                                const field__volume *volume, esdm__buffer *out, esdm_error *err);

/**
 * Makes the codes of all points. Those that the map would miss by more than is allowed are masked;
 * more than a hundredth of them: *ret_good is false and the volume is empty.
 */
esdm_status field__map_apply(field__job *job, field__map *map, field__volume *ret_volume,
                             bool *ret_good, esdm_error *err);

#endif
