/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Every promise of esdm/accuracy.h, alone and in pairs, on fields that are hard on codecs. What is
 * promised is written down here once more, in long double, and not taken from the library. */
#include "testing.h"

#include <math.h>

#include "../support/accuracy_check.h"
#include "../support/number_fields.h"

#define MOST_ELEMENTS 6000u

/* ---- the promises ------------------------------------------------------------------------- */

typedef enum quantity {
    ABSOLUTE,
    RELATIVE,
    FINEST,
    DIGITS,
    BITS,
    CONSERVE,
    UP_TO,
    FROM,
    EXACT,
    MODE,
    SPEED,
    RANGE,
    STD,
    GRADIENT,
    VECTOR,
    MEAN,
    QUANTITIES
} quantity;

/* Each usual, strict and loose; the numbers are those of the texts. */
#define VARIANTS 3u
typedef struct statement {
    const char *text;
    double value;
    double finest;
} statement;
static const statement statements[QUANTITIES][VARIANTS] = {
    [ABSOLUTE] = {{"abs=0.05", 0.05, 0}, {"abs=1e-6", 1e-6, 0}, {"abs=1e30", 1e30, 0}},
    [RELATIVE] = {{"rel=0.3%", 0.3 / 100, 0}, {"rel=1e-9", 1e-9, 0}, {"rel=0.9", 0.9, 0}},
    [FINEST] = {{"rel=0.02; finest=0.25", 0.02, 0.25},
                {"rel=1e-7; finest=1e-42", 1e-7, 1e-42},
                {"rel=0.5; finest=1000", 0.5, 1000}},
    [DIGITS] = {{"digits=4", 4, 0}, {"digits=12", 12, 0}, {"digits=1", 1, 0}},
    [BITS] = {{"bits=7", 7, 0}, {"bits=22", 22, 0}, {"bits=1", 1, 0}},
    [CONSERVE] = {{"conserve=mean", 1e-6, 0},
                  {"conserve=1e-11", 1e-11, 0},
                  {"conserve=0.5", 0.5, 0}},
    [UP_TO] = {{"lossless_up_to=265.5", 265.5, 0},
               {"lossless_up_to=1e20", 1e20, 0},
               {"lossless_up_to=-1e30", -1e30, 0}},
    [FROM] = {{"lossless_from=290.25", 290.25, 0},
              {"lossless_from=0", 0, 0},
              {"lossless_from=1e38", 1e38, 0}},
    [EXACT] = {{"exact=273 280 281 0", 0, 0},
               {"exact=273 280 281 0", 0, 0},
               {"exact=273 280 281 0", 0, 0}},
    [MODE] = {{"mode=archive", 0, 0}, {"mode=speed", 0, 0}, {"mode=energy", 0, 0}},
    [SPEED] = {{"compression_speed=1 MiB/s; decompression_speed=1 kB/s", 0, 0},
               {"compression_speed=1 GiB/s", 0, 0},
               {"decompression_speed=100 GiB/s", 0, 0}},
    [RANGE] = {{"range=0.1 %", 0.1 / 100, 0}, {"range=1e-8", 1e-8, 0}, {"range=0.5", 0.5, 0}},
    [GRADIENT] = {{"gradient=0.05", 0.05, 0},
                  {"gradient=1e-6", 1e-6, 0},
                  {"gradient=1e30", 1e30, 0}},
    [VECTOR] = {{"vector=0.05", 0.05, 2},
                {"vector=1e-5; components=3", 1e-5, 3},
                {"vector=1000; components=2", 1000, 2}},
    [MEAN] = {{"mean=1e-4", 1e-4, 0}, {"mean=1e-12", 1e-12, 0}, {"mean=100", 100, 0}},
    [STD] = {{"std=1 %", 1.0 / 100, 0}, {"std=1e-7", 1e-7, 0}, {"std=0.9", 0.9, 0}},
};
static const double exact_numbers[] = {273, 280, 281, 0};

typedef struct promise {
    bool has[QUANTITIES];
    size_t variant;
    const void *fill;
    esdm_type type;
    size_t bytes;
} promise;

static long double
value_of(const promise *p, quantity which)
{
    return (long double) statements[which][p->variant].value;
}

