/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FOLDS      5u
#define DEPTH      5u
#define LEAF_LEAST 10u
#define LEAF_SHARE 100u  /* a leaf has at least this part of all */
#define LARGEST    4.6   /* factors between 0.01 and 100, as logarithms */
#define WORTH      0.9   /* of the measured model's error */
#define CHANCE     3.0   /* standard errors */
#define GAIN       0.005 /* of the variance of all that a split has to explain */

/* A request: what is known before, and how much longer than measured it took. */
typedef struct row {
    double bytes;
    double concurrency;
    double y;
} row;

double
esdm__learned_factor(const esdm__learned *learned, double bytes, double concurrency)
{
    uint32_t at = 0;
    if (learned == NULL || learned->count == 0)
        return 1;
    while (learned->nodes[at].by != ESDM__LEARNED_LEAF) {
        const esdm__learned_node *n = &learned->nodes[at];
        double x = n->by == ESDM__LEARNED_BYTES ? bytes : concurrency;
        at = x <= n->limit ? n->less : n->more;
    }
    return exp(learned->nodes[at].factor);
}

bool
esdm__learned_valid(const esdm__learned *learned)
{
    if (learned->count == 0 || learned->count > ESDM__LEARNED_NODES ||
        !(learned->error >= 0 && isfinite(learned->error)) ||
        !(learned->calibrated_error >= 0 && isfinite(learned->calibrated_error)))
        return false;
    for (uint32_t i = 0; i < learned->count; i++) {
        const esdm__learned_node *n = &learned->nodes[i];
        if (n->by == ESDM__LEARNED_LEAF && !(fabs(n->factor) <= LARGEST))
            return false;
        if (n->by == ESDM__LEARNED_LEAF)
            continue;
        if ((n->by != ESDM__LEARNED_BYTES && n->by != ESDM__LEARNED_CONCURRENCY) ||
            !isfinite(n->limit) || n->less <= i || n->more <= i || n->less >= learned->count ||
            n->more >= learned->count)
            return false;
    }
    return true;
}

/* ---- a tree ---------------------------------------------------------------------------------- */

static int
compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int
by_bytes(const void *a, const void *b)
{
    return compare(((const row *) a)->bytes, ((const row *) b)->bytes);
}

static int
by_concurrency(const void *a, const void *b)
{
    return compare(((const row *) a)->concurrency, ((const row *) b)->concurrency);
}

static double
value_of(const row *r, esdm__learned_by by)
{
    return by == ESDM__LEARNED_BYTES ? r->bytes : r->concurrency;
}

static void
sort(row *rows, size_t count, esdm__learned_by by)
{
    qsort(rows, count, sizeof *rows, by == ESDM__LEARNED_BYTES ? by_bytes : by_concurrency);
}

typedef struct split {
    esdm__learned_by by; /* ESDM__LEARNED_LEAF: none */
    double limit;
    double gain; /* sum of squares that it explains */
} split;

/* Rows are sorted. */
static void
try_splits(const row *rows, size_t count, esdm__learned_by by, size_t least, split *best)
{
    double all = 0;
    double left = 0;
    for (size_t i = 0; i < count; i++)
        all += rows[i].y;
    for (size_t i = 1; i < count; i++) {
        left += rows[i - 1].y;
        double below = value_of(&rows[i - 1], by);
        double above = value_of(&rows[i], by);
        if (i < least || count - i < least || !(below < above))
            continue;
        double n = (double) i;
        double m = (double) (count - i);
        double right = all - left;
        double gain = left * left / n + right * right / m - all * all / (n + m);
        if (gain > best->gain)
            *best = (split){by, (below + above) / 2, gain};
    }
}

typedef struct growth {
    esdm__learned *tree;
    size_t least;
    double enough; /* sum of squares that a split has to explain */
} growth;

static void
grow(growth *g, uint32_t node, row *rows, size_t count, unsigned depth)
{
    double sum = 0;
    split best = {.gain = g->enough};
    for (size_t i = 0; i < count; i++)
        sum += rows[i].y;
    g->tree->nodes[node] = (esdm__learned_node){
        .factor = fmax(-LARGEST, fmin(LARGEST, count > 0 ? sum / (double) count : 0))};
    if (depth == 0 || count < 2 * g->least || g->tree->count + 2 > ESDM__LEARNED_NODES)
        return;
    for (esdm__learned_by by = ESDM__LEARNED_BYTES; by <= ESDM__LEARNED_CONCURRENCY; by++) {
        sort(rows, count, by);
        try_splits(rows, count, by, g->least, &best);
    }
    if (best.by == ESDM__LEARNED_LEAF)
        return;
    sort(rows, count, best.by);
    size_t at = 0;
    while (at < count && value_of(&rows[at], best.by) <= best.limit)
        at++;
    uint32_t less = g->tree->count;
    g->tree->count += 2;
    g->tree->nodes[node] =
        (esdm__learned_node){.by = best.by, .limit = best.limit, .less = less, .more = less + 1};
    grow(g, less, rows, at, depth - 1);
    grow(g, less + 1, rows + at, count - at, depth - 1);
}

