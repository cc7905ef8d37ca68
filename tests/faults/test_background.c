/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* "writes": "background": puts return before their data are stored, in bounded memory and in their
 * order; what fails is told by the commit, stays, and is stored by a later one or given up. */

#include <pthread.h>
#include <stdatomic.h>

#include "faulty_site.h"

enum { STEPS = 8, ROWS = 256, COLUMNS = 512 }; /* of int32: 512 KiB a step */

static char hold_path[300];
static char appends_path[300];
static char sites[2][2048]; /* throttled, faulty */

static void
describe_sites(void)
{
    describe_site(); /* folder and plug-ins */
    for (int i = 0; i < 2; i++) {
        snprintf(sites[i], sizeof sites[i],
                 "{\"targets\": [{\"name\": \"disk\", \"plugin\": \"%s\", \"directory\": "
                 "\"%s/data%d\"}], \"metadata\": {\"plugin\": \"sqlite\", \"directory\": "
                 "\"%s/store%d\"}, \"engine\": {\"writes\": \"background\", \"threads\": 2, "
                 "\"memory\": \"17MiB\", \"pack\": \"1MiB\"}, \"backup\": {\"journal\": false, "
                 "\"every\": 0}}",
                 i == 0 ? "throttled" : "faulty", test_folder, i, test_folder, i);
        esdm_site_options options = {.config_json = sites[i]};
        ok(esdm_site_create(&options, ERR));
    }
    snprintf(hold_path, sizeof hold_path, "%s/go", test_folder);
    snprintf(appends_path, sizeof appends_path, "%s/appends", test_folder);
    setenv("THROTTLED_HOLD", hold_path, 1);
    setenv("THROTTLED_APPENDS", appends_path, 1);
}

static esdm_session *
open_site_of(const char *site)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = site};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static void
hold(void)
{
    (void) unlink(hold_path);
}

static void
let_go(void)
{
    FILE *f = fopen(hold_path, "w");
    check(f != NULL && fclose(f) == 0);
}

static size_t
count_appends(void)
{
    size_t lines = 0;
    FILE *f = fopen(appends_path, "r");
    for (int c; f != NULL && (c = getc(f)) != EOF;)
        lines += c == '\n';
    if (f != NULL)
        fclose(f);
    return lines;
}

static esdm_container *
make(esdm_session *session, const char *name, esdm_dataset **ret)
{
    esdm_container *container;
    esdm_dimension *dims[3];
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "row", ROWS, &dims[1], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 3, dims, ret, ERR));
    return container;
}

static int32_t
value_of(uint64_t step, size_t i, int32_t of)
{
    return of + (int32_t) step * 1000003 + (int32_t) (i * 7919);
}

static int32_t step_memory[ROWS * COLUMNS];

static esdm_status
put(esdm_dataset *dataset, uint64_t step, int32_t of)
{
    esdm_dataspace space;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        step_memory[i] = value_of(step, i, of);
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){step, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS},
                           ERR));
    esdm_status status = esdm_write(dataset, &space, ESDM_TYPE_INT32, step_memory, NULL, ERR);
    memset(step_memory, 0x55, sizeof step_memory); /* it is the program's again */
    return status;
}

static void
expect(esdm_dataset *dataset, uint64_t step, int32_t of)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){step, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS},
                           ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, step_memory, NULL, ERR));
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        if (step_memory[i] != value_of(step, i, of))
            die("step %d, element %zu: %d, expected %d", (int) step, i, step_memory[i],
                value_of(step, i, of));
    }
}

