/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Programs that append to one container at once: what two of them write to the same new records is
 * an error for the one that commits last, and everything else goes on working. Each handle stands
 * for a program: nothing but the metadata store is between them. */

#include "testing.h"

enum { WIDTH = 64, START = 10 };

static esdm_session *session;

typedef struct program {
    esdm_container *container;
    esdm_dataset *field; /* time, row, column */
    esdm_dataset *time;  /* time */
} program;

static program
opened(const char *name)
{
    program p;
    ok(esdm_container_open(session, name, ESDM_OPEN_WRITE, 0, &p.container, ERR));
    esdm_group *root = esdm_container_root(p.container);
    p.field = esdm_group_dataset_find(root, "field");
    p.time = esdm_group_dataset_find(root, "time");
    check(p.field != NULL && p.time != NULL);
    return p;
}

static void
put(esdm_dataset *dataset, const uint64_t *at, const uint64_t *n, const uint64_t *stride,
    double value)
{
    static double data[64 * WIDTH * WIDTH];
    esdm_dataspace space;
    uint32_t rank = esdm_dataset_rank(dataset);
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= n[i];
    check(count <= sizeof data / sizeof data[0]);
    for (size_t i = 0; i < count; i++)
        data[i] = value;
    ok(esdm_dataspace_init(&space, rank, at, n, ERR));
    if (stride != NULL)
        ok(esdm_dataspace_set_stride(&space, stride, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, data, NULL, ERR));
}

/* Columns from `column` on of one record. */
static void
put_columns(const program *p, uint64_t record, uint64_t column, uint64_t columns, double value)
{
    put(p->field, (uint64_t[]){record, 0, column}, (uint64_t[]){1, WIDTH, columns}, NULL, value);
}

static void
put_record(const program *p, uint64_t record, double value)
{
    put_columns(p, record, 0, WIDTH, value);
}

static void
put_time(const program *p, uint64_t record, uint64_t records, double value)
{
    put(p->time, &record, &records, NULL, value);
}

static double
get(const program *p, uint64_t record, uint64_t column)
{
    double value = 0;
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){record, 1, column}, (uint64_t[]){1, 1, 1}, ERR));
    ok(esdm_read(p->field, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
    return value;
}

/* A container with START records of the value 1. */
static void
make(const char *name)
{
    program p;
    esdm_dimension *dims[3];
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &p.container, ERR));
    esdm_group *root = esdm_container_root(p.container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "row", WIDTH, &dims[1], ERR));
    ok(esdm_dimension_create(root, "column", WIDTH, &dims[2], ERR));
    ok(esdm_dataset_create(root, "field", ESDM_TYPE_FLOAT64, 3, dims, &p.field, ERR));
    ok(esdm_dataset_create(root, "time", ESDM_TYPE_FLOAT64, 1, dims, &p.time, ERR));
    for (uint64_t i = 0; i < START; i++) {
        put_record(&p, i, 1);
        put_time(&p, i, 1, (double) i);
    }
    ok(esdm_container_close(p.container, ERR));
}

static void
commit(const program *p)
{
    ok(esdm_container_commit(p->container, NULL, ERR));
}

static void
refused(const program *p, const char *words)
{
    fails(esdm_container_commit(p->container, NULL, ERR), ESDM_ECONFLICT, words);
}

static void
finish(const program *p)
{
    ok(esdm_container_close(p->container, ERR));
}

/* ---- what conflicts ----------------------------------------------------------------------- */

static void
test_appenders__same_new_record_is_an_error_for_the_later_one(void)
{
    make("same");
    program a = opened("same");
    program b = opened("same");
    put_record(&a, START, 2);
    put_record(&b, START, 3);
    commit(&a);
    refused(&b, "index 10 of dimension 'time'");
    check(strstr(test_error.message, "/field") != NULL);
    check(strstr(test_error.message, "Open the container again") != NULL);
    refused(&b, "index 10"); /* and again: nothing is published little by little */
    esdm_container_discard(b.container);
    put_record(&a, START + 1, 4); /* own records are no conflict */
    put_record(&a, START, 5);
    commit(&a);
    finish(&a);
    a = opened("same");
    check(get(&a, START, 7) == 5 && get(&a, START + 1, 7) == 4);
    finish(&a);
}

/* The other one has published before, several times, and some of that is merged. */
static void
test_appenders__late_conflicts_are_found(void)
{
    make("late");
    program a = opened("late");
    program b = opened("late");
    for (uint64_t i = 0; i < 40; i++) {
        put_record(&a, START + i, 2);
        commit(&a);
    }
    put_columns(&b, START + 100, 0, 1,
                3); /* apart; the handle sees the other's records from now on */
    commit(&b);
    check(get(&b, START + 3, 0) == 2);
    put_columns(&b, START + 17, 5, 1, 3);
    refused(&b, "index 27 of dimension 'time'");
    esdm_container_discard(b.container);
    finish(&a);
    a = opened("late");
    check(get(&a, START + 17, 5) == 2 && get(&a, START + 100, 0) == 3);
    finish(&a);
}

