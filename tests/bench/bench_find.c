/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Questions to a large catalogue: bench_find COUNT [DIRECTORY] makes COUNT containers with 30
 * attributes, a time axis and a box each, in the site of $ESDM_CONFIG unless they are there, and
 * prints how long questions take in this process, and what a commit costs at the beginning and at
 * the end.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esdm/esdm.h"

static esdm_error err;
static esdm_session *session;

static void
ok(esdm_status status)
{
    if (status == ESDM_OK)
        return;
    (void) fprintf(stderr, "%s: %s\n", esdm_status_string(status), err.message);
    exit(1);
}

static double
now_ms(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void
set_text(esdm_attributes *list, const char *name, const char *value)
{
    ok(esdm_attribute_set(list, name, ESDM_TYPE_CHAR, strlen(value), value, &err));
}

static esdm_dataset *
add(esdm_group *root, const char *name, uint32_t rank, esdm_dimension *const *dimensions,
    const double *values, const char *units)
{
    esdm_dataset *dataset;
    esdm_dataspace space;
    uint64_t start[2] = {0}, count[2] = {2, 2};
    ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, rank, dimensions, &dataset, &err));
    set_text(esdm_dataset_attributes(dataset), "units", units);
    ok(esdm_dataspace_init(&space, rank, start, count, &err));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &err));
    return dataset;
}

static void
make_one(unsigned long i)
{
    static const char *const facets[] = {"model", "experiment", "member", "table", "variable"};
    static const unsigned values[] = {60, 40, 20, 10, 8};
    char name[64], text[64];
    esdm_container *container;
    esdm_dimension *d[3];
    unsigned long rest = i;
    double time = (double) (i % 165) * 365.25, lat = (double) (i % 160) - 80,
           lon = (double) (i * 7 % 350);
    (void) snprintf(name, sizeof name, "bench/%lu/%lu.nc", i / 1000, i);
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, &err));
    esdm_group *root = esdm_container_root(container);
    esdm_attributes *list = esdm_group_attributes(root);
    for (size_t k = 0; k < 5; k++, rest /= values[k - 1]) {
        (void) snprintf(text, sizeof text, "%s-%lu", facets[k], rest % values[k]);
        set_text(list, facets[k], text);
    }
    for (int k = 0; k < 25; k++) {
        (void) snprintf(name, sizeof name, "attribute_%d", k);
        (void) snprintf(text, sizeof text, "value %lu of %d", i % (unsigned long) (k * k + 1), k);
        set_text(list, name, text);
    }
    ok(esdm_dimension_create(root, "time", 2, &d[0], &err));
    ok(esdm_dimension_create(root, "lat", 2, &d[1], &err));
    ok(esdm_dimension_create(root, "lon", 2, &d[2], &err));
    (void) add(root, "time", 1, d, (double[]){time, time + 365}, "days since 1850-01-01");
    (void) add(root, "lat", 1, d + 1, (double[]){lat, lat + 5}, "degrees_north");
    (void) add(root, "lon", 1, d + 2, (double[]){lon, lon + 5}, "degrees_east");
    (void) add(root, "tas", 2, d + 1, (double[]){lat, 280, 290, 300 + (double) (i % 997) / 50},
               "K");
    ok(esdm_container_close(container, &err));
}

static bool
count_match(const esdm_match *match, void *user)
{
    (void) match;
    ++*(unsigned long *) user;
    return true;
}

static bool
count_row(const esdm_match *match, const esdm_find_value *values, void *user)
{
    (void) values;
    return count_match(match, user);
}

/* The least of five times. */
static void
ask(const char *expression, const char *column)
{
    double best = 1e30;
    unsigned long found = 0;
    for (int i = 0; i < 5; i++) {
        double begun = now_ms();
        found = 0;
        if (column != NULL)
            ok(esdm_find_rows(session, expression, &column, 1, count_row, &found, &err));
        else
            ok(esdm_find(session, expression, count_match, &found, &err));
        double took = now_ms() - begun;
        best = took < best ? took : best;
    }
    (void) printf("%9.2f ms %8lu found  %s%s%s\n", best, found, expression,
                  column != NULL ? "  -> " : "", column != NULL ? column : "");
}

int
main(int argc, char **argv)
{
    static const char *const questions[] = {
        "model = model-7 and experiment = experiment-3 and member = member-2",
        "attribute_24 = \"value 77 of 24\" and model = model-7",
        "max(tas) > 319.9 K",
        "max(tas) > 46.75 degC and model = model-7",
        "time overlaps 1850 .. 1851 and experiment = experiment-3",
        "time overlaps 1900-06 and box overlaps 10,10,11,11",
        "box overlaps 10,70,12,72 and model = model-7",
        "experiment = experiment-3 and not (model = model-7 or table = table-1)",
    };
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, there = 0;
    if (count == 0) {
        (void) fprintf(stderr, "usage: bench_find COUNT\n");
        return 2;
    }
    ok(esdm_session_open(NULL, &session, &err));
    ok(esdm_find(session, ":model ~ *", count_match, &there, &err));
    double first = 0, begun = now_ms();
    for (unsigned long i = there; i < count; i++) {
        make_one(i);
        if (i == there + 999)
            first = (now_ms() - begun) / 1000;
        if (i + 1000 == count)
            begun = now_ms();
    }
    if (count > there + 2000)
        (void) printf("a new container takes %.3f ms among the first thousand, %.3f ms among the "
                      "last\n",
                      first, (now_ms() - begun) / 1000);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        ask(questions[i], NULL);
    ask("model = model-7 and experiment = experiment-3", "member");
    ask("model = model-7", "experiment");
    ask(":table = table-1", "variable");
    esdm_session_close(session);
    return 0;
}