static void
expect_of(const char *site, const char *name, uint64_t first, uint64_t end, int32_t of)
{
    esdm_session *session = open_site_of(site);
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    for (uint64_t step = first; step < end; step++)
        expect(dataset, step, of);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* Eight steps are 4 MiB, less than the quarter of "memory" that may wait: none is stored when the
 * last put has returned. */
static void
test_puts_return_before_the_target_has_their_data(void)
{
    esdm_session *session = open_site_of(sites[0]);
    esdm_dataset *dataset;
    esdm_container *container = make(session, "steps", &dataset);
    hold();
    size_t before = count_appends();
    for (uint64_t step = 0; step < STEPS; step++)
        ok(put(dataset, step, 0));
    check(count_appends() == before);
    let_go();
    ok(esdm_container_commit(container, NULL, ERR));
    check(count_appends() >= before + STEPS);
    expect_of(sites[0], "steps", 0, STEPS, 0);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* A thread that puts while its session's target takes nothing. */
typedef struct putter {
    esdm_session *session;
    esdm_container *container;
    esdm_dataset *dataset;
    pthread_t thread;
    atomic_int done;
} putter;

static void
begin_putting(putter *p, const char *name, void *(*put_all)(void *putter))
{
    p->session = open_site_of(sites[0]);
    p->container = make(p->session, name, &p->dataset);
    hold();
    check(pthread_create(&p->thread, NULL, put_all, p) == 0);
}

/* The next put waits for memory, with the dataset's locks. */
static void
wait_until_full(const putter *p)
{
    while (atomic_load(&p->done) < STEPS)
        usleep(1000);
    usleep(100000); /* it cannot get any further, however long */
}

static void
end_putting(putter *p)
{
    let_go();
    check(pthread_join(p->thread, NULL) == 0);
    ok(esdm_container_close(p->container, ERR));
}

static void *
put_many(void *argument)
{
    putter *p = argument;
    for (int step = 0; step < 2 * STEPS; step++) {
        ok(put(p->dataset, (uint64_t) step, 0));
        atomic_store(&p->done, step + 1);
    }
    return NULL;
}

static void
test_puts_wait_when_memory_is_full(void)
{
    putter p = {0};
    begin_putting(&p, "bound", put_many);
    wait_until_full(&p);
    check(atomic_load(&p.done) == STEPS);
    end_putting(&p);
    expect_of(sites[0], "bound", 0, 2 * STEPS, 0);
    esdm_session_close(p.session);
}

/* Large, small, strided and again large ones on the same elements: the later one wins, for this
 * handle at once. */
static void
test_order_of_writes_stays(void)
{
    static int32_t big[ROWS * COLUMNS];
    esdm_session *session = open_site_of(sites[0]);
    esdm_dataset *dataset;
    esdm_container *container = make(session, "order", &dataset);
    esdm_dataspace small, strided;
    ok(esdm_dataspace_init(&small, 3, (uint64_t[]){0, 3, 5}, (uint64_t[]){1, 1, 100}, ERR));
    ok(esdm_dataspace_init(&strided, 3, (uint64_t[]){0, 0, 1}, (uint64_t[]){1, ROWS, COLUMNS / 2},
                           ERR));
    ok(esdm_dataspace_set_stride(&strided, (uint64_t[]){1, 1, 2}, ERR));
    for (int round = 0; round < 4; round++) {
        hold();
        ok(put(dataset, 0, round));
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            big[i] = -1 - round;
        ok(esdm_write(dataset, &small, ESDM_TYPE_INT32, big, NULL, ERR));
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            big[i] = -100 - round;
        ok(esdm_write(dataset, &strided, ESDM_TYPE_INT32, big, NULL, ERR));
        let_go();
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS},
                               ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, big, NULL, ERR));
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            size_t row = i / COLUMNS, column = i % COLUMNS;
            int32_t expected = value_of(0, i, round);
            if (row == 3 && column >= 5 && column < 105)
                expected = -1 - round;
            if (column % 2 == 1)
                expected = -100 - round;
            if (big[i] != expected)
                die("round %d, element %zu: %d, expected %d", round, i, big[i], expected);
        }
    }
    ok(put(dataset, 0, 9));
    ok(esdm_container_close(container, ERR));
    expect_of(sites[0], "order", 0, 1, 9);
    esdm_session_close(session);
}

/* Attributes, codecs and datasets change between puts, and others are dropped with what was made of
 * them. */