static void
test_appenders__new_containers_are_guarded_from_their_first_commit_on(void)
{
    program a;
    esdm_dimension *dims[3];
    ok(esdm_container_create(session, "young", ESDM_CREATE_NEW, &a.container, ERR));
    esdm_group *root = esdm_container_root(a.container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "member", ESDM_UNLIMITED, &dims[1], ERR));
    ok(esdm_dimension_create(root, "column", WIDTH, &dims[2], ERR));
    ok(esdm_dataset_create(root, "field", ESDM_TYPE_FLOAT64, 3, dims, &a.field, ERR));
    ok(esdm_dataset_create(root, "time", ESDM_TYPE_FLOAT64, 1, dims, &a.time, ERR));
    commit(&a);
    program b = opened("young");
    put(a.field, (uint64_t[]){0, 0, 0}, (uint64_t[]){2, 3, WIDTH}, NULL, 1);
    commit(&a);
    /* Another member of the same times; then one that is there. */
    put(b.field, (uint64_t[]){0, 3, 0}, (uint64_t[]){2, 2, WIDTH}, NULL, 2);
    commit(&b);
    put(a.field, (uint64_t[]){2, 0, 0}, (uint64_t[]){1, 3, WIDTH}, NULL, 1);
    commit(&a);
    put(a.field, (uint64_t[]){1, 3, 0}, (uint64_t[]){1, 1, 1}, NULL, 3);
    refused(&a, "index 1 of dimension 'time'");
    esdm_container_discard(a.container);
    finish(&b);
}

/* ---- what does not ------------------------------------------------------------------------ */

static void
test_appenders__what_was_there_may_be_overwritten(void)
{
    make("there");
    program a = opened("there");
    program b = opened("there");
    put_record(&a, 4, 2);
    put_record(&b, 4, 3);
    commit(&a);
    commit(&b);
    finish(&a);
    finish(&b);
    a = opened("there");
    check(get(&a, 4, 0) == 3);
    finish(&a);
}

/* Models without MPI: each process has its columns of all new records, and writes the same times.
 */
static void
test_appenders__parts_of_the_same_records_go_together(void)
{
    make("parts");
    program p[4];
    for (int k = 0; k < 4; k++)
        p[k] = opened("parts");
    for (uint64_t step = 0; step < 20; step++) {
        for (int k = 0; k < 4; k++) {
            put_columns(&p[k], START + step, (uint64_t) k * WIDTH / 4, WIDTH / 4, k + 2);
            put_time(&p[k], START + step, 1, (double) (START + step));
            if ((step + (uint64_t) k) % 3 != 0)
                commit(&p[k]);
        }
    }
    for (int k = 0; k < 4; k++)
        finish(&p[k]);
    p[0] = opened("parts");
    for (uint64_t step = 0; step < 20; step++) {
        for (uint64_t column = 0; column < WIDTH; column++)
            check(get(&p[0], START + step, column) == (double) (column / (WIDTH / 4) + 2));
    }
    p[1] = opened("parts");
    p[2] = opened("parts");
    put_time(&p[0], START + 30, 1, 7);
    put_time(&p[1], START + 30, 1, 8); /* another time is a conflict */
    commit(&p[0]);
    refused(&p[1], "/time");
    esdm_container_discard(p[1].container);
    /* Of two variables, of gaps, and of interleaved columns. */
    put_record(&p[2], START + 30, 9);
    put_record(&p[2], START + 32, 9);
    commit(&p[2]);
    put_record(&p[0], START + 31, 6);
    commit(&p[0]);
    finish(&p[0]);
    finish(&p[2]);
}

/* Long ones lie in packs, texts are of no fixed size: every process writes them all the same. */
static void
test_appenders__equal_coordinates_of_any_length_go_together(void)
{
    enum { LONG = 20000, TEXTS = 300 };
    static char texts[TEXTS][16];
    const char *labels[TEXTS];
    uint64_t at = 0;
    uint64_t n = TEXTS;
    esdm_dimension *record;
    esdm_dataset *label;
    esdm_dataspace space;
    make("long");
    program p[4];
    p[0] = opened("long");
    ok(esdm_dimension_create(esdm_container_root(p[0].container), "record", ESDM_UNLIMITED, &record,
                             ERR));
    ok(esdm_dataset_create(esdm_container_root(p[0].container), "label", ESDM_TYPE_STRING, 1,
                           &record, &label, ERR));
    finish(&p[0]);
    for (int k = 0; k < 4; k++)
        p[k] = opened("long");
    for (int i = 0; i < TEXTS; i++) {
        (void) snprintf(texts[i], sizeof texts[i], "step %d", i);
        labels[i] = texts[i];
    }
    ok(esdm_dataspace_init(&space, 1, &at, &n, ERR));
    for (int k = 0; k < 3; k++) {
        esdm_group *root = esdm_container_root(p[k].container);
        if (k < 2) {
            put_time(&p[k], START, LONG / 2, 7);
            put_time(&p[k], START + LONG / 2, LONG / 2, 8);
        } else { /* in another piece */
            put_time(&p[k], START + 10, LONG / 2 - 10, 7);
        }
        ok(esdm_write(esdm_group_dataset_find(root, "label"), &space, ESDM_TYPE_STRING, labels,
                      NULL, ERR));
        put_columns(&p[k], START, (uint64_t) k, 1, k + 2);
        commit(&p[k]);
    }
    put_time(&p[3], START, LONG - 1, 7); /* equal in the first half alone */
    refused(&p[3], "/time");
    esdm_container_discard(p[3].container);
    p[3] = opened("long");
    finish(&p[1]);
    put_columns(&p[0], START + 1, 0, 1, 2); /* as before */
    labels[TEXTS - 1] = "another";
    ok(esdm_write(esdm_group_dataset_find(esdm_container_root(p[2].container), "label"), &space,
                  ESDM_TYPE_STRING, labels, NULL, ERR));
    refused(&p[2], "/label");
    esdm_container_discard(p[2].container);
    finish(&p[0]);
    for (uint64_t k = 0; k < 3; k++)
        check(get(&p[3], START, k) == (double) k + 2);
    finish(&p[3]);
}

