/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Statistics of boxes against the values themselves: random writes over each other, missing values,
 * constants, strides, chunks, accuracies, many commits, and other handles. */

#include "testing.h"

#include <math.h>

enum { ROWS = 60, COLUMNS = 3000, SETS = 5 };

static esdm_session *session;
static uint64_t state = 7;

static uint64_t
below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

/* The sets: plain floats, doubles with NaN as fill value, small integers with missing values,
 * floats with an accuracy, bytes. */
static const esdm_type types[SETS] = {ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64, ESDM_TYPE_INT16,
                                      ESDM_TYPE_FLOAT32, ESDM_TYPE_UINT8};
static const char *const names[SETS] = {"plain", "nan", "packed", "rounded", "bytes"};

static void
make(void)
{
    esdm_container *c;
    esdm_dimension *d[2];
    ok(esdm_container_create(session, "s", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "row", ESDM_UNLIMITED, &d[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &d[1], ERR));
    for (int i = 0; i < SETS; i++) {
        esdm_dataset *v;
        ok(esdm_dataset_create(root, names[i], types[i], 2, d, &v, ERR));
        if (i == 1)
            ok(esdm_dataset_set_fill(v, &(double){(double) NAN}, ERR));
        if (i == 2) {
            ok(esdm_dataset_set_fill(v, &(int16_t){-999}, ERR));
            ok(esdm_attribute_set(esdm_dataset_attributes(v), "missing_value", ESDM_TYPE_INT16, 1,
                                  &(int16_t){5}, ERR));
        }
        if (i == 3) {
            esdm_accuracy a;
            esdm_accuracy_init(&a);
            a.stated = ESDM_ACCURACY_ABSOLUTE_TOLERANCE;
            a.absolute_tolerance = 0.125;
            ok(esdm_dataset_set_accuracy(v, &a, ERR));
        }
    }
    ok(esdm_container_close(c, ERR));
}

static esdm_dataset *
set_of(esdm_container *c, int i)
{
    return esdm_group_dataset_find(esdm_container_root(c), names[i]);
}

/* Writes a random box; sometimes equal values, sometimes every second column. */
static void
write_some(esdm_container *c, int i)
{
    static double data[ROWS * COLUMNS];
    esdm_dataspace space;
    bool strided = below(12) == 0;
    bool equal = below(4) == 0;
    uint64_t at[2] = {below(ROWS), below(2) * below(COLUMNS)};
    uint64_t n[2] = {1 + below(ROWS - at[0]), 1 + below(COLUMNS - at[1])};
    if (below(3) > 0) /* whole rows, as models do it */
        at[1] = 0, n[1] = COLUMNS, n[0] = 1 + below(n[0] < 4 ? n[0] : 4);
    double value = (double) below(200);
    for (size_t k = 0; k < n[0] * n[1]; k++) {
        data[k] = equal ? value : (double) below(250) / (i == 1 || i == 3 ? 3 : 1);
        if (!equal && below(20) == 0 && i != 3)
            data[k] = i == 1 ? (double) NAN : i == 2 ? -999 : data[k];
    }
    if (strided)
        n[1] = n[1] / 2 + n[1] % 2;
    ok(esdm_dataspace_init(&space, 2, at, n, ERR));
    if (strided)
        ok(esdm_dataspace_set_stride(&space, (uint64_t[]){1, 2}, ERR));
    ok(esdm_write(set_of(c, i), &space, ESDM_TYPE_FLOAT64, data, NULL, ERR));
}

static double values[ROWS * COLUMNS]; /* the last ones that were read */

static bool
counts(int i, double x)
{
    static const float fill = 9.9692099683868690e+36f;
    return !isnan(x) && !((i == 0 || i == 3) && x == (double) fill) &&
           !(i == 2 && (x == -999 || x == 5));
}

/* What the values say. */
static esdm_statistics
brute(esdm_dataset *v, int i, const uint64_t *at, const uint64_t *n)
{
    esdm_statistics s = {.elements = n[0] * n[1]};
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, at, n, ERR));
    ok(esdm_read(v, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
    for (size_t k = 0; k < s.elements; k++) {
        double x = values[k];
        if (!counts(i, x))
            continue;
        s.min = s.valid == 0 || x < s.min ? x : s.min;
        s.max = s.valid == 0 || x > s.max ? x : s.max;
        s.sum += x;
        s.valid++;
    }
    return s;
}

static double
brute_variance(esdm_dataset *v, int i, const uint64_t *at, const uint64_t *n, double mean)
{
    double squares = 0;
    uint64_t valid = brute(v, i, at, n).valid;
    for (uint64_t k = 0; k < n[0] * n[1]; k++)
        squares += counts(i, values[k]) ? (values[k] - mean) * (values[k] - mean) : 0;
    return squares / (double) valid;
}

static void
compare(esdm_container *c, int i, bool whole)
{
    esdm_dataset *v = set_of(c, i);
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(v, 0));
    uint64_t at[2] = {whole ? 0 : below(rows), whole ? 0 : below(2) * below(COLUMNS)};
    uint64_t n[2] = {whole ? rows : 1 + below(rows - at[0]),
                     whole ? COLUMNS : 1 + below(COLUMNS - at[1])};
    esdm_statistics expected = brute(v, i, at, n);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, at, n, ERR));
    for (int read = 0; read < 2; read++) {
        esdm_statistics s;
        ok(esdm_dataset_statistics(v, whole ? NULL : &space, read != 0, &s, ERR));
        check(s.elements == expected.elements);
        check(read != 0 || s.read_elements == 0);
        check(read == 0 || (s.flags & ESDM_STATISTICS_EXACT) != 0);
        if ((s.flags & ESDM_STATISTICS_BOUNDS) != 0 && expected.valid > 0)
            check(s.min <= expected.min && s.max >= expected.max);
        if ((s.flags & ESDM_STATISTICS_EXACT) == 0)
            continue;
        check(s.valid == expected.valid);
        if (s.valid == 0)
            continue;
        check(s.min == expected.min && s.max == expected.max);
        check(fabs(s.sum - expected.sum) <= 1e-9 * (1 + fabs(expected.sum)));
        check(i != 2 || s.min_value.i == (int64_t) s.min);
        check(i != 4 || s.max_value.u == (uint64_t) s.max);
    }
}