static bool
has_tolerance(const promise *p)
{
    return p->has[ABSOLUTE] || p->has[RELATIVE] || p->has[FINEST] || p->has[DIGITS] ||
           p->has[BITS] || p->has[RANGE] || p->has[STD] || p->has[GRADIENT] || p->has[VECTOR];
}

/* Ranges and values that are exact say nothing where nothing may be off; two relative tolerances
 * are one statement, the later of them. */
static bool
makes_sense(const promise *p)
{
    return has_tolerance(p) || (!p->has[UP_TO] && !p->has[FROM] && !p->has[EXACT]);
}

static bool
is_listed(const promise *p, const void *element)
{
    for (size_t i = 0; p->has[EXACT] && i < sizeof exact_numbers / sizeof exact_numbers[0]; i++) {
        uint8_t number[8];
        if (exact_numbers[i] > 127 && p->bytes == 1)
            continue;
        field_put(p->type, exact_numbers[i], number);
        if (memcmp(number, element, p->bytes) == 0)
            return true;
    }
    return memcmp(element, p->fill, p->bytes) == 0;
}

static bool
must_be_exact(const promise *p, const void *element)
{
    long double x = accuracy_value(p->type, element);
    return !has_tolerance(p) || !isfinite(x) || (p->has[UP_TO] && x <= value_of(p, UP_TO)) ||
           (p->has[FROM] && x >= value_of(p, FROM)) || is_listed(p, element);
}

static long double
limit_of(const promise *p, long double x)
{
    long double limit = INFINITY;
    long double size = fabsl(x);
    if (p->has[ABSOLUTE])
        limit = fminl(limit, value_of(p, ABSOLUTE));
    if (p->has[FINEST]) { /* stated behind RELATIVE, it takes its place */
        long double finest = (long double) statements[FINEST][p->variant].finest;
        limit = fminl(limit, fmaxl(value_of(p, FINEST) * size, finest));
    } else if (p->has[RELATIVE]) {
        limit = fminl(limit, value_of(p, RELATIVE) * size);
    }
    if (p->has[GRADIENT]) /* of any two numbers, of which both may be so far off */
        limit = fminl(limit, value_of(p, GRADIENT) / 2);
    if (p->has[VECTOR])
        limit = fminl(limit, value_of(p, VECTOR) /
                                 sqrtl((long double) statements[VECTOR][p->variant].finest));
    if (p->has[DIGITS])
        limit = fminl(limit, size / powl(10, value_of(p, DIGITS)));
    if (p->has[BITS])
        limit = fminl(limit, ldexpl(size, -(int) value_of(p, BITS)));
    return limit;
}

/* The bound that range and standard deviation of the numbers that may be off give. */
static long double
limit_of_all(const promise *p, const uint8_t *before, size_t n)
{
    long double limit = INFINITY;
    long double low = INFINITY;
    long double high = -INFINITY;
    long double sum = 0;
    long double squares = 0;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            long double x = accuracy_value(p->type, before + i * p->bytes);
            if (must_be_exact(p, before + i * p->bytes))
                continue;
            low = fminl(low, x);
            high = fmaxl(high, x);
            count += pass == 0;
            sum += pass == 0 ? x : 0;
            squares += pass == 1 ? (x - sum / count) * (x - sum / count) : 0;
        }
    }
    if (p->has[RANGE])
        limit = count > 0 ? value_of(p, RANGE) * (high - low) : 0;
    if (p->has[STD])
        limit = fminl(limit, count > 0 ? value_of(p, STD) * sqrtl(squares / count) : 0);
    return limit;
}