static void
test_appenders__interleaved_columns_go_together(void)
{
    make("interleaved");
    program a = opened("interleaved");
    program b = opened("interleaved");
    for (uint64_t odd = 0; odd < 2; odd++)
        put((odd ? b : a).field, (uint64_t[]){START, 0, odd}, (uint64_t[]){1, WIDTH, WIDTH / 2},
            (uint64_t[]){1, 1, 2}, (double) odd + 2);
    commit(&a);
    commit(&b);
    put(a.field, (uint64_t[]){START, 0, 1}, (uint64_t[]){1, WIDTH, WIDTH / 2},
        (uint64_t[]){1, 1, 2}, 5);
    refused(&a, "index 10");
    esdm_container_discard(a.container);
    check(get(&b, START, 6) == 2 && get(&b, START, 7) == 3);
    finish(&b);
}

static void
test_appenders__refresh_takes_note_of_the_others(void)
{
    make("refreshed");
    program a = opened("refreshed");
    program b = opened("refreshed");
    put_record(&a, START, 2);
    commit(&a);
    ok(esdm_container_refresh(b.container, ERR));
    put_record(&b, START, 3); /* knowing what is there */
    put_record(&b, START + 1, 3);
    commit(&b);
    put_record(&a, START + 1, 4);
    refused(&a, "index 11");
    esdm_container_discard(a.container);
    finish(&b);
}

/* ---- many processes ----------------------------------------------------------------------- */

enum { PROCESSES = 8 };

/* Each has a column; records of the last one are written by two. */
static void
append_column(int number)
{
    session = open_session();
    program p = opened("many");
    for (uint64_t step = 0; step < 12; step++) {
        put_columns(&p, START + step, (uint64_t) number, 1, number + 2);
        commit(&p);
    }
    finish(&p);
    esdm_session_close(session);
}

static void
test_appenders__processes_go_together(void)
{
    pid_t children[PROCESSES];
    make("many");
    esdm_session_close(session);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        check(children[i] >= 0);
        if (children[i] == 0) {
            append_column(i);
            exit(0);
        }
    }
    wait_children(children, PROCESSES);
    session = open_session();
    program p = opened("many");
    for (uint64_t step = 0; step < 12; step++) {
        for (uint64_t i = 0; i < PROCESSES; i++)
            check(get(&p, START + step, i) == (double) i + 2);
    }
    finish(&p);
}

/* ---- the site's choice -------------------------------------------------------------------- */

static void
test_appenders__last_one_wins_where_the_site_says_so(void)
{
    char path[300];
    char text[65536];
    make("chosen");
    esdm_session_close(session);
    FILE *file = fopen(getenv("ESDM_CONFIG"), "rb");
    check(file != NULL);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    char *brace = strchr(text, '{');
    check(brace != NULL);
    snprintf(path, sizeof path, "%s/last.json", test_folder);
    file = fopen(path, "wb");
    check(file != NULL);
    fprintf(file, "{\"overlap\": \"last\", %s", brace + 1);
    check(fclose(file) == 0);
    esdm_session_options options = {.config_path = path};
    ok(esdm_session_open(&options, &session, ERR));
    program a = opened("chosen");
    program b = opened("chosen");
    put_record(&a, START, 2);
    put_record(&b, START, 3);
    commit(&a);
    commit(&b);
    finish(&a);
    finish(&b);
    a = opened("chosen");
    check(get(&a, START, 0) == 3);
    finish(&a);
    esdm_session_close(session);
    session = open_session();
}

int
main(void)
{
    make_site();
    session = open_session();
    test_appenders__same_new_record_is_an_error_for_the_later_one();
    test_appenders__late_conflicts_are_found();
    test_appenders__new_containers_are_guarded_from_their_first_commit_on();
    test_appenders__what_was_there_may_be_overwritten();
    test_appenders__parts_of_the_same_records_go_together();
    test_appenders__equal_coordinates_of_any_length_go_together();
    test_appenders__interleaved_columns_go_together();
    test_appenders__refresh_takes_note_of_the_others();
    test_appenders__processes_go_together();
    test_appenders__last_one_wins_where_the_site_says_so();
    esdm_session_close(session);
    return 0;
}