/* All reductions along one axis, or both, against the values one by one. */
static void
compare_reductions(esdm_container *c, int i)
{
    static double results[ROWS * COLUMNS];
    static uint64_t valid[ROWS * COLUMNS];
    esdm_dataset *v = set_of(c, i);
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(v, 0));
    uint64_t at[2] = {below(rows), below(2) * below(COLUMNS)};
    uint64_t n[2] = {1 + below(rows - at[0]), 1 + below(COLUMNS - at[1])};
    const bool over[2] = {below(2) == 0, below(3) > 0};
    uint64_t across = over[0] ? 1 : n[0] < 4 ? n[0] : 4; /* so many are looked at */
    uint64_t along = over[1] ? 1 : n[1] < 4 ? n[1] : 4;
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, at, n, ERR));
    for (int what = ESDM_REDUCE_SUM; what <= ESDM_REDUCE_VARIANCE; what++) {
        ok(esdm_reduce(v, &space, over, (esdm_reduction) what, results, valid, ERR));
        for (uint64_t y = 0; y < across; y++) {
            for (uint64_t x = 0; x < along; x++) {
                uint64_t k = over[1] ? y : y * n[1] + x;
                uint64_t from[2] = {over[0] ? at[0] : at[0] + y, over[1] ? at[1] : at[1] + x};
                uint64_t size[2] = {over[0] ? n[0] : 1, over[1] ? n[1] : 1};
                esdm_statistics s = brute(v, i, from, size);
                double mean = s.sum / (double) s.valid;
                double expected[] = {0, s.sum, mean, s.min, s.max, (double) s.valid, -1};
                check(valid[k] == s.valid);
                if (s.valid == 0)
                    check(what == ESDM_REDUCE_COUNT ? results[k] == 0 : isnan(results[k]));
                else if (what != ESDM_REDUCE_VARIANCE)
                    check(fabs(results[k] - expected[what]) <= 1e-9 * (1 + fabs(expected[what])));
                else
                    check(fabs(results[k] - brute_variance(v, i, from, size, mean)) <= 1e-6);
            }
        }
    }
}

