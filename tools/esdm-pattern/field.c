/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Values of synthetic fields. */

#include "esdm-pattern/esdm-pattern.h"

#include <math.h>
#include <string.h>

/* Gradient noise has no slope along more axes than these; slower ones choose another field. */
#define NOISE_AXES  4
#define MASK_LEVELS 4096

/* ---- chance ------------------------------------------------------------------------------- */

static uint64_t
hash_index(uint64_t seed, uint32_t rank, const uint64_t *index)
{
    uint64_t hash = tool_scramble(seed);
    for (uint32_t i = 0; i < rank; i++)
        hash = tool_scramble(hash ^ index[i]);
    return hash;
}

/* ---- gradient noise ----------------------------------------------------------------------- */

/* Perlin's improved noise (2002) on a lattice of any rank: smooth, 0 at lattice points. The
 * gradient of a lattice point is a vertex of a cube. @return about -1 ... 1 */
static double
gradient_noise(uint64_t seed, uint32_t rank, const double *at)
{
    uint64_t cell[NOISE_AXES];
    double within[NOISE_AXES], ease[NOISE_AXES];
    for (uint32_t i = 0; i < rank; i++) {
        double base = floor(at[i]);
        within[i] = at[i] - base;
        cell[i] = (uint64_t) (int64_t) base;
        ease[i] = within[i] * within[i] * within[i] * (within[i] * (within[i] * 6 - 15) + 10);
    }
    double sum = 0;
    for (uint32_t corner = 0; corner < 1u << rank; corner++) {
        uint64_t point[NOISE_AXES];
        double weight = 1, slope = 0;
        for (uint32_t i = 0; i < rank; i++)
            point[i] = cell[i] + (corner >> i & 1);
        uint64_t hash = hash_index(seed, rank, point);
        for (uint32_t i = 0; i < rank; i++) {
            bool far = (corner >> i & 1) != 0;
            double distance = far ? within[i] - 1 : within[i];
            slope += (hash >> i & 1) != 0 ? distance : -distance;
            weight *= far ? ease[i] : 1 - ease[i];
        }
        sum += weight * slope;
    }
    return sum;
}

/* 0 ... 1; most values lie around 0.5. @param rank of the fastest axes that vary smoothly. */
static double
layered_noise(const pattern_field *field, uint64_t seed, uint32_t rank, const uint64_t *index,
              double frequency, uint32_t octaves)
{
    uint32_t axes = MIN(rank, NOISE_AXES);
    uint32_t first = field->rank - axes;
    uint64_t slower = rank > axes ? hash_index(seed, first, index) : seed;
    double sum = 0, height = 1, heights = 0;
    for (uint32_t octave = 0; octave < octaves; octave++) {
        double at[NOISE_AXES] = {0};
        for (uint32_t i = 0; i < axes; i++)
            at[i] = frequency * (double) index[first + i] / (double) field->shape[first + i];
        sum += height * gradient_noise(slower + octave, axes, at);
        heights += height;
        height /= 2;
        frequency *= 2;
    }
    return CLAMP(0.5 + 0.5 * sum / heights, 0, 1);
}

/* ---- patterns ----------------------------------------------------------------------------- */

/* Sum of sines along all axes that are longer than 1. */
static double
waves(const pattern_field *field, const uint64_t *index)
{
    double sum = 0;
    uint32_t axes = 0;
    for (uint32_t i = 0; i < field->rank; i++) {
        if (field->shape[i] == 1)
            continue;
        sum += sin(2 * G_PI * field->frequency * (double) index[i] / (double) field->shape[i]);
        axes++;
    }
    return axes > 0 ? 0.5 + 0.5 * sum / axes : 0.5;
}

/* Plateaus that climb along all axes. */
static double
steps(const pattern_field *field, const uint64_t *index)
{
    double sum = 0;
    for (uint32_t i = 0; i < field->rank; i++)
        sum += ((double) index[i] + 0.5) / (double) field->shape[i];
    double step = MIN(floor(sum / field->rank * field->count), field->count - 1);
    return field->count > 1 ? step / (field->count - 1) : 0;
}

