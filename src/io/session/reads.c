/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/reads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checksum.h"
#include "base/json.h"

#define FORMAT        1
#define TEXT_MOST     ((size_t) 256 << 10)
#define DATASETS_MOST 64u
#define REQUEST_BYTES 65536.0 /* a request costs as much as so many bytes */
#define BLOCK_BYTES   65536.0 /* of what has a codec: less is not read */
#define FORGETS       0.9     /* what older sessions count, with each one */
#define READS_LEAST   4.0     /* fewer are an accident */
#define WORTH         0.5     /* of the usual cost, or less */
/* Times count when both are of so much. */
#define TIMED_BYTES   (8.0 * 1024 * 1024)
#define TIMED_SECONDS 0.05
#define SLOWER        1.25
#define REST_S        (30 * 86400) /* then it is tried once more */

static const char *const cut_words[ESDM__CUTS] = {"maps", "both maps and time series",
                                                  "time series"};

/* ---- one read ------------------------------------------------------------------------------- */

/* Fragments along a dimension that are met. */
static double
met(uint64_t offset, uint64_t size, uint64_t stride, uint64_t cell)
{
    uint64_t last = offset + (size - 1) * stride;
    uint64_t spanned = last / cell - offset / cell + 1;
    return (double) (stride >= cell && size < spanned ? size : spanned);
}

static double
cost_of(const esdm_dataspace *space, size_t element_bytes, const uint64_t *cell)
{
    double cells = 1;
    double cell_bytes = (double) element_bytes;
    double runs = 1;                           /* rows of elements that lie together */
    double run_bytes = (double) element_bytes; /* one of them */
    bool together = true;
    for (uint32_t d = space->rank; d-- > 0;) {
        uint64_t stride = space->has_stride ? space->stride[d] : 1;
        uint64_t each = cell[d] > 0 ? cell[d] : 1;
        double here = met(space->offset[d], space->size[d], stride, each);
        double size = (double) space->size[d];
        cells *= here;
        cell_bytes *= (double) each;
        if (together && stride == 1) {
            run_bytes *= size / here;
            runs *= here;
        } else {
            runs *= size;
        }
        together = together && stride == 1 && size >= (double) each * here;
    }
    double rows = runs * ceil(run_bytes / BLOCK_BYTES) * BLOCK_BYTES;
    return fmin(cells * cell_bytes, rows) + cells * REQUEST_BYTES;
}

void
esdm__reads_add(esdm__reads *reads, const esdm_dataspace *space, size_t element_bytes,
                const uint64_t *const cells[ESDM__CUTS], bool adapted, double seconds)
{
    double bytes = (double) element_bytes;
    for (uint32_t d = 0; d < space->rank; d++)
        bytes *= (double) space->size[d];
    if (bytes <= 0)
        return;
    reads->reads++;
    for (int cut = 0; cut < ESDM__CUTS; cut++)
        reads->cost[cut] += cost_of(space, element_bytes, cells[cut]);
    reads->bytes[adapted] += bytes;
    reads->seconds[adapted] += seconds;
}

static int
best_of(double reads, const double cost[ESDM__CUTS])
{
    int best = 0;
    for (int cut = 1; cut < ESDM__CUTS; cut++) {
        if (cost[cut] < cost[best])
            best = cut;
    }
    return reads >= READS_LEAST && cost[best] <= WORTH * cost[0] ? best : 0;
}