static void
test_structure_changes_between_puts(void)
{
    esdm_session *session = open_site_of(sites[0]);
    esdm_dataset *dataset, *more;
    esdm_container *container = make(session, "structure", &dataset);
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *dims[3];
    for (size_t i = 0; i < 3; i++)
        dims[i] = esdm_dataset_dimension(dataset, (uint32_t) i);
    let_go();
    for (int32_t step = 0; step < STEPS; step++) {
        char name[32];
        ok(put(dataset, (uint64_t) step, 0));
        snprintf(name, sizeof name, "a%d", step);
        ok(esdm_attribute_set(esdm_dataset_attributes(dataset), name, ESDM_TYPE_INT32, 1, &step,
                              ERR));
        ok(put(dataset, (uint64_t) step, 0));
        ok(esdm_dataset_set_codec(dataset, step % 2 == 0 ? "lz4" : NULL, ERR));
    }
    ok(esdm_container_commit(container, NULL, ERR));
    esdm_container_mark(container);
    ok(esdm_dataset_create(root, "w", ESDM_TYPE_INT32, 3, dims, &more, ERR));
    ok(put(more, 0, 5));
    esdm_container_revert(container);
    check(esdm_group_dataset_find(root, "w") == NULL);
    ok(esdm_container_close(container, ERR));
    expect_of(sites[0], "structure", 0, STEPS, 0);
    esdm_session_close(session);
}

static void
test_failures_are_told_by_the_commit(void)
{
    esdm_session *session = open_site_of(sites[1]);
    esdm_dataset *dataset;
    esdm_container *container = make(session, "failing", &dataset);
    ok(put(dataset, 0, 0));
    ok(esdm_container_commit(container, NULL, ERR));
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    ok(put(dataset, 1, 0));
    ok(put(dataset, 2, 0));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "nothing is committed");
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, "'/v'");
    expect_of(sites[1], "failing", 0, 1, 0);
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_NONE, ESDM_OK);
    ok(esdm_container_commit(container, NULL, ERR)); /* nothing was put again */
    expect_of(sites[1], "failing", 0, 3, 0);

    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_EIO);
    ok(put(dataset, 1, 7));
    ok(put(dataset, 2, 7));
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "nothing is committed");
    check(esdm_container_give_up_failed(container) == 2);
    ok(put(dataset, 1, 8)); /* waits behind no one */
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_NONE, ESDM_OK);
    ok(esdm_container_commit(container, NULL, ERR));
    expect_of(sites[1], "failing", 1, 2, 8);
    expect_of(sites[1], "failing", 2, 3, 0);

    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_EIO);
    uint64_t step = 0;
    while (step < 4 * STEPS && put(dataset, step, 1) == ESDM_OK)
        step++;
    check(step >= 4 && step < 4 * STEPS); /* memory is full */
    check(strstr(test_error.message, "memory is full of data that cannot be stored") != NULL);
    fails(esdm_container_close(container, ERR), ESDM_EIO, "nothing is committed");
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_NONE, ESDM_OK);
    expect_of(sites[1], "failing", 1, 2, 8);
    esdm_session_close(session);
}

/* The child has neither thread nor data. */
static void
test_a_forked_child_stores_nothing(void)
{
    esdm_session *session = open_site_of(sites[0]);
    esdm_dataset *dataset;
    esdm_container *container = make(session, "forked", &dataset);
    hold();
    ok(put(dataset, 0, 0));
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        fails(put(dataset, 1, 0), ESDM_EINVAL, "before fork()");
        fails(esdm_container_close(container, ERR), ESDM_EINVAL, "before fork()");
        esdm_session_close(session);
        _exit(0);
    }
    int ended;
    check(waitpid(child, &ended, 0) == child && ended == 0);
    let_go();
    ok(put(dataset, 1, 0));
    ok(esdm_container_close(container, ERR));
    expect_of(sites[0], "forked", 0, 2, 0);
    esdm_session_close(session);
}

/* Each 1 KiB of data, which takes more than that with what says where it belongs. */
enum { SMALL_PUTS = 3600, SMALL_MOST = 2000 };