static double
plain_share(const pattern_field *field, const uint64_t *index)
{
    switch (field->kind) {
    case PATTERN_RANDOM:
        return tool_unit(hash_index(field->seed, field->rank, index));
    case PATTERN_NOISE:
        return layered_noise(field, field->seed, field->rank, index, field->frequency,
                             field->octaves);
    case PATTERN_STEPS:
        return steps(field, index);
    case PATTERN_WAVES:
        return waves(field, index);
    case PATTERN_CONSTANT:
    default:
        return 0;
    }
}

/* A repetition moves the index, so it has to be known before what came earlier is computed. */
static double
mutated_share(const pattern_field *field, const uint64_t *index, uint32_t mutators)
{
    if (mutators == 0)
        return plain_share(field, index);
    const pattern_mutator *last = &field->mutator[mutators - 1];
    if (last->kind == PATTERN_REPEAT) {
        uint64_t moved[PATTERN_RANK_MAX];
        memcpy(moved, index, field->rank * sizeof *moved);
        moved[field->rank - 1] -= moved[field->rank - 1] % (uint64_t) last->amount;
        return mutated_share(field, moved, mutators - 1);
    }
    double chance =
        tool_unit(hash_index(tool_scramble(field->seed + mutators), field->rank, index));
    return mutated_share(field, index, mutators - 1) + last->amount * (2 * chance - 1);
}

double
pattern_value(const pattern_field *field, const uint64_t *index)
{
    double share = mutated_share(field, index, field->mutators);
    return field->lowest + share * (field->highest - field->lowest);
}

/* ---- mask --------------------------------------------------------------------------------- */

static double
mask_noise(const pattern_field *field, const uint64_t *index)
{
    uint64_t flat[PATTERN_RANK_MAX] = {0};
    uint32_t axes = MIN(field->rank, 2);
    for (uint32_t i = field->rank - axes; i < field->rank; i++)
        flat[i] = index[i];
    return layered_noise(field, tool_scramble(~field->seed), axes, flat, 3, 4);
}

bool
pattern_is_land(const pattern_field *field, const uint64_t *index)
{
    return field->land > 0 && mask_noise(field, index) < field->land_level;
}

/* A histogram of the noise over the mask; halved until it separates single points. */
static uint64_t
points_below(const pattern_field *field, double from, double to, uint64_t *counts)
{
    uint32_t axes = MIN(field->rank, 2);
    uint64_t index[PATTERN_RANK_MAX] = {0};
    uint64_t rows = axes > 1 ? field->shape[field->rank - 2] : 1;
    uint64_t below = 0;
    memset(counts, 0, MASK_LEVELS * sizeof *counts);
    for (uint64_t row = 0; row < rows; row++) {
        if (axes > 1)
            index[field->rank - 2] = row;
        for (uint64_t column = 0; column < field->shape[field->rank - 1]; column++) {
            index[field->rank - 1] = column;
            double noise = mask_noise(field, index);
            if (noise < from)
                below++;
            else if (noise < to)
                counts[MIN((size_t) ((noise - from) / (to - from) * MASK_LEVELS),
                           MASK_LEVELS - 1)]++;
        }
    }
    return below;
}

void
pattern_field_prepare(pattern_field *field)
{
    if (field->land <= 0)
        return;
    field->land_level = 2; /* more than all noise */
    if (field->land >= 1)
        return;
    uint64_t points = field->shape[field->rank - 1];
    if (field->rank > 1)
        points *= field->shape[field->rank - 2];
    uint64_t wanted = (uint64_t) llround(field->land * (double) points);
    double from = 0, to = 1;
    uint64_t counts[MASK_LEVELS];
    for (int round = 0; round < 3; round++) {
        uint64_t below = points_below(field, from, to, counts);
        size_t level = 0;
        while (level < MASK_LEVELS && below + counts[level] <= wanted)
            below += counts[level++];
        double width = (to - from) / MASK_LEVELS;
        from += (double) level * width;
        field->land_level = from;
        if (below == wanted || level == MASK_LEVELS)
            return;
        to = from + width;
    }
}