static void
test_boxes(void)
{
    make();
    for (int commit = 0; commit < 40; commit++) { /* enough that pages are merged */
        esdm_container *c;
        ok(esdm_container_open(session, "s", ESDM_OPEN_WRITE, 0, &c, ERR));
        for (int i = 0; i < SETS; i++) {
            for (uint64_t k = below(3); k > 0; k--)
                write_some(c, i);
            if (commit % 8 == 3 && esdm_dimension_length(esdm_dataset_dimension(set_of(c, i), 0)))
                compare(c, i, below(2) == 0); /* before the commit */
        }
        ok(esdm_container_close(c, ERR));
        ok(esdm_container_open(session, "s", ESDM_OPEN_READ, 0, &c, ERR));
        for (int i = 0; i < SETS && commit > 2; i++)
            compare(c, i, commit % 5 == 0);
        compare_reductions(c, (int) below(SETS));
        ok(esdm_container_close(c, ERR));
    }
}

/* A variable as a model writes it: nothing has to be read, also when `missing_value` is stated
 * afterwards, but then what was noted before does not count. */
static void
test_steps(void)
{
    static float step[COLUMNS];
    esdm_container *c;
    esdm_dimension *d[2];
    esdm_dataset *v;
    esdm_statistics s;
    ok(esdm_container_create(session, "steps", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &d[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &d[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 2, d, &v, ERR));
    for (uint64_t t = 0; t < 30; t++) {
        esdm_dataspace space;
        for (int i = 0; i < COLUMNS; i++)
            step[i] = (float) (t + (uint64_t) i);
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){t, 0}, (uint64_t[]){1, COLUMNS}, ERR));
        ok(esdm_write(v, &space, ESDM_TYPE_FLOAT32, step, NULL, ERR));
        if (t % 10 == 9)
            ok(esdm_container_commit(c, NULL, ERR));
    }
    ok(esdm_dataset_statistics(v, NULL, false, &s, ERR));
    check(s.flags == (ESDM_STATISTICS_BOUNDS | ESDM_STATISTICS_EXACT));
    check(s.valid == 30 * COLUMNS && s.min == 0 && s.max == COLUMNS + 28);
    ok(esdm_attribute_set(esdm_dataset_attributes(v), "missing_value", ESDM_TYPE_FLOAT32, 1,
                          &(float){0}, ERR));
    ok(esdm_dataset_statistics(v, NULL, false, &s, ERR));
    check(s.flags == 0);
    ok(esdm_dataset_statistics(v, NULL, true, &s, ERR));
    check(s.valid == 30 * COLUMNS - 1 && s.min == 1 && s.read_elements == 30 * COLUMNS);
    ok(esdm_container_close(c, ERR));
}

/* What IEEE arithmetic has no number for is NaN, not 0. */
static void
test_infinite(void)
{
    static const double some[4] = {1, (double) INFINITY, 2, 3};
    esdm_container *c;
    esdm_dimension *d[2];
    esdm_dataset *v, *huge;
    esdm_dataspace space;
    double result = 0;
    ok(esdm_container_create(session, "infinite", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "x", 4, &d[0], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, d, &v, ERR));
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){0}, (uint64_t[]){4}, ERR));
    ok(esdm_write(v, &space, ESDM_TYPE_FLOAT64, some, NULL, ERR));
    ok(esdm_reduce(v, NULL, &(bool){true}, ESDM_REDUCE_VARIANCE, &result, NULL, ERR));
    check(isnan(result));
    ok(esdm_dimension_create(root, "a", UINT64_C(1) << 33, &d[0], ERR));
    ok(esdm_dimension_create(root, "b", UINT64_C(1) << 33, &d[1], ERR));
    ok(esdm_dataset_create(root, "huge", ESDM_TYPE_FLOAT64, 2, d, &huge, ERR));
    fails(esdm_reduce(huge, NULL, (bool[]){false, false}, ESDM_REDUCE_SUM, &result, NULL, ERR),
          ESDM_EINVAL, "too many results");
    ok(esdm_container_close(c, ERR));
}