int
esdm__reads_best(const esdm__reads *reads)
{
    return reads->reads > 0 ? best_of(READS_LEAST, reads->cost) : 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

char *
esdm__reads_pattern(const char *container)
{
    char *pattern = malloc(strlen(container) + 1);
    char *to = pattern;
    for (const char *at = container; pattern != NULL; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (!digit || to == pattern || to[-1] != '#')
            *to++ = digit ? '#' : *at;
        if (*at == '\0')
            break;
    }
    return pattern;
}

void
esdm__reads_name(const char *pattern, char ret[ESDM__READS_NAME_BYTES])
{
    uint64_t hash = esdm__checksum(pattern, strlen(pattern));
    (void) snprintf(ret, ESDM__READS_NAME_BYTES, ESDM__READS_PREFIX "%016llx",
                    (unsigned long long) hash);
}

/* ---- the fact ------------------------------------------------------------------------------- */

json_t *
esdm__reads_fact(const char *pattern)
{
    return json_pack("{s:i,s:s,s:{}}", "format", FORMAT, "pattern", pattern, "datasets");
}

json_t *
esdm__reads_parse(const char *text, const char *pattern)
{
    json_t *fact =
        text != NULL && strnlen(text, TEXT_MOST) < TEXT_MOST ? esdm__json_read(text) : NULL;
    const char *own = json_string_value(json_object_get(fact, "pattern"));
    if (json_integer_value(json_object_get(fact, "format")) == FORMAT && own != NULL &&
        strcmp(own, pattern) == 0 && json_is_object(json_object_get(fact, "datasets")))
        return fact;
    json_decref(fact);
    return NULL;
}

/* A number of a list, at least 0. */
static double
number_in(const json_t *one, const char *key, size_t i)
{
    double value = json_number_value(json_array_get(json_object_get(one, key), i));
    return value > 0 && value < 1e300 ? value : 0;
}

static double
number_of(const json_t *one, const char *key)
{
    double value = json_number_value(json_object_get(one, key));
    return value > 0 && value < 1e300 ? value : 0;
}

static const json_t *
find(const json_t *fact, const char *path)
{
    return json_object_get(json_object_get(fact, "datasets"), path);
}

/* Seconds that a byte took, as usual or adapted; 0: not known. */
static double
pace(const json_t *one, size_t adapted)
{
    double bytes = number_in(one, "time", 2 * adapted);
    double seconds = number_in(one, "time", 2 * adapted + 1);
    return bytes >= TIMED_BYTES && seconds >= TIMED_SECONDS ? seconds / bytes : 0;
}

void
esdm__reads_merge(json_t *fact, const char *path, uint32_t rank, const esdm__reads *now)
{
    json_t *datasets = json_object_get(fact, "datasets");
    const json_t *old = json_object_get(datasets, path);
    if (old == NULL && json_object_size(datasets) >= DATASETS_MOST)
        return;
    if (json_integer_value(json_object_get(old, "rank")) != rank)
        old = NULL; /* it was made anew */
    double cost[ESDM__CUTS];
    double time_of[4];
    for (size_t cut = 0; cut < ESDM__CUTS; cut++)
        cost[cut] = FORGETS * number_in(old, "cost", cut) + now->cost[cut];
    for (size_t i = 0; i < 4; i++)
        time_of[i] = number_in(old, "time", i) * (i < 2 ? 1 : FORGETS) +
                     (i % 2 == 0 ? now->bytes[i / 2] : now->seconds[i / 2]);
    double reads = FORGETS * number_of(old, "reads") + (double) now->reads;
    double stopped = number_of(old, "stopped");
    json_t *one = json_pack("{s:i,s:f,s:[fff],s:[ffff],s:f}", "rank", (int) rank, "reads", reads,
                            "cost", cost[0], cost[1], cost[2], "time", time_of[0], time_of[1],
                            time_of[2], time_of[3], "stopped", stopped);
    double usual = pace(one, 0);
    double adapted = pace(one, 1);
    (void) json_object_set_new(fact, "seen", json_integer((json_int_t) time(NULL)));
    if (usual > 0 && adapted > SLOWER * usual && stopped <= 0)
        (void) json_object_set_new(one, "stopped", json_real((double) time(NULL)));
    if (one != NULL)
        (void) json_object_set_new(datasets, path, one);
}

uint64_t
esdm__reads_seen(const char *text)
{
    json_t *fact = strnlen(text, TEXT_MOST) < TEXT_MOST ? esdm__json_read(text) : NULL;
    double seen = number_of(fact, "seen");
    json_decref(fact);
    return (uint64_t) fmin(seen, 1e15);
}

bool
esdm__reads_stopped(const json_t *fact, const char *path)
{
    double stopped = number_of(find(fact, path), "stopped");
    return stopped > 0 && stopped + REST_S > (double) time(NULL);
}

int
esdm__reads_choose(const json_t *fact, const char *path, uint32_t rank, char *ret_why, size_t room)
{
    const json_t *one = find(fact, path);
    double cost[ESDM__CUTS];
    if (one == NULL || json_integer_value(json_object_get(one, "rank")) != rank ||
        esdm__reads_stopped(fact, path))
        return 0;
    for (size_t cut = 0; cut < ESDM__CUTS; cut++)
        cost[cut] = number_in(one, "cost", cut);
    double reads = number_of(one, "reads");
    int best = best_of(reads, cost);
    if (best > 0 && ret_why != NULL)
        (void) snprintf(ret_why, room,
                        "cut for %s: so its readers read containers %s, which costs them %.0f %% "
                        "of what it does with fragments as usual (%.0f reads)",
                        cut_words[best], json_string_value(json_object_get(fact, "pattern")),
                        100 * cost[best] / cost[0], reads);
    return best;
}

double
esdm__reads_gain(const json_t *fact, const char *path, const esdm__reads *now)
{
    double usual = pace(find(fact, path), 0);
    return usual > 0 ? usual * now->bytes[1] - now->seconds[1] : 0;
}