/* ---- reading descriptions ----------------------------------------------------------------- */

static esdm_status
number(const char *what, const char *text, double lowest, double highest, double *ret_value,
       esdm_error *err)
{
    char *end = NULL;
    double value = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= lowest && value <= highest))
        return tool_error_set(err, ESDM_EINVAL, "%s is '%s'; it takes a number from %g to %g", what,
                              text, lowest, highest);
    *ret_value = value;
    return ESDM_OK;
}

/* One "key=value" of a pattern. */
static esdm_status
parameter(const char *pattern, const char *text, pattern_field *field, esdm_error *err)
{
    double octaves = 0;
    bool periodic = field->kind == PATTERN_NOISE || field->kind == PATTERN_WAVES;
    if (periodic && g_str_has_prefix(text, "frequency="))
        return number("frequency", text + 10, 0, 1e9, &field->frequency, err);
    if (field->kind == PATTERN_STEPS && g_str_has_prefix(text, "count="))
        return number("count", text + 6, 1, 1e9, &field->count, err);
    if (field->kind == PATTERN_NOISE && g_str_has_prefix(text, "octaves=")) {
        esdm_status status = number("octaves", text + 8, 1, 16, &octaves, err);
        field->octaves = (uint32_t) octaves;
        return status;
    }
    return tool_error_set(err, ESDM_EINVAL, "pattern '%s' has no parameter '%s'; it takes %s",
                          pattern, text,
                          field->kind == PATTERN_NOISE   ? "frequency= and octaves="
                          : field->kind == PATTERN_WAVES ? "frequency="
                          : field->kind == PATTERN_STEPS ? "count="
                                                         : "none");
}

esdm_status
pattern_parse(const char *text, pattern_field *field, esdm_error *err)
{
    static const char *const names[] = {"constant", "random", "noise", "steps", "waves"};
    g_auto(GStrv) parts = g_strsplit_set(text, ":,", -1);
    size_t kind = 0;
    while (kind < G_N_ELEMENTS(names) && g_strcmp0(parts[0], names[kind]) != 0)
        kind++;
    if (kind == G_N_ELEMENTS(names))
        return tool_error_set(err, ESDM_EINVAL,
                              "there is no pattern '%s'; there are constant, random, noise, steps "
                              "and waves",
                              parts[0] != NULL ? parts[0] : "");
    field->kind = (pattern_kind) kind;
    field->frequency = 4;
    field->octaves = 3;
    field->count = 8;
    for (char **part = parts + 1; *part != NULL; part++) {
        esdm_status status = parameter(parts[0], *part, field, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

esdm_status
pattern_parse_mutator(const char *text, pattern_field *field, esdm_error *err)
{
    if (field->mutators == PATTERN_MUTATORS_MAX)
        return tool_error_set(err, ESDM_EINVAL, "more than %d mutators", PATTERN_MUTATORS_MAX);
    pattern_mutator *mutator = &field->mutator[field->mutators];
    esdm_status status = ESDM_OK;
    if (g_str_has_prefix(text, "repeat:")) {
        mutator->kind = PATTERN_REPEAT;
        status = number("repeat", text + 7, 1, 1e15, &mutator->amount, err);
        mutator->amount = floor(mutator->amount);
    } else if (g_str_has_prefix(text, "noise:")) {
        mutator->kind = PATTERN_ADD_NOISE;
        status = number("noise", text + 6, 0, 1e9, &mutator->amount, err);
    } else {
        return tool_error_set(err, ESDM_EINVAL,
                              "there is no mutator '%s'; there are repeat:COUNT and noise:SHARE",
                              text);
    }
    field->mutators += status == ESDM_OK;
    return status;
}
