/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Random changes of containers that share packs, compared with a model; run by test_sharing.py.
 *
 *     sharing_model STEPS SEED
 *
 * Each step is done by a process of its own, which is killed at a random time in a part of the
 * cases: then its container is as before, or as after it. Readers have containers open meanwhile.
 * What nobody refers to is gone after esdm_gc().
 *
 * $ESDM_MODEL_AT_WORK is a command that prints, one a line, what works for ESDM on a server: that
 * goes on for a moment when a client was killed, and may still do what it was told.
 */

#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "faults/sharing_model.h"

static const char *const kind_names[KINDS] = {
    "create", "overwrite", "append",  "clone",         "clone before", "remove",
    "erase",  "rename",    "collect", "drain",         "drain one",    "compact",
    "repair", "dedup",     "branch",  "change branch", "merge",        "unbranch"};

state model[NAMES];
static uint64_t seed;
static uint64_t counts[KINDS];
static uint64_t took_us[KINDS]; /* about */
static uint64_t kills;
static uint64_t *compacted; /* fragments, by all processes */

uint32_t
any(uint32_t below)
{
    return (uint32_t) (next_random(&seed) % below);
}

const char *
name_of(uint32_t i)
{
    static const char *const names[NAMES] = {"n0", "n1", "sub/n2", "sub/n3", "n4", "n5"};
    return names[i];
}

/* ---- servers ------------------------------------------------------------------------------ */

typedef struct workers {
    char names[64][24];
    size_t count;
} workers;

/* What works for ESDM on a server now. */
static void
list_workers(workers *ret)
{
    const char *command = getenv("ESDM_MODEL_AT_WORK");
    ret->count = 0;
    FILE *told = command != NULL ? popen(command, "r") : NULL;
    if (told == NULL)
        return;
    while (ret->count < 64 && fgets(ret->names[ret->count], 24, told) != NULL)
        ret->count++;
    check(pclose(told) == 0);
}

static bool
are_among(const workers *now, const workers *before)
{
    for (size_t i = 0; i < now->count; i++) {
        bool known = false;
        for (size_t k = 0; k < before->count && !known; k++)
            known = strcmp(now->names[i], before->names[k]) == 0;
        if (!known)
            return false;
    }
    return true;
}

/* Until nothing works for a process that was killed. */
static void
wait_for_workers(const workers *before)
{
    workers now;
    for (int i = 0; i < 6000; i++) {
        list_workers(&now);
        if (are_among(&now, before))
            return;
        (void) usleep(10000);
    }
    die("the server still works for a process that was killed");
}

/* ---- steps -------------------------------------------------------------------------------- */

static uint64_t
now_us(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* Whether it was killed before its end. */
static bool
run_child(const operation *op, bool kills_it)
{
    int status = 0;
    workers before;
    if (kills_it)
        list_workers(&before);
    uint64_t began_us = now_us();
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        forget_readers();
        do_step(op, compacted);
        _exit(0);
    }
    if (kills_it) {
        (void) usleep((useconds_t) (next_random(&seed) % (took_us[op->kind] + 2000)));
        (void) kill(child, SIGKILL);
    }
    check(waitpid(child, &status, 0) == child);
    if (kills_it && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        wait_for_workers(&before);
        return true;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("it ended with status 0x%x", (unsigned) status);
    if (!kills_it)
        took_us[op->kind] = (took_us[op->kind] + now_us() - began_us) / 2;
    return false;
}

static void
step(uint64_t number)
{
    operation op;
    state after[NAMES];
    while (!choose(&op))
        ;
    bool kills_it = any(4) == 0;
    fprintf(stderr, "step %" PRIu64 ": %s %s %s %u%s\n", number, kind_names[op.kind], name_of(op.a),
            name_of(op.b), op.row, kills_it ? ", killed" : "");
    memcpy(after, model, sizeof after);
    apply(&op, after);
    counts[op.kind]++;
    bool killed = run_child(&op, kills_it);
    kills += killed;
    if (!killed) {
        memcpy(model, after, sizeof after);
    } else {
        bool took_place = !compare(&op, model);
        if (took_place && !compare(&op, after))
            die("after a kill it is neither as before nor as after");
        if (took_place)
            memcpy(model, after, sizeof after);
        model[op.a].knows_before = model[op.b].knows_before = false;
        if (op.kind ==
            MERGE) { /* whether it is noted that it was merged cannot be seen: it goes on */
            memcpy(after, model, sizeof after);
            apply(&op, after);
            (void) run_child(&op, false);
            memcpy(model, after, sizeof after);
        }
    }
    if (number % 16 == 0 || op.kind >= COLLECT) {
        if (!compare(NULL, model))
            die("after step %" PRIu64, number);
    } else if (!killed && !compare(&op, model)) {
        die("after step %" PRIu64, number);
    }
    turn_readers(number);
}

int
main(int argc, char **argv)
{
    check(argc == 3);
    uint64_t steps = strtoull(argv[1], NULL, 10);
    seed = strtoull(argv[2], NULL, 10);
    compacted =
        mmap(NULL, sizeof *compacted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(compacted != MAP_FAILED);
    for (uint64_t i = 1; i <= steps; i++)
        step(i);
    turn_readers(UINT64_MAX);
    if (!compare(NULL, model))
        die("in the end");
    /* The last child of its own, so that this process never has a session. */
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        leave_nothing();
        _exit(0);
    }
    wait_children(&child, 1);
    for (int i = 0; i < KINDS; i++)
        printf("%s %" PRIu64 "\n", kind_names[i], counts[i]);
    printf("killed %" PRIu64 "\nfragments compacted %" PRIu64 "\n", kills, *compacted);
    if (counts[COMPACT] >= 10 && *compacted == 0)
        die("of %" PRIu64 " compactions none had anything to do", counts[COMPACT]);
    return 0;
}
