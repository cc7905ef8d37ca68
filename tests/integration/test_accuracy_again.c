/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What is stated of a dataset that is being written, and stated anew, in other units, of regions,
 * or when its state was given up meanwhile. */
#include "testing.h"

#include "../support/number_fields.h"

#define NUMBERS 5000u

typedef struct test {
    esdm_session *session;
    esdm_container *container;
    uint8_t before[NUMBERS * sizeof(float)];
} test;

static esdm_dataset *
one_dataset(test *t, const char *name, esdm_type type)
{
    esdm_dimension *x;
    esdm_dataset *dataset;
    ok(esdm_container_create(t->session, name, ESDM_CREATE_NEW, &t->container, ERR));
    ok(esdm_dimension_create(esdm_container_root(t->container), "x", NUMBERS, &x, ERR));
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
    const uint64_t n = NUMBERS;
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    ok(esdm_write(dataset, &space, esdm_dataset_type(dataset), data, NULL, ERR));
}

/* ---- units ---------------------------------------------------------------------------------- */

static void
set_units(esdm_dataset *dataset, const char *units)
{
    ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "units", ESDM_TYPE_CHAR, strlen(units),
                          units, ERR));
}

/* Numbers are rounded in units that then become others. Whoever states something anew does not
 * know of numbers that are gone already. */
static void
test_units_change_after_rounding(test *t)
{
    static const struct {
        const char *units, *first, *then, *stated; /* "": nothing is; NULL: not again */
        const char *told;                          /* NULL: it is committed */
    } cases[] = {
        {"K", "abs=0.5", "kW", NULL, "stated in 'K'"},
        {"K", "abs=0.5", "kW", "abs=0.0005", "stated in 'K'"},
        {"K", "abs=0.5", "kW", "rel=1%", "stated in 'K'"},
        {"K", "abs=0.5", "kW", "", "stated in 'K'"},
        {"K", "abs=0.5", "kelvin", "abs=0.1", NULL},
        {"W m-2", "abs=0.5", "W/m2", "abs=0.1", NULL},
        {"W m-2", "abs=0.5", "W m^-2", NULL, NULL},
        {"W m-2", "abs=0.5", "mW m-2", NULL, "stated in 'W m-2'"},
        {"dBZ", "abs=0.5", "mm6 m-3", NULL, "stated in 'dBZ'"},
        {"K", "abs=0.5", "degC", "", NULL},
        {"K", "abs=0.5; lossless_up_to=-1e9", "degC", "abs=0.5", "stated in 'K'"},
        {"K", "abs=0.5", "kW", "abs=0.5; mode=archive", NULL}, /* as much may be lost of these */
        {"K", "rel=1%", "kW", "abs=0.0005", NULL},             /* whatever the units */
        {"", "abs=0.5", "K", "abs=0.1", NULL},                 /* they are only now told */
    };
    field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT32, 5000, t->before);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm_dataset *dataset = one_dataset(t, "units", ESDM_TYPE_FLOAT32);
        if (cases[i].units[0] != '\0')
            set_units(dataset, cases[i].units);
        set_accuracy(dataset, cases[i].first);
        write_all(dataset, t->before);
        ok(esdm_dataset_set_accuracy(dataset, NULL, ERR)); /* nothing waits to be rounded */
        set_accuracy(dataset, cases[i].first);
        set_units(dataset, cases[i].then);
        if (cases[i].stated != NULL && cases[i].stated[0] == '\0')
            ok(esdm_dataset_set_accuracy(dataset, NULL, ERR));
        else if (cases[i].stated != NULL)
            set_accuracy(dataset, cases[i].stated);
        if (cases[i].told == NULL) {
            ok(esdm_container_commit(t->container, NULL, ERR));
            set_units(dataset, "Pa"); /* what is committed does not count any more */
            set_accuracy(dataset, "abs=2");
            write_all(dataset, t->before);
            ok(esdm_container_commit(t->container, NULL, ERR));
            ok(esdm_container_close(t->container, ERR));
            ok(esdm_container_remove(t->session, "units", ERR));
            continue;
        }
        fails(esdm_container_commit(t->container, NULL, ERR), ESDM_EINVAL, cases[i].told);
        check(strstr(ERR->message, "may be off by as much") != NULL);
        set_units(dataset, cases[i].units); /* back, and it is as it was */
        set_accuracy(dataset, cases[i].first);
        ok(esdm_container_commit(t->container, NULL, ERR));
        ok(esdm_container_close(t->container, ERR));
        ok(esdm_container_remove(t->session, "units", ERR));
    }
    /* some in these and some in those */
    esdm_dataset *dataset = one_dataset(t, "units", ESDM_TYPE_FLOAT32);
    for (int k = 0; k < 3; k++) {
        set_units(dataset, k == 1 ? "kW" : "K");
        set_accuracy(dataset, k == 1 ? "abs=0.001" : "abs=0.5");
        write_all(dataset, t->before);
        ok(esdm_dataset_set_accuracy(dataset, NULL, ERR));
    }
    fails(esdm_container_commit(t->container, NULL, ERR), ESDM_EINVAL, "'units' was changed");
    set_units(dataset, "K"); /* nothing helps, and nobody is told that something does */
    set_accuracy(dataset, "abs=0.5");
    fails(esdm_container_commit(t->container, NULL, ERR), ESDM_EINVAL, "give them up");
    check(strstr(ERR->message, "state anew") == NULL && strstr(ERR->message, "'K'") != NULL);
    esdm_container_discard(t->container);
}