static void
check_promise(const promise *p, const uint8_t *before, const uint8_t *after, size_t n,
              const char *what)
{
    long double change = 0;
    long double magnitude = 0;
    size_t points = 0;
    const long double limit_here = limit_of_all(p, before, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *x = before + i * p->bytes;
        const uint8_t *y = after + i * p->bytes;
        bool same = memcmp(x, y, p->bytes) == 0;
        if (must_be_exact(p, x)) {
            if (!same)
                die("%s: element %zu, %.17Lg, became %.17Lg", what, i, accuracy_value(p->type, x),
                    accuracy_value(p->type, y));
            continue;
        }
        long double value = accuracy_value(p->type, x);
        long double error = accuracy_value(p->type, y) - value;
        magnitude += fabsl(value);
        points++;
        change += error;
        long double limit = fminl(limit_of(p, value), limit_here);
        if (!same && (!(fabsl(error) <= limit) || limit == 0 || is_listed(p, y)))
            die("%s: element %zu, %.17Lg, became %.17Lg, which is off by %.3Lg, %.17Lg are allowed",
                what, i, value, accuracy_value(p->type, y), error, limit);
    }
    if (p->has[CONSERVE] && !(fabsl(change) <= value_of(p, CONSERVE) * magnitude * (1 + 1e-12L)))
        die("%s: the sum changes by %.6Lg of %.6Lg", what, change, magnitude);
    if (p->has[MEAN] && !(fabsl(change) <= value_of(p, MEAN) * (long double) points))
        die("%s: the mean changes by %.6Lg", what, change / (long double) points);
}

/* ---- datasets ----------------------------------------------------------------------------- */

typedef struct shape {
    uint32_t rank;
    uint64_t n[5];
} shape;

static const shape shapes[] = {
    {1, {4099}},
    {2, {61, 67}},
    {3, {13, 17, 19}},
    {4, {3, 5, 7, 31}},
    {5, {2, 3, 5, 7, 11}},
    {2, {1, 2003}},
    {0, {0}},
    {1, {1}},
    {5, {1, 1, 1, 1, 1}},
    {3, {1, 1, 1013}},
    {4, {1, 101, 1, 7}},
    {1, {2}},
    {2, {757, 1}},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* NULL: ESDM chooses, by time, so that runs differ; the others are all that may lose accuracy. */
static const char *const chains[] = {NULL, "field", "bitround+shuffle+zstd", "bitround+field"};

typedef struct test {
    esdm_session *session;
    esdm_container *container;
    esdm_dimension *dims[SHAPES][5];
    uint8_t before[MOST_ELEMENTS * 8];
    uint8_t after[MOST_ELEMENTS * 8];
    uint64_t datasets;
    uint64_t lossy;
} test;

static void
new_container(test *t)
{
    char name[32];
    snprintf(name, sizeof name, "pairs-%" PRIu64, t->datasets);
    ok(esdm_container_create(t->session, name, ESDM_CREATE_NEW, &t->container, ERR));
    esdm_group *root = esdm_container_root(t->container);
    for (size_t s = 0; s < SHAPES; s++)
        for (uint32_t d = 0; d < shapes[s].rank; d++) {
            snprintf(name, sizeof name, "d%zu-%u", s, d);
            ok(esdm_dimension_create(root, name, shapes[s].n[d], &t->dims[s][d], ERR));
        }
}

static esdm_dataset *
new_dataset(test *t, esdm_type type, size_t s)
{
    char name[32];
    esdm_dataset *dataset;
    snprintf(name, sizeof name, "v%" PRIu64, t->datasets++);
    ok(esdm_dataset_create(esdm_container_root(t->container), name, type, shapes[s].rank,
                           t->dims[s], &dataset, ERR));
    if (type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64) {
        uint8_t fill[8];
        field_put(type, field_fill, fill);
        ok(esdm_dataset_set_fill(dataset, fill, ERR));
    }
    return dataset;
}

static bool
state_accuracy(esdm_dataset *dataset, quantity a, quantity b, size_t variant, promise *p)
{
    char text[256];
    esdm_accuracy accuracy;
    memset(p, 0, sizeof *p);
    p->has[a] = true;
    p->has[b] = true;
    p->variant = variant;
    p->type = esdm_dataset_type(dataset);
    p->bytes = esdm_type_size(p->type);
    p->fill = esdm_dataset_fill(dataset, NULL);
    snprintf(text, sizeof text, "%s%s%s", statements[a][variant].text, a == b ? "" : "; ",
             a == b ? "" : statements[b][variant].text);
    esdm_accuracy_init(&accuracy);
    if (!makes_sense(p)) {
        fails(esdm_accuracy_parse(&accuracy, text, NULL, ERR), ESDM_EINVAL, "may be off");
        return false;
    }
    ok(esdm_accuracy_parse(&accuracy, text, NULL, ERR));
    if (p->has[EXACT] && p->bytes == 1) { /* 273 is no number of 8 bits */
        fails(esdm_dataset_set_accuracy(dataset, &accuracy, ERR), ESDM_EINVAL, "exact_values");
        return false;
    }
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
    return true;
}

static void
run_one(test *t, esdm_type type, field_kind kind, quantity a, quantity b, size_t variant)
{
    uint64_t random = t->datasets; /* shapes and codecs in every company */
    size_t s = (size_t) (next_random(&random) % SHAPES);
    const char *chain = chains[next_random(&random) % (sizeof chains / sizeof chains[0])];
    promise p;
    esdm_dataspace space;
    char what[300];
    esdm_dataset *dataset = new_dataset(t, type, s);
    if (!state_accuracy(dataset, a, b, variant, &p))
        return;
    if (chain != NULL)
        ok(esdm_dataset_set_codec(dataset, chain, ERR));
    ok(esdm_dataspace_init(&space, shapes[s].rank, NULL, shapes[s].n, ERR));
    size_t n = (size_t) esdm_dataspace_elements(&space);
    field_make_hard(kind, type, n, t->before);
    memset(t->after, 0x77, sizeof t->after);
    ok(esdm_write(dataset, &space, type, t->before, NULL, ERR));
    ok(esdm_read(dataset, &space, type, t->after, NULL, ERR)); /* of the gather */
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_read(dataset, &space, type, t->after, NULL, ERR));
    snprintf(what, sizeof what, "%s field %d shape %zu, '%s' and '%s', %s", esdm_type_name(type),
             (int) kind, s, statements[a][variant].text, statements[b][variant].text,
             chain != NULL ? chain : "any codec");
    check_promise(&p, t->before, t->after, n, what);
    t->lossy += memcmp(t->before, t->after, n * p.bytes) != 0;
}

