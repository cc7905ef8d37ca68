/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Questions to a large catalogue: bench_find COUNT makes COUNT containers with 30 attributes, a
 * time axis and a box each, in the site of $ESDM_CONFIG unless they are there, and prints how long
 * questions take in this process, and what a commit costs at the beginning and at the end; with
 * --make it asks none, and with --make N it makes those from N on, however many are there. Levels
 * of the view "bench" are asked for where the site has it: "views":
 * {"bench": "{model}/{experiment}/{member}/{table}/{variable}"}, before the first esdm-mkfs.
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
clock_ms(clockid_t which)
{
    struct timespec t;
    (void) clock_gettime(which, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static double
now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

/* The least of five times, and of this process's use of processors in them: on a machine that
 * others use, the time by the clock is theirs, too. A server's share is not in it. */
typedef struct best {
    double clock, cpu;
    double first; /* by processor time */
    double clock_begun, cpu_begun;
} best;

static void
begin(best *b)
{
    b->cpu_begun = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    b->clock_begun = now_ms();
}

static void
end(best *b)
{
    double took = now_ms() - b->clock_begun;
    double used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - b->cpu_begun;
    b->first = b->first > 0 ? b->first : used;
    b->clock = took < b->clock ? took : b->clock;
    b->cpu = used < b->cpu ? used : b->cpu;
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
    uint64_t start[3] = {0}, count[3] = {2, 2, 2};
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
    (void) add(root, "tas", 3, d,
               (double[]){lat, 280, 290, 300 + (double) (i % 997) / 50, 280, 281, 282, 283}, "K");
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

static void
ask(const char *expression, const char *column)
{
    best b = {.clock = 1e30, .cpu = 1e30};
    unsigned long found = 0;
    for (int i = 0; i < 5; i++) {
        begin(&b);
        found = 0;
        if (column != NULL)
            ok(esdm_find_rows(session, expression, &column, 1, count_row, &found, &err));
        else
            ok(esdm_find(session, expression, count_match, &found, &err));
        end(&b);
    }
    (void) printf("%9.2f ms %9.2f cpu %8lu found  %s%s%s\n", b.clock, b.cpu, found, expression,
                  column != NULL ? "  -> " : "", column != NULL ? column : "");
}

static bool
count_entry(const esdm_view_entry *entry, void *user)
{
    unsigned long *sums = user;
    sums[0]++;
    sums[1] += entry->containers;
    return true;
}

static void
browse(const char *place)
{
    best b = {.clock = 1e30, .cpu = 1e30};
    unsigned long sums[2] = {0, 0};
    for (int i = 0; i < 5; i++) {
        begin(&b);
        sums[0] = sums[1] = 0;
        ok(esdm_view_level(session, place, count_entry, sums, &err));
        end(&b);
    }
    (void) printf("%9.2f ms %9.2f cpu %8lu found  %s/, %lu containers\n", b.clock, b.cpu, sums[0],
                  place, sums[1]);
}

static bool
count_value(size_t name, const char *value, uint64_t containers, void *user)
{
    unsigned long *sums = user;
    (void) name;
    (void) value;
    sums[0]++;
    sums[1] += containers;
    return true;
}

/* @param list one or two names. */
static void
count_values(const char *expression, const char *list)
{
    char text[64];
    best b = {.clock = 1e30, .cpu = 1e30};
    unsigned long sums[2] = {0, 0};
    (void) snprintf(text, sizeof text, "%s", list);
    char *comma = strchr(text, ',');
    const char *names[2] = {text, comma != NULL ? comma + 1 : NULL};
    if (comma != NULL)
        *comma = '\0';
    for (int i = 0; i < 5; i++) {
        begin(&b);
        sums[0] = sums[1] = 0;
        ok(esdm_find_facets(session, expression, names, comma != NULL ? 2 : 1, count_value, sums,
                            &err));
        end(&b);
    }
    (void) printf("%9.2f ms %9.2f cpu %8lu found  facets %s of %s, %lu counted; first %.2f cpu\n",
                  b.clock, b.cpu, sums[0], list, expression, sums[1], b.first);
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
        ("model = model-7 and experiment = experiment-3 and member = member-2 and box overlaps "
         "0,0,9,9"),
        "box overlaps 10,70,12,72 and model = model-7",
        "experiment = experiment-3 and not (model = model-7 or table = table-1)",
        "attribute_24 ~ \"value 77 of*\" and model = model-7",
        "attribute_24 =~ \"^value 77 of 2[0-9]\" and model = model-7",
        "attribute_24 ~ \"value 77 of*\"",
    };
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, there = 0;
    if (count == 0) {
        (void) fprintf(stderr, "usage: bench_find COUNT [--make [N]]\n");
        return 2;
    }
    ok(esdm_session_open(NULL, &session, &err));
    if (argc > 3)
        there = strtoul(argv[3], NULL, 10);
    else
        ok(esdm_find(session, ":model ~ *", count_match, &there, &err));
    best first = {.clock = 1e30, .cpu = 1e30}, last = first;
    begin(&first);
    for (unsigned long i = there; i < count; i++) {
        if (i + 5000 == count)
            begin(&last);
        make_one(i);
        if (i == there + 4999)
            end(&first);
    }
    end(&last);
    if (count > there + 10000)
        (void) printf("a new container takes %.3f ms (%.3f cpu) among the first 5000, %.3f ms "
                      "(%.3f cpu) among the last\n",
                      first.clock / 5000, first.cpu / 5000, last.clock / 5000, last.cpu / 5000);
    (void) fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "--make") == 0) {
        esdm_session_close(session);
        return 0;
    }
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        ask(questions[i], NULL);
    ask("model = model-7 and experiment = experiment-3", "member");
    ask("model = model-7", "experiment");
    ask(":table = table-1", "variable");
    count_values("exists :model", "model");
    count_values("exists :model", "experiment,table");
    count_values("model = model-7", "experiment");
    static const char *const places[] = {"bench:", "bench:/model-7", "bench:/model-7/experiment-3",
                                         "bench:/model-7/experiment-3/member-2",
                                         "bench:/model-7/experiment-3/member-2/table-0"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (esdm_view_is_said(session, places[i]))
            browse(places[i]);
    }
    esdm_session_close(session);
    return 0;
}