/* Whole numbers that no double holds are told apart from missing ones. */
static void
test_large_integers(void)
{
    const int64_t missing = (INT64_C(1) << 60) + 1;
    const int64_t some[4] = {(INT64_C(1) << 60), missing, (INT64_C(1) << 60) + 2, missing};
    const double as_double = (double) (INT64_C(1) << 60);
    esdm_container *c;
    esdm_dimension *d[2];
    esdm_dataset *v;
    esdm_dataspace space;
    double results[4];
    uint64_t valid[4];
    ok(esdm_container_create(session, "integers", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "y", 2, &d[0], ERR));
    ok(esdm_dimension_create(root, "x", 4, &d[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT64, 2, d, &v, ERR));
    ok(esdm_attribute_set(esdm_dataset_attributes(v), "missing_value", ESDM_TYPE_INT64, 1, &missing,
                          ERR));
    for (uint64_t y = 0; y < 2; y++) {
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){y, 0}, (uint64_t[]){1, 4}, ERR));
        ok(esdm_write(v, &space, ESDM_TYPE_INT64, some, NULL, ERR));
    }
    for (int what = ESDM_REDUCE_SUM; what <= ESDM_REDUCE_VARIANCE; what++) {
        ok(esdm_reduce(v, NULL, (bool[]){false, true}, (esdm_reduction) what, results, valid, ERR));
        check(valid[0] == 2 && valid[1] == 2);
        ok(esdm_reduce(v, NULL, (bool[]){true, false}, (esdm_reduction) what, results, valid, ERR));
        check(valid[0] == 2 && valid[1] == 0 && valid[2] == 2 && valid[3] == 0);
        check(what != ESDM_REDUCE_MIN || results[0] == as_double);
    }
    ok(esdm_container_close(c, ERR));
}

/* Enough values for several threads: all reductions along all sets of axes, with and without what
 * is missing, compressed and not, in step-wise fragments. */
enum { T = 7, Z = 6, Y = 90, X = 80, ALL = T * Z * Y * X };

static float grid[ALL];

static void
compare_grid(esdm_dataset *v, const bool *over, esdm_reduction what, float missing)
{
    static const uint64_t n[4] = {T, Z, Y, X};
    static double results[ALL], expected[ALL], squares[ALL];
    static uint64_t valid[ALL], count[ALL];
    memset(expected, 0, sizeof expected);
    memset(squares, 0, sizeof squares);
    memset(count, 0, sizeof count);
    uint64_t nresults = 1;
    for (int d = 0; d < 4; d++)
        nresults *= over[d] ? 1 : n[d];
    for (uint64_t i = 0; i < ALL; i++) {
        const uint64_t at[4] = {i / (Z * Y * X), i / (Y * X) % Z, i / X % Y, i % X};
        uint64_t k = 0;
        for (int d = 0; d < 4; d++)
            k = over[d] ? k : k * n[d] + at[d];
        double x = (double) grid[i];
        if (grid[i] == missing)
            continue;
        bool first = count[k]++ == 0;
        squares[k] += x * x;
        if (what == ESDM_REDUCE_MIN || what == ESDM_REDUCE_MAX)
            expected[k] = first || (what == ESDM_REDUCE_MIN ? x < expected[k] : x > expected[k])
                              ? x
                              : expected[k];
        else
            expected[k] += x;
    }
    ok(esdm_reduce(v, NULL, over, what, results, valid, ERR));
    for (uint64_t k = 0; k < nresults; k++) {
        double m = (double) count[k];
        double mean = expected[k] / m;
        double e = what == ESDM_REDUCE_MEAN       ? mean
                   : what == ESDM_REDUCE_COUNT    ? m
                   : what == ESDM_REDUCE_VARIANCE ? squares[k] / m - mean * mean
                                                  : expected[k];
        check(valid[k] == count[k]);
        check(count[k] == 0 ? what == ESDM_REDUCE_COUNT || isnan(results[k])
                            : fabs(results[k] - e) <= 1e-7 * (1 + fabs(e)));
    }
}