/* Every `step`-th of all types, fields and pairs; floating point also with other numbers stated. */
static void
run_all(test *t, uint64_t step)
{
    uint64_t round = 0;
    for (size_t type = 0; type < FIELD_TYPES; type++) {
        size_t variants = field_is_float(field_types[type]) ? VARIANTS : 1;
        for (size_t variant = 0; variant < variants; variant++) {
            new_container(t);
            for (field_kind kind = 0; kind < FIELD_ALL_KINDS; kind++)
                for (quantity a = 0; a < QUANTITIES; a++)
                    for (quantity b = a; b < QUANTITIES; b++)
                        if (round++ % step == 0)
                            run_one(t, field_types[type], kind, a, b, variant);
            esdm_container_discard(t->container);
        }
    }
}

/* ---- the rest ----------------------------------------------------------------------------- */

static esdm_dataset *
one_dataset(test *t, const char *name, esdm_type type)
{
    esdm_dimension *x;
    esdm_dataset *dataset;
    ok(esdm_container_create(t->session, name, ESDM_CREATE_NEW, &t->container, ERR));
    ok(esdm_dimension_create(esdm_container_root(t->container), "x", 5000, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(t->container), "v", type, 1, &x, &dataset, ERR));
    return dataset;
}

static void
set_accuracy(esdm_dataset *dataset, const char *text)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, text, NULL, ERR));
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
}

static void
write_all(esdm_dataset *dataset, const void *data)
{
    esdm_dataspace space;
    const uint64_t n = 5000;
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    ok(esdm_write(dataset, &space, esdm_dataset_type(dataset), data, NULL, ERR));
}

/* A share of the range or of the standard deviation becomes the bound of the fragment, up to an
 * eighth of an octave stricter; writing again what was read changes no bit. */