/* Of two statements in the same units both were lost to: the stricter one stated anew does not
 * cover the other. */
static void
test_two_statements_in_the_same_units(test *t)
{
    static const char *const looser[] = {"abs=0.5", "abs=5"};
    for (int k = 0; k < 2; k++) {
        esdm_dataset *dataset = one_dataset(t, "twice", ESDM_TYPE_FLOAT32);
        set_units(dataset, "K");
        set_accuracy(dataset, "abs=0.5");
        write_all(dataset, t->before);
        set_accuracy(dataset, looser[k]);
        write_all(dataset, t->before);
        ok(esdm_dataset_set_accuracy(dataset, NULL, ERR)); /* nothing waits to be rounded */
        set_units(dataset, "kW");
        set_accuracy(dataset, "abs=0.5");
        if (k == 1) {
            fails(esdm_container_commit(t->container, NULL, ERR), ESDM_EINVAL, "stated in 'K'");
            set_units(dataset, "K");
            set_accuracy(dataset, "abs=0.5");
        }
        ok(esdm_container_close(t->container, ERR));
        ok(esdm_container_remove(t->session, "twice", ERR));
    }
}

/* ---- regions -------------------------------------------------------------------------------- */

static esdm_dataset *
coordinate(esdm_container *container, const char *name, const char *units, uint64_t n, double first)
{
    double values[100];
    esdm_dataspace space;
    esdm_dimension *dimension;
    esdm_dataset *dataset;
    for (uint64_t i = 0; i < n; i++)
        values[i] = first + (double) i;
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, name, n, &dimension, ERR));
    ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, 1, &dimension, &dataset, ERR));
    ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "units", ESDM_TYPE_CHAR, strlen(units),
                          units, ERR));
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
    return dataset;
}

/* A region that is stated after numbers were written, and nothing else has changed, is looked for
 * as one that was stated before. */
static void
test_regions_are_looked_for_when_stated_late(test *t)
{
    const uint64_t size[2] = {50, 100};
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    esdm_dataspace space;
    ok(esdm_container_create(t->session, "late", ESDM_CREATE_NEW, &t->container, ERR));
    esdm_group *root = esdm_container_root(t->container);
    (void) coordinate(t->container, "lat", "degrees_north", size[0], 10);
    (void) coordinate(t->container, "lon", "degrees_east", size[1], 20);
    dims[0] = esdm_group_dimension_find(root, "lat");
    dims[1] = esdm_group_dimension_find(root, "lon");
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 2, dims, &dataset, ERR));
    set_accuracy(dataset, "abs=0.5");
    ok(esdm_dataspace_init(&space, 2, NULL, size, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, t->before, NULL, ERR));
    set_accuracy(dataset, "abs=0.5; box=30,20,40,30: abs=0.01");
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, t->before, NULL, ERR));
    ok(esdm_container_commit(t->container, NULL, ERR));
    const char *doubt = esdm_dataset_region_doubt(dataset);
    if (doubt != NULL)
        die("the region holds everywhere, as %s", doubt);
    ok(esdm_container_close(t->container, ERR));
}

/* ---- codecs --------------------------------------------------------------------------------- */

typedef struct newest {
    uint64_t sequence, raw_bytes, stored_bytes;
} newest;

static bool
take_newest(const esdm_fragment_info *info, void *user)
{
    newest *n = user;
    if (info->sequence >= n->sequence)
        *n = (newest){info->sequence, info->raw_bytes, info->stored_bytes};
    return true;
}

/* So many others that the state of the first one is given up. */
static void
write_others(esdm_container *container)
{
    enum { OTHERS = 6000 };
    esdm_group *root = esdm_container_root(container);
    esdm_dataset *other;
    double value = 1;
    char name[32];
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, 0, NULL, &other, ERR));
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 0, NULL, NULL, ERR));
        ok(esdm_write(other, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
    }
}