static void
test_grid(bool masked, const char *codec)
{
    const float missing = -5;
    esdm_container *c;
    esdm_dimension *d[4];
    esdm_dataset *v;
    esdm_dataspace space;
    for (int i = 0; i < ALL; i++)
        grid[i] = masked && (i % (Y * X) < 900 || below(50) == 0) ? missing : (float) below(1000);
    ok(esdm_container_create(session, "grid", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    const uint64_t n[4] = {T, Z, Y, X};
    for (int i = 0; i < 4; i++)
        ok(esdm_dimension_create(root, (const char *[]){"t", "z", "y", "x"}[i], n[i], &d[i], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 4, d, &v, ERR));
    ok(esdm_dataset_set_codec(v, codec, ERR));
    ok(esdm_attribute_set(esdm_dataset_attributes(v), "_FillValue", ESDM_TYPE_FLOAT32, 1, &missing,
                          ERR));
    for (uint64_t t = 0; t < T; t++) {
        ok(esdm_dataspace_init(&space, 4, (uint64_t[]){t, 0, 0, 0}, (uint64_t[]){1, Z, Y, X}, ERR));
        ok(esdm_write(v, &space, ESDM_TYPE_FLOAT32, grid + t * Z * Y * X, NULL, ERR));
    }
    ok(esdm_container_commit(c, NULL, ERR));
    for (unsigned axes = 0; axes < 16; axes++) {
        const bool over[4] = {axes & 1, axes & 2, axes & 4, axes & 8};
        esdm_reduction what = (esdm_reduction) (1 + axes % 6);
        compare_grid(v, over, what, missing);
        compare_grid(v, over, axes % 2 == 0 ? ESDM_REDUCE_MEAN : ESDM_REDUCE_VARIANCE, missing);
    }
    ok(esdm_container_close(c, ERR));
}

static void
test_errors(void)
{
    esdm_container *c;
    esdm_dimension *d[1];
    esdm_dataset *texts;
    esdm_statistics s;
    ok(esdm_container_create(session, "errors", ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "x", 4, &d[0], ERR));
    ok(esdm_dataset_create(root, "texts", ESDM_TYPE_STRING, 1, d, &texts, ERR));
    fails(esdm_dataset_statistics(texts, NULL, true, &s, ERR), ESDM_ENOTSUP, "no numbers");
    fails(esdm_reduce(texts, NULL, &(bool){true}, ESDM_REDUCE_SUM, &(double){0}, NULL, ERR),
          ESDM_ENOTSUP, "numbers");
    fails(esdm_reduce(texts, NULL, &(bool){true}, (esdm_reduction) 9, &(double){0}, NULL, ERR),
          ESDM_EINVAL, "reduction 9");
    fails(esdm_dataset_statistics(NULL, NULL, true, &s, ERR), ESDM_EINVAL, "dataset");
    ok(esdm_container_close(c, ERR));
}

int
main(void)
{
    make_site();
    session = open_session();
    test_boxes();
    test_steps();
    test_infinite();
    test_large_integers();
    test_grid(false, "none");
    test_grid(true, "shuffle+lz4");
    test_grid(true, "none");
    test_errors();
    esdm_session_close(session);
    return 0;
}