static void
test_shares_of_what_numbers_span(test *t)
{
    static float before[5000];
    static float after[5000];
    static const char *const texts[] = {"range=0.1 %", "std=0.01", "range=0.001; std=0.002"};
    double low = INFINITY;
    double high = -INFINITY;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < 5000; i++) {
        before[i] = i % 50 == 7
                        ? NAN
                        : (float) (250 + 40 * sin((double) i * 0.01) + 0.1 * (double) (i % 13));
        if (i % 50 == 7)
            continue;
        low = fmin(low, before[i]);
        high = fmax(high, before[i]);
        sum += before[i];
        squares += (double) before[i] * before[i];
    }
    const double deviation = sqrt(squares / 4900 - sum / 4900 * sum / 4900);
    const double limits[] = {0.001 * (high - low), 0.01 * deviation,
                             fmin(0.001 * (high - low), 0.002 * deviation)};
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        esdm_dataspace space;
        const uint64_t n = 5000;
        esdm_accuracy_report report;
        snprintf(name, sizeof name, "span-%zu", i);
        esdm_dataset *dataset = one_dataset(t, name, ESDM_TYPE_FLOAT32);
        set_accuracy(dataset, texts[i]);
        ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
        const float *from = before;
        for (int again = 0; again < 3; again++) {
            write_all(dataset, from);
            ok(esdm_container_commit(t->container, NULL, ERR));
            ok(esdm_dataset_accuracy_report(dataset, &report, ERR));
            if (!(report.lossy_fragments > 0 && report.absolute <= limits[i] &&
                  report.absolute > limits[i] / 1.1 &&
                  (again > 0 || report.largest_error > limits[i] / 4)))
                die("%s, round %d: %" PRIu64
                    " fragments, the bound is %.17g for %.17g, the largest error %g",
                    texts[i], again, report.lossy_fragments, report.absolute, limits[i],
                    report.largest_error);
            float read[5000];
            ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, read, NULL, ERR));
            if (again > 0 && memcmp(read, after, sizeof read) != 0)
                die("%s: what was read and written again is something else", texts[i]);
            memcpy(after, read, sizeof read);
            from = after;
            if (!esdm_dataset_accuracy_holds(dataset, before, read, 5000, NULL))
                die("%s: the library says that its promise does not hold", texts[i]);
            read[4] += 2 * (float) limits[i];
            if (esdm_dataset_accuracy_holds(dataset, before, read, 5000, NULL) ||
                esdm_dataset_accuracy_holds(dataset, before, read, 10, NULL))
                die("%s: a number that is off is not seen", texts[i]);
        }
        ok(esdm_container_close(t->container, ERR));
    }
}

/* What is stated comes back from the store, and so does what became of the numbers. */
static void
test_it_is_kept_and_reported(test *t)
{
    esdm_accuracy accuracy;
    esdm_accuracy_report report;
    char *text;
    esdm_dataset *dataset = one_dataset(t, "kept", ESDM_TYPE_FLOAT32);
    check(!esdm_dataset_accuracy(dataset, &accuracy));
    set_accuracy(dataset, "abs=0.05; mode=archive");
    field_make(FIELD_MASKED, ESDM_TYPE_FLOAT32, 5000, t->before);
    write_all(dataset, t->before);
    ok(esdm_container_close(t->container, ERR));

    ok(esdm_container_open(t->session, "kept", ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &t->container,
                           ERR));
    dataset = esdm_group_dataset_find(esdm_container_root(t->container), "v");
    check(dataset != NULL && esdm_dataset_accuracy(dataset, &accuracy));
    ok(esdm_accuracy_print(&accuracy, &text, ERR));
    check(strcmp(text, "absolute_tolerance=0.05; mode=archive") == 0);
    free(text);
    ok(esdm_dataset_accuracy_report(dataset, &report, ERR));
    check(report.fragments == 1 && report.lossy_fragments == 1);
    check(report.points + report.exact_points == 5000 && report.exact_points > 100);
    check(report.absolute == 0.05 && report.largest_error > 0 && report.largest_error <= 0.05);
    check(report.largest_share > 0 && report.largest_share <= 1);
    check(fabs(report.mean_change) < 0.05);

    ok(esdm_dataset_set_accuracy(dataset, NULL, ERR)); /* what is written now is exact */
    check(!esdm_dataset_accuracy(dataset, &accuracy));
    write_all(dataset, t->before);
    ok(esdm_container_commit(t->container, NULL, ERR));
    esdm_dataspace space;
    const uint64_t n = 5000;
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, t->after, NULL, ERR));
    check(memcmp(t->before, t->after, 5000 * sizeof(float)) == 0);
    esdm_container_discard(t->container);
}