/* The codecs that were chosen by what was stated before are not those of what is stated now. */
static void
test_codecs_are_chosen_anew_for_what_is_stated_anew(test *t)
{
    char json[2048];
    int n = snprintf(json, sizeof json,
                     "{\"site\": {\"name\": \"test\"},"
                     " \"targets\": [{\"name\": \"disk\", \"plugin\": \"posix\","
                     " \"directory\": \"%s/small\"}],"
                     " \"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"%s/few\"},"
                     " \"engine\": {\"memory\": \"16 MiB\", \"threads\": 1}}",
                     test_folder, test_folder);
    check(n > 0 && (size_t) n < sizeof json);
    esdm_session_options options = {.config_json = json};
    esdm_session *usual = t->session;
    newest found = {0};
    ok(esdm_site_create(&(esdm_site_options){.config_json = json}, ERR));
    ok(esdm_session_open(&options, &t->session, ERR));
    esdm_dataset *dataset = one_dataset(t, "chosen", ESDM_TYPE_FLOAT32);
    set_accuracy(dataset, "mode=speed");
    field_make(FIELD_BITS, ESDM_TYPE_FLOAT32, NUMBERS, t->before);
    write_all(dataset, t->before);
    write_others(t->container);
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, take_newest, &found, ERR));
    check(found.stored_bytes > found.raw_bytes / 8 * 7); /* no codec does anything about it */
    set_accuracy(dataset, "abs=0.5; mode=archive");
    field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT32, NUMBERS, t->before);
    write_all(dataset, t->before);
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, take_newest, &found, ERR));
    if (found.stored_bytes > found.raw_bytes / 4)
        die("%" PRIu64 " of %" PRIu64 " bytes are stored", found.stored_bytes, found.raw_bytes);
    ok(esdm_container_close(t->container, ERR));
    esdm_session_close(t->session);
    t->session = usual;
}

static newest
commit_and_find(const test *t, esdm_dataset *dataset)
{
    newest found = {0};
    ok(esdm_container_commit(t->container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, take_newest, &found, ERR));
    return found;
}

static void
expect_mode(const esdm_dataset *dataset, uint32_t stated, esdm_accuracy_mode mode)
{
    esdm_accuracy accuracy;
    check(esdm_dataset_accuracy(dataset, &accuracy));
    check(accuracy.stated == stated && accuracy.mode == mode);
}

/* What is taken back holds for what was written under it, and for nothing after. */
static void
test_statements_that_are_taken_back(test *t)
{
    static float after[NUMBERS];
    esdm_dataspace space;
    const uint64_t n = NUMBERS;
    ok(esdm_dataspace_init(&space, 1, NULL, &n, ERR));
    esdm_dataset *dataset = one_dataset(t, "reverted", ESDM_TYPE_FLOAT32);
    set_accuracy(dataset, "abs=0.5; mode=archive");
    ok(esdm_container_commit(t->container, NULL, ERR));
    esdm_container_mark(t->container);
    set_accuracy(dataset, "mode=speed");
    field_make(FIELD_BITS, ESDM_TYPE_FLOAT32, NUMBERS, t->before);
    write_all(dataset, t->before);
    esdm_container_revert(t->container);
    expect_mode(dataset, ESDM_ACCURACY_ABSOLUTE_TOLERANCE | ESDM_ACCURACY_MODE, ESDM_MODE_ARCHIVE);
    newest found = commit_and_find(t, dataset);
    check(found.stored_bytes > found.raw_bytes / 8 * 7);
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, after, NULL, ERR));
    check(memcmp(after, t->before, sizeof after) == 0);

    field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT32, NUMBERS, t->before);
    write_all(dataset, t->before);
    found = commit_and_find(t, dataset);
    if (found.stored_bytes > found.raw_bytes / 4)
        die("%" PRIu64 " of %" PRIu64 " bytes are stored", found.stored_bytes, found.raw_bytes);
    ok(esdm_container_close(t->container, ERR));
}

/* A codec that does not keep the sum stores numbers as they are, as those that were rounded before:
 * another one is chosen for these all the same. */
static void
test_sums_with_coarse_bounds(test *t)
{
    static const char *const modes[] = {"balanced", "archive"};
    for (int k = 0; k < 2; k++) {
        char text[64];
        snprintf(text, sizeof text, "abs=0.5; conserve=1e-9; mode=%s", modes[k]);
        esdm_dataset *dataset = one_dataset(t, "sums", ESDM_TYPE_FLOAT32);
        set_accuracy(dataset, text);
        field_make(FIELD_SMOOTH, ESDM_TYPE_FLOAT32, NUMBERS, t->before);
        write_all(dataset, t->before);
        newest found = commit_and_find(t, dataset);
        if (found.stored_bytes > found.raw_bytes / 4)
            die("%s: %" PRIu64 " of %" PRIu64 " bytes are stored", text, found.stored_bytes,
                found.raw_bytes);
        ok(esdm_container_close(t->container, ERR));
        ok(esdm_container_remove(t->session, "sums", ERR));
    }
}

int
main(void)
{
    test *t = calloc(1, sizeof *t);
    check(t != NULL);
    make_site();
    t->session = open_session();
    test_units_change_after_rounding(t);
    test_two_statements_in_the_same_units(t);
    test_regions_are_looked_for_when_stated_late(t);
    test_codecs_are_chosen_anew_for_what_is_stated_anew(t);
    test_statements_that_are_taken_back(t);
    test_sums_with_coarse_bounds(t);
    esdm_session_close(t->session);
    free(t);
    return 0;
}
