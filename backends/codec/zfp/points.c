/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "points.h"

#include <math.h>
#include <string.h>

/* Bounds are computed with rounding: what is that close to one counts as beyond it. */
#define CAREFUL (1.0 - 0x1p-40)

/* What follows the length of a run. */
enum { VALUES = 0, ONE_VALUE = 1, LAST_VALUE = 2 };

static double
number_at(const void *numbers, size_t bytes, size_t i)
{
    float single;
    double value;
    if (bytes == sizeof single) {
        memcpy(&single, (const char *) numbers + i * bytes, sizeof single);
        return (double) single;
    }
    memcpy(&value, (const char *) numbers + i * bytes, sizeof value);
    return value;
}

static const void *
at(const void *numbers, size_t bytes, size_t i)
{
    return (const char *) numbers + i * bytes;
}

static bool
is_listed(const esdm_codec_accuracy *a, size_t bytes, const void *number)
{
    for (uint32_t i = 0; i < a->exact_count; i++) {
        if (memcmp(at(a->exact_values, bytes, i), number, bytes) == 0)
            return true;
    }
    return false;
}

static double
bound_of(const esdm_codec_accuracy *a, double x)
{
    double bound = a->absolute;
    if (a->relative < (double) INFINITY)
        bound = fmin(bound, fmax(a->relative * fabs(x), a->finest));
    return bound * CAREFUL;
}

/* Whether the bits of a number must be kept. */
static bool
is_exact(const esdm_codec_accuracy *a, size_t bytes, const void *raw, size_t i)
{
    double x = number_at(raw, bytes, i);
    return !isfinite(x) || x <= a->exact_below || x >= a->exact_above || !(bound_of(a, x) > 0) ||
           is_listed(a, bytes, at(raw, bytes, i));
}

bool
zfp__points_hide(const esdm_codec_accuracy *a, size_t bytes, const void *raw, void *ret_copy,
                 size_t n, double *ret_tolerance)
{
    double tolerance = (double) INFINITY;
    size_t first = n; /* that zfp sees */
    size_t last = n;
    memcpy(ret_copy, raw, n * bytes);
    for (size_t i = 0; i < n; i++) {
        if (!is_exact(a, bytes, raw, i)) {
            tolerance = fmin(tolerance, bound_of(a, number_at(raw, bytes, i)));
            first = first == n ? i : first;
            last = i;
        } else if (last < n) {
            memcpy((char *) ret_copy + i * bytes, at(raw, bytes, last), bytes);
        }
    }
    for (size_t i = 0; i < first && first < n; i++)
        memcpy((char *) ret_copy + i * bytes, at(raw, bytes, first), bytes);
    *ret_tolerance = tolerance;
    return first < n;
}

/* ---- the list ----------------------------------------------------------------------------- */

/* Runs of points that are listed one by one, in order. */
typedef struct lister {
    esdm__buffer *list;
    const void *raw;
    size_t bytes;
    size_t end;   /* of the last run written */
    size_t from;  /* of the run that grows */
    size_t count; /* of its points; 0: none */
    size_t alike; /* of them, from the start, that are equal */
    size_t total;
    const void *last; /* value that was written last; NULL: none */
} lister;

static void
write_run(lister *l, size_t from, size_t count, bool equal)
{
    const void *value = at(l->raw, l->bytes, from);
    bool again = equal && l->last != NULL && memcmp(l->last, value, l->bytes) == 0;
    unsigned kind = again ? LAST_VALUE : equal ? ONE_VALUE : VALUES;
    esdm__buffer_put_varint(l->list, from - l->end);
    esdm__buffer_put_varint(l->list, (uint64_t) count * 4 + kind);
    if (!again) {
        esdm__buffer_put(l->list, value, (equal ? 1 : count) * l->bytes);
        l->last = equal ? value : at(l->raw, l->bytes, from + count - 1);
    }
    l->end = from + count;
}

static void
end_run(lister *l)
{
    if (l->count > 0)
        write_run(l, l->from, l->count, l->alike == l->count);
    l->count = 0;
}

static void
add_point(lister *l, size_t i)
{
    bool next = l->count > 0 && i == l->from + l->count;
    bool equal =
        next && memcmp(at(l->raw, l->bytes, i), at(l->raw, l->bytes, i - 1), l->bytes) == 0;
    /* A run of equal values ends with another one. */
    if (!next || (l->alike == l->count && l->count > 1 && !equal)) {
        end_run(l);
        l->from = i;
        l->alike = 0;
    }
    l->alike += l->count == 0 || (l->alike == l->count && equal);
    l->count++;
    l->total++;
}

bool
zfp__points_list(const esdm_codec_accuracy *a, size_t bytes, const void *raw, void *decoded,
                 size_t n, size_t most, esdm__buffer *list)
{
    lister l = {.list = list, .raw = raw, .bytes = bytes};
    double change = 0;
    for (size_t i = 0; i < n && l.total <= most; i++) {
        const void *after = at(decoded, bytes, i);
        if (memcmp(at(raw, bytes, i), after, bytes) == 0)
            continue;
        double x = number_at(raw, bytes, i);
        double y = number_at(decoded, bytes, i);
        if (is_exact(a, bytes, raw, i) || !isfinite(y) || is_listed(a, bytes, after) ||
            !(fabs(y - x) <= bound_of(a, x))) {
            add_point(&l, i);
            memcpy((char *) decoded + i * bytes, at(raw, bytes, i), bytes);
        } else {
            change += y - x;
        }
    }
    end_run(&l);
    return l.total <= most && !list->failed && fabs(change) <= a->sum_bound * CAREFUL;
}

bool
zfp__points_apply(const void *list, size_t list_bytes, size_t bytes, void *numbers, size_t n)
{
    esdm__cursor c;
    size_t done = 0;
    const uint8_t *last = NULL;
    esdm__cursor_init(&c, list, list_bytes);
    while (esdm__cursor_left(&c) > 0) {
        uint64_t gap = esdm__cursor_varint(&c);
        uint64_t run = esdm__cursor_varint(&c);
        uint64_t count = run / 4;
        unsigned kind = (unsigned) (run % 4);
        if (c.failed || gap > n - done || count == 0 || count > n - done - gap ||
            kind > LAST_VALUE || (kind == LAST_VALUE && last == NULL))
            return false;
        done += (size_t) gap;
        if (kind != LAST_VALUE) {
            size_t values = kind == VALUES ? (size_t) count : 1;
            const uint8_t *from = esdm__cursor_take(&c, values * bytes);
            if (from == NULL)
                return false;
            last = from + (values - 1) * bytes;
            if (kind == VALUES)
                memcpy((char *) numbers + done * bytes, from, values * bytes);
        }
        for (size_t i = 0; kind != VALUES && i < count; i++)
            memcpy((char *) numbers + (done + i) * bytes, last, bytes);
        done += (size_t) count;
    }
    return true;
}