static void
test_packed_numbers(test *t)
{
    const double scale = 0.01;
    const double offset = 250;
    int16_t data[5000];
    int16_t back[5000];
    esdm_dataspace space;
    const uint64_t n = 5000;
    esdm_dataset *dataset = one_dataset(t, "packed", ESDM_TYPE_INT16);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    const int16_t missing = -32767;
    ok(esdm_attribute_set(list, "scale_factor", ESDM_TYPE_FLOAT64, 1, &scale, ERR));
    ok(esdm_attribute_set(list, "add_offset", ESDM_TYPE_FLOAT64, 1, &offset, ERR));
    ok(esdm_attribute_set(list, "missing_value", ESDM_TYPE_INT16, 1, &missing, ERR));
    set_accuracy(dataset, "abs=0.1");
    for (int i = 0; i < 5000; i++)
        data[i] = (int16_t) (i % 50 == 0 ? missing : 3000 * sin((double) i * 0.01) + i % 7);
    write_all(dataset, data);
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT16, back, NULL, ERR));
    int most = 0;
    for (int i = 0; i < 5000; i++) {
        int error = abs(back[i] - data[i]);
        check(data[i] == missing ? back[i] == missing : back[i] != missing);
        most = error > most ? error : most;
    }
    check(most > 1 && most <= 10);
    esdm_accuracy relative;
    esdm_accuracy_init(&relative);
    ok(esdm_accuracy_parse(&relative, "rel=1%", NULL, ERR));
    fails(esdm_dataset_set_accuracy(dataset, &relative, ERR), ESDM_EINVAL, "packed");
    esdm_container_discard(t->container);
}

static void
test_what_cannot_be_is_refused(test *t)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, "abs=1", NULL, ERR));
    esdm_dataset *dataset = one_dataset(t, "refused", ESDM_TYPE_STRING);
    fails(esdm_dataset_set_accuracy(dataset, &accuracy, ERR), ESDM_EINVAL, "string");
    esdm_container_discard(t->container);
    dataset = one_dataset(t, "refused", ESDM_TYPE_CHAR);
    fails(esdm_dataset_set_accuracy(dataset, &accuracy, ERR), ESDM_EINVAL, "char");
    esdm_container_discard(t->container);
    dataset = one_dataset(t, "refused", ESDM_TYPE_INT8);
    ok(esdm_accuracy_parse(&accuracy, "exact=1000", NULL, ERR));
    fails(esdm_dataset_set_accuracy(dataset, &accuracy, ERR), ESDM_EINVAL, "no number of type");
    accuracy.stated = ESDM_ACCURACY_RELATIVE_FINEST;
    fails(esdm_dataset_set_accuracy(dataset, &accuracy, ERR), ESDM_EINVAL, "relative_finest");
    esdm_container_discard(t->container);
}

/* A codec that is named keeps to the accuracy as well. */
static void
test_a_named_codec_is_used(test *t)
{
    esdm_accuracy_report report;
    esdm_dataset *dataset = one_dataset(t, "named", ESDM_TYPE_FLOAT64);
    ok(esdm_dataset_set_codec(dataset, "bitround+zstd", ERR));
    set_accuracy(dataset, "abs=0.5");
    field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT64, 5000, t->before);
    write_all(dataset, t->before);
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_dataset_accuracy_report(dataset, &report, ERR));
    check(report.lossy_fragments > 0 && report.points == 5000 && report.largest_error <= 0.5 &&
          report.largest_error > 0.1);
    esdm_container_discard(t->container);
}

int
main(void)
{
    test *t = calloc(1, sizeof *t);
    check(t != NULL);
    make_site();
    t->session = open_session();
    test_it_is_kept_and_reported(t);
    test_shares_of_what_numbers_span(t);
    test_packed_numbers(t);
    test_what_cannot_be_is_refused(t);
    test_a_named_codec_is_used(t);
    run_all(t, by_size(29, 5, 1));
    printf("%" PRIu64 " datasets, values changed in %" PRIu64 "\n", t->datasets, t->lossy);
    check(t->lossy > t->datasets / 8);
    esdm_session_close(t->session);
    free(t);
    return 0;
}