/* Sorts the rows. */
static void
make_tree(row *rows, size_t count, esdm__learned *ret_tree)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        sum += rows[i].y;
        squares += rows[i].y * rows[i].y;
    }
    size_t least = count / LEAF_SHARE > LEAF_LEAST ? count / LEAF_SHARE : LEAF_LEAST;
    growth g = {ret_tree, least, GAIN * (squares - sum * sum / (double) count) + 1e-12};
    *ret_tree = (esdm__learned){.count = 1};
    grow(&g, 0, rows, count, DEPTH);
}

/* ---- whether it is better -------------------------------------------------------------------- */

typedef struct contest {
    double learned; /* sums of |ln(predicted / seen)| */
    double calibrated;
    double difference; /* sum, and of squares, of what the tree is nearer */
    double squares;
    unsigned won;
} contest;

static void
hold_out(const row *rows, size_t count, size_t from, size_t to, row *others, contest *c)
{
    esdm__learned tree;
    double drift = 0;
    double difference = 0;
    size_t n = count - (to - from);
    memcpy(others, rows, from * sizeof *rows);
    memcpy(others + from, rows + to, (count - to) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        drift += others[i].y / (double) n;
    make_tree(others, n, &tree);
    for (size_t i = from; i < to; i++) {
        double factor = esdm__learned_factor(&tree, rows[i].bytes, rows[i].concurrency);
        double learned = fabs(rows[i].y - log(factor));
        double calibrated = fabs(rows[i].y - drift);
        c->learned += learned;
        c->calibrated += calibrated;
        difference += calibrated - learned;
        c->squares += (calibrated - learned) * (calibrated - learned);
    }
    c->difference += difference;
    c->won += difference > 0;
}

static bool
is_better(const contest *c, size_t count)
{
    double n = (double) count;
    double mean = c->difference / n;
    double deviation = sqrt(fmax(c->squares / n - mean * mean, 0));
    return c->learned < WORTH * c->calibrated && c->won + 1 >= FOLDS &&
           mean > CHANCE * deviation / sqrt(n);
}

static size_t
make_rows(const esdm__perf *perf, const esdm__perf_sample *samples, size_t count, row *rows)
{
    esdm__perf plain = *perf;
    size_t n = 0;
    plain.learned = NULL;
    for (size_t i = 0; i < count; i++) {
        const esdm__perf_sample *s = &samples[i];
        double concurrency = fmax(1, s->concurrency);
        double predicted = esdm__perf_seconds(&plain, s->bytes, concurrency);
        double y = log(s->seconds / predicted);
        if (s->bytes > 0 && isfinite(s->bytes) && isfinite(concurrency) && isfinite(y))
            rows[n++] = (row){s->bytes, concurrency, fmax(-LARGEST, fmin(LARGEST, y))};
    }
    return n;
}

esdm_status
esdm__learned_fit(const esdm__perf *perf, const esdm__perf_sample *samples, size_t count,
                  esdm__learned *ret_learned, bool *ret_better, esdm_error *err)
{
    row *rows = calloc(count + 1, sizeof *rows);
    row *others = calloc(count + 1, sizeof *others);
    esdm_status status = ESDM_OK;
    contest c = {0};
    if (rows == NULL || others == NULL) {
        status = esdm__error_nomem(err, count * sizeof *rows, "learning from requests");
        goto end;
    }
    size_t n = make_rows(perf, samples, count, rows);
    if (n < ESDM__LEARNED_LEAST) {
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "%zu requests are too few to learn from; it "
                                 "takes %u",
                                 n, ESDM__LEARNED_LEAST);
        goto end;
    }
    for (size_t fold = 0; fold < FOLDS; fold++)
        hold_out(rows, n, fold * n / FOLDS, (fold + 1) * n / FOLDS, others, &c);
    make_tree(rows, n, ret_learned);
    ret_learned->requests = n;
    ret_learned->error = exp(c.learned / (double) n) - 1;
    ret_learned->calibrated_error = exp(c.calibrated / (double) n) - 1;
    *ret_better = is_better(&c, n);
end:
    free(rows);
    free(others);
    return status;
}
