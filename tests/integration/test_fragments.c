/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Very many small fragments, and very many commits: the cost stays flat. No clock is asked: the
 * bytes that the process wrote and read tell. */

#include "testing.h"

/* "wchar" or "rchar" of this process: bytes through write and read calls. */
static uint64_t
io_bytes(const char *key)
{
    char line[128];
    uint64_t value = UINT64_MAX;
    size_t length = strlen(key);
    FILE *file = fopen("/proc/self/io", "r");
    if (!file) {
        printf("SKIPPED: /proc/self/io is not readable here\n");
        exit(77);
    }
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            value = strtoull(line + length + 1, NULL, 10);
    fclose(file);
    check(value != UINT64_MAX);
    return value;
}

static esdm_container *
create_series(esdm_session *session, const char *name, esdm_dataset **ret_dataset)
{
    esdm_container *container;
    esdm_dimension *time;
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &time, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &time, ret_dataset, ERR));
    return container;
}

static void
write_record(esdm_dataset *dataset, uint64_t index)
{
    esdm_dataspace space;
    double value = (double) index + 0.5;
    ok(esdm_dataspace_init(&space, 1, &index, (uint64_t[]){1}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
}

static void
check_series(esdm_session *session, const char *name, uint64_t records)
{
    esdm_container *container;
    esdm_dataspace space;
    double *values = calloc(records, sizeof *values);
    check(values);
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 0)) == records);
    ok(esdm_dataspace_init(&space, 1, NULL, &records, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
    for (uint64_t i = 0; i < records; i++)
        if (values[i] != (double) i + 0.5)
            die("%s: record %" PRIu64 " is %g", name, i, values[i]);
    /* And a few one by one. */
    for (uint64_t i = 0; i < records; i += records / 97 + 1) {
        double value = 0;
        ok(esdm_dataspace_init(&space, 1, &i, (uint64_t[]){1}, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        check(value == (double) i + 0.5);
    }
    ok(esdm_container_close(container, ERR));
    free(values);
}

/* In a scattered order nothing can be gathered: every record is a fragment. */
static void
test_records__scattered_one_by_one(void)
{
    uint64_t records = by_size(20011, 200003, 1000003); /* primes */
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create_series(session, "scattered", &dataset);
    for (uint64_t i = 0, index = 0; i < records; i++) {
        write_record(dataset, index);
        index = (index + 7919) % records;
    }
    ok(esdm_container_close(container, ERR));
    check_series(session, "scattered", records);
    esdm_session_close(session);
}

static void
test_records__in_order_are_gathered(void)
{
    uint64_t records = by_size(20000, 200000, 1000000);
    esdm_container_info info;
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create_series(session, "in-order", &dataset);
    for (uint64_t i = 0; i < records; i++)
        write_record(dataset, i);
    ok(esdm_container_close(container, ERR));
    check_series(session, "in-order", records);
    ok(esdm_container_stat(session, "in-order", &info, ERR));
    check(info.raw_bytes == records * sizeof(double));
    check(info.fragments <= records / 1000);
    esdm_session_close(session);
}

static bool
next(esdm_dataset *dataset, uint64_t index, uint64_t n, esdm_type type, const void *values)
{
    return esdm_write_next(dataset, 1, &index, &n, type, values);
}

/* What follows is copied, and nothing else is: the other ways are left to esdm_write(). */
static void
test_write_next__records_that_follow_and_nothing_else(void)
{
    uint64_t records = by_size(20000, 20000, 200000);
    const double value[2] = {7.5, 8.5};
    const float single = 3;
    esdm_dataset *dataset;
    esdm_dataset *fixed;
    esdm_dimension *x;
    uint64_t refused = 0;
    uint64_t at = 0;
    esdm_session *session = open_session();
    esdm_container *container = create_series(session, "next", &dataset);
    ok(esdm_dimension_create(esdm_container_root(container), "x", 4, &x, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "w", ESDM_TYPE_FLOAT64, 1, &x, &fixed,
                           ERR));
    check(!next(dataset, 0, 1, ESDM_TYPE_FLOAT64, value)); /* nothing was written before */
    write_record(dataset, 0);
    check(!next(dataset, 2, 1, ESDM_TYPE_FLOAT64, value)); /* a hole */
    check(!next(dataset, 1, 0, ESDM_TYPE_FLOAT64, value));
    check(!next(dataset, 1, 1, ESDM_TYPE_FLOAT32, &single));
    check(!next(dataset, 1, UINT64_MAX, ESDM_TYPE_FLOAT64, value));
    check(!esdm_write_next(dataset, 2, (uint64_t[]){1, 0}, (uint64_t[]){1, 1}, ESDM_TYPE_FLOAT64,
                           value));
    for (uint64_t i = 0; i < 4; i++) /* a dimension that does not grow */
        write_record(fixed, i);
    check(!next(fixed, 4, 1, ESDM_TYPE_FLOAT64, value));
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 0)) == 1);
    write_record(dataset, 1);
    for (at = 2; at < records;) { /* one, and two at once */
        const double values[2] = {(double) at + 0.5, (double) at + 1.5};
        uint64_t n = at % 3 == 0 && at + 1 < records ? 2 : 1;
        if (!next(dataset, at, n, ESDM_TYPE_FLOAT64, values)) {
            refused++; /* where memory is to grow */
            for (uint64_t i = 0; i < n; i++)
                write_record(dataset, at + i);
        }
        at += n;
    }
    check(refused < 40);
    ok(esdm_container_close(container, ERR));
    check_series(session, "next", records);

    ok(esdm_container_open(session, "next", ESDM_OPEN_READ, 0, &container, ERR));
    dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    check(!next(dataset, records, 1, ESDM_TYPE_FLOAT64, value));
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* The last commits may write no more than twice what early ones wrote, in the mean. */
static void
test_commit_after_every_record__cost_does_not_grow(void)
{
    uint64_t records = by_size(2000, 8000, 40000);
    uint64_t part = records / 4;
    uint64_t written[4];
    uint64_t read[4];
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create_series(session, "commits", &dataset);
    for (uint64_t quarter = 0, i = 0; quarter < 4; quarter++) {
        uint64_t written_before = io_bytes("wchar");
        uint64_t read_before = io_bytes("rchar");
        for (uint64_t end = i + part; i < end; i++) {
            write_record(dataset, i);
            ok(esdm_container_commit(container, NULL, ERR));
        }
        written[quarter] = io_bytes("wchar") - written_before;
        read[quarter] = io_bytes("rchar") - read_before;
        printf("commits %" PRIu64 " to %" PRIu64 ": %" PRIu64 " bytes written, %" PRIu64
               " bytes read each\n",
               i - part, i, written[quarter] / part, read[quarter] / part);
    }
    ok(esdm_container_close(container, ERR));
    check(written[3] <= 2 * written[0]);
    check(read[3] <= 2 * read[0] + part * 4096);
    check_series(session, "commits", records);
    esdm_session_close(session);
}

/* Opening reads no fragment records: as cheap with 200,000 fragments as with one. */
static void
test_open__cost_does_not_depend_on_fragments(void)
{
    uint64_t cost[2];
    const char *names[2] = {"single", "scattered"};
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create_series(session, "single", &dataset);
    write_record(dataset, 0);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    for (int i = 0; i < 2; i++) {
        session = open_session();
        uint64_t before = io_bytes("rchar");
        ok(esdm_container_open(session, names[i], ESDM_OPEN_READ, 0, &container, ERR));
        cost[i] = io_bytes("rchar") - before;
        ok(esdm_container_close(container, ERR));
        esdm_session_close(session);
    }
    printf("open: %" PRIu64 " bytes read for one fragment, %" PRIu64 " for many\n", cost[0],
           cost[1]);
    check(cost[1] <= cost[0] + 64 * 1024);
}

/* Index pages that all reach from end to end, and more of them than stay loaded: a read of all
 * loads each a few times, not once for every element. */
static void
test_read__pages_that_all_overlap_are_loaded_a_few_times(void)
{
    enum { PER_ROUND = 8192, OTHERS = 40 }; /* of full pages, which are not merged */
    const uint64_t rounds = by_size(16, 32, 32);
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    uint64_t before = io_bytes("wchar");
    esdm_container *container = create_series(session, "overlapping", &dataset);
    esdm_group *root = esdm_container_root(container);
    for (int i = 0; i < OTHERS; i++) { /* share the memory for pages */
        esdm_dataset *other;
        char name[16];
        snprintf(name, sizeof name, "other%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_INT8, 0, NULL, &other, ERR));
    }
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < PER_ROUND; i++)
            write_record(dataset, i * rounds + round);
        ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    uint64_t written = io_bytes("wchar") - before;
    before = io_bytes("rchar");
    check_series(session, "overlapping", rounds * PER_ROUND);
    uint64_t read = io_bytes("rchar") - before;
    printf("overlapping pages: %" PRIu64 " bytes written, %" PRIu64 " read\n", written, read);
    check(read <= 8 * written);
    esdm_session_close(session);
}

static bool
note_largest(const esdm_fragment_info *info, void *user)
{
    uint64_t *largest = user;
    *largest = info->raw_bytes > *largest ? info->raw_bytes : *largest;
    return true;
}

/* Otherwise a read of one text would take the memory of all. */
static void
test_texts__long_ones_make_fragments_of_the_usual_size(void)
{
    enum { TEXTS = 40000, LENGTH = 1000 };
    static const char *texts[TEXTS];
    char text[LENGTH + 1];
    char *read[2];
    uint64_t largest = 0;
    esdm_container *container;
    esdm_dimension *dim;
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_session *session = open_session();
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    for (size_t i = 0; i < TEXTS; i++)
        texts[i] = i % 2 == 0 ? text : NULL;
    ok(esdm_container_create(session, "texts", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "n", TEXTS, &dim, ERR));
    ok(esdm_dataset_create(esdm_container_root(container), "v", ESDM_TYPE_STRING, 1, &dim, &dataset,
                           ERR));
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){TEXTS}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_STRING, texts, NULL, ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, note_largest, &largest, ERR));
    check(largest > (1u << 20) && largest <= (5u << 20));
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){TEXTS - 2}, (uint64_t[]){2}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_STRING, read, NULL, ERR));
    check(strcmp(read[0], text) == 0 && read[1] == NULL);
    free(read[0]);
    free(read[1]);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_records__scattered_one_by_one();
    test_records__in_order_are_gathered();
    test_write_next__records_that_follow_and_nothing_else();
    test_commit_after_every_record__cost_does_not_grow();
    test_open__cost_does_not_depend_on_fragments();
    test_read__pages_that_all_overlap_are_loaded_a_few_times();
    test_texts__long_ones_make_fragments_of_the_usual_size();
    return 0;
}