static void
put_small(esdm_dataset *dataset, uint64_t step)
{
    int32_t values[ROWS];
    esdm_dataspace space;
    for (int i = 0; i < ROWS; i++)
        values[i] = (int32_t) step + i;
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){step / (COLUMNS / 2), 0, step % (COLUMNS / 2)},
                           (uint64_t[]){1, ROWS / 2, 2}, ERR));
    ok(esdm_dataspace_set_stride(&space, (uint64_t[]){1, 2, COLUMNS / 2}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, values, NULL, ERR));
}

static void *
put_many_small(void *argument)
{
    putter *p = argument;
    ok(put(p->dataset, 20, 0)); /* what is held */
    for (int step = 0; step < SMALL_PUTS; step++) {
        put_small(p->dataset, (uint64_t) step);
        atomic_store(&p->done, step + 1);
    }
    return NULL;
}

static void
test_small_boxes_take_memory_too(void)
{
    putter p = {0};
    begin_putting(&p, "small", put_many_small);
    int before = -1;
    for (int now = 0; now != before || now == 0; now = atomic_load(&p.done)) {
        before = now;
        usleep(300000);
    }
    check(atomic_load(&p.done) < SMALL_MOST);
    end_putting(&p);
    esdm_session_close(p.session);
}

/* A put that waits for memory has the dataset's locks, which nobody gives back in the child. */
static void
test_a_child_forked_beside_a_put_does_not_hang(void)
{
    putter p = {0};
    begin_putting(&p, "beside", put_many);
    wait_until_full(&p);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        esdm_dataspace space;
        (void) alarm(120);
        fails(put(p.dataset, 1, 0), ESDM_EINVAL, "before fork()");
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, 0, 0}, (uint64_t[]){1, 1, 1}, ERR));
        fails(esdm_read(p.dataset, &space, ESDM_TYPE_INT32, step_memory, NULL, ERR), ESDM_EINVAL,
              "before fork()");
        check(esdm_container_give_up_failed(p.container) == 0);
        fails(esdm_container_commit(p.container, NULL, ERR), ESDM_EINVAL, "before fork()");
        fails(esdm_container_close(p.container, ERR), ESDM_EINVAL, "before fork()");
        esdm_session_close(p.session);
        _exit(0);
    }
    int ended;
    check(waitpid(child, &ended, 0) == child && ended == 0);
    end_putting(&p);
    expect_of(sites[0], "beside", 0, 2 * STEPS, 0);
    esdm_session_close(p.session);
}

/* What was put with a strict accuracy, and could not be stored before that was taken back, is not
 * stored by the coarse one of before. */
static void
test_what_a_statement_leaves_unstored_is_to_be_put_again(void)
{
    esdm_session *session = open_site_of(sites[1]);
    esdm_dataset *dataset;
    esdm_container *container = make(session, "statement", &dataset);
    const esdm_accuracy coarse = {.stated = ESDM_ACCURACY_ABSOLUTE_TOLERANCE,
                                  .absolute_tolerance = 1e6};
    const esdm_accuracy strict = {.stated = ESDM_ACCURACY_ABSOLUTE_TOLERANCE,
                                  .absolute_tolerance = 0.5};
    ok(esdm_dataset_set_accuracy(dataset, &coarse, ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    esdm_container_mark(container);
    ok(esdm_dataset_set_accuracy(dataset, &strict, ERR));
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_EIO);
    ok(put(dataset, 0, 0));
    esdm_container_revert(container);
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_NONE, ESDM_OK);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "nothing is committed");
    ok(esdm_dataset_set_accuracy(dataset, &strict, ERR));
    ok(put(dataset, 0, 3));
    ok(esdm_container_close(container, ERR));
    expect_of(sites[1], "statement", 0, 1, 3);
    esdm_session_close(session);
}

int
main(void)
{
    describe_sites();
    let_go();
    test_puts_return_before_the_target_has_their_data();
    test_puts_wait_when_memory_is_full();
    test_order_of_writes_stays();
    test_structure_changes_between_puts();
    test_small_boxes_take_memory_too();
    test_a_forked_child_stores_nothing();
    test_a_child_forked_beside_a_put_does_not_hang();
    test_what_a_statement_leaves_unstored_is_to_be_put_again();
    test_failures_are_told_by_the_commit();
    printf("ok\n");
    return 0;
}
