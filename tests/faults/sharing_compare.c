/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Whether containers are as the model says, now and for readers that have them open. */

#include "faults/sharing_model.h"

enum { READERS = 2 };

typedef struct reader {
    pid_t pid; /* 0: none */
    int wake;
    uint64_t until;
} reader;

static reader readers[READERS];

/* ---- comparing ---------------------------------------------------------------------------- */

static bool
is_like(esdm_container *container, const content *wanted)
{
    static int32_t data[ROWS * COLUMNS];
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "a");
    check(dataset != NULL);
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(dataset, 0));
    if (rows != wanted->rows)
        return false;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){rows, COLUMNS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (uint64_t row = 0; row < rows; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            if (data[row * COLUMNS + i] != wanted->values[row] * 10000 + i)
                return false;
        }
    }
    return true;
}

static bool
stands(esdm_session *session, const char *name, const content *wanted)
{
    esdm_container *container = NULL;
    esdm_status status =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, ERR);
    if (status == ESDM_ENOENT)
        return !wanted->exists;
    ok(status);
    bool like = wanted->exists && is_like(container, wanted);
    ok(esdm_container_close(container, ERR));
    return like;
}

static bool
stands_with_branch(esdm_session *session, uint32_t name, const state *wanted)
{
    char branch[64];
    snprintf(branch, sizeof branch, "%s@branch:b", name_of(name));
    return stands(session, name_of(name), &wanted->now) && stands(session, branch, &wanted->branch);
}

bool
compare(const operation *op, const state *all)
{
    int status = 0;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        bool same = true;
        esdm_session *session = open_session();
        for (uint32_t i = 0; i < NAMES && same; i++) {
            if (op == NULL || i == op->a || i == op->b)
                same = stands_with_branch(session, i, &all[i]);
            if (!same && op == NULL)
                fprintf(stderr, "%s is not what it should be\n", name_of(i));
        }
        esdm_session_close(session);
        _exit(same ? 0 : 10);
    }
    check(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 10))
        die("a container cannot be read: status 0x%x", (unsigned) status);
    return WEXITSTATUS(status) == 0;
}

/* ---- readers ------------------------------------------------------------------------------ */

static void
begin_reading(reader *r, uint32_t name, uint64_t until)
{
    int wake[2];
    int ready[2];
    char byte = 0;
    check(pipe(wake) == 0 && pipe(ready) == 0);
    r->pid = fork();
    check(r->pid >= 0);
    if (r->pid == 0) {
        esdm_container *container;
        (void) close(wake[1]);
        esdm_session *session = open_session();
        ok(esdm_container_open(session, name_of(name), ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                               &container, ERR));
        check(write(ready[1], &byte, 1) == 1);
        if (read(wake[0], &byte, 1) != 1) /* the test has failed elsewhere */
            _exit(1);
        bool like = is_like(container, &model[name].now);
        ok(esdm_container_close(container, ERR));
        esdm_session_close(session);
        _exit(like ? 0 : 10);
    }
    (void) close(wake[0]);
    (void) close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        die("a reader could not open %s", name_of(name));
    (void) close(ready[0]);
    r->wake = wake[1];
    r->until = until;
}

static void
end_reading(reader *r)
{
    int status = 0;
    check(write(r->wake, "", 1) == 1);
    check(waitpid(r->pid, &status, 0) == r->pid);
    (void) close(r->wake);
    r->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("a reader has not read what it opened: status 0x%x", (unsigned) status);
}

void
turn_readers(uint64_t step)
{
    for (int i = 0; i < READERS; i++) {
        reader *r = &readers[i];
        uint32_t name = any(NAMES);
        if (r->pid != 0 && step >= r->until)
            end_reading(r);
        else if (r->pid == 0 && step != UINT64_MAX && any(10) == 0 && model[name].now.exists)
            begin_reading(r, name, step + 1 + any(25));
    }
}

void
forget_readers(void)
{
    for (int i = 0; i < READERS; i++) {
        if (readers[i].pid != 0)
            (void) close(readers[i].wake);
    }
}
