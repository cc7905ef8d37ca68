/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the placement decided for packs, and how long they took, as it is kept. */
#include "io/packs/decisions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/session/session.h"

/* ---- a metadata store that keeps one fact ------------------------------------------------- */

typedef struct keeper {
    char name[256];
    char text[4096];
    int puts;
    bool broken;
} keeper;

static esdm_status
keep_fact(void *store, const char *name, const char *text, esdm_error *err)
{
    keeper *k = store;
    (void) err;
    k->puts++;
    if (k->broken)
        return ESDM_EIO;
    (void) snprintf(k->name, sizeof k->name, "%s", name);
    (void) snprintf(k->text, sizeof k->text, "%s", text);
    return ESDM_OK;
}

static esdm_status
list_facts(void *store, const char *prefix, esdm_meta_fact_visitor visit, void *user,
           esdm_error *err)
{
    const keeper *k = store;
    (void) err;
    if (k->name[0] != '\0' && strncmp(k->name, prefix, strlen(prefix)) == 0)
        (void) visit(k->name, k->text, user);
    return ESDM_OK;
}

/* ---- what comes back ---------------------------------------------------------------------- */

typedef struct seen {
    int packs;
    char target[16];
    uint64_t fragments;
    double predicted_s;
    double observed_s;
    size_t ntargets;
    double standings[4];
    esdm_write_counts writes;
} seen;

static bool
see(const esdm_decision_info *info, void *user)
{
    seen *s = user;
    s->packs++;
    (void) snprintf(s->target, sizeof s->target, "%s", info->target);
    s->fragments += info->fragments;
    s->predicted_s = info->predicted_s;
    s->observed_s = info->observed_s;
    s->ntargets = info->ntargets;
    for (size_t i = 0; i < info->ntargets && i < 4; i++)
        s->standings[i] = info->targets[i].predicted_s;
    return true;
}

/* Notes, writes, and reads what was written. */
static seen
there_and_back(const double *predicted, const double *observed, const double *completions,
               size_t count)
{
    static const esdm_meta_plugin plugin = {.fact_put = keep_fact, .fact_list = list_facts};
    esdm__target targets[2];
    esdm_session session;
    keeper *store = calloc(1, sizeof *store);
    esdm__decisions *d = esdm__decisions_new();
    seen found = {0};
    assert_true(store != NULL && d != NULL);
    memset(targets, 0, sizeof targets);
    memset(&session, 0, sizeof session);
    targets[0].name = "fast";
    targets[1].name = "slow";
    session.meta = &plugin;
    session.store = store;
    session.targets = targets;
    session.ntargets = 2;
    for (size_t i = 0; i < count; i++) {
        const esdm__place_choice order[2] = {{.target = 1, .completion_s = completions[i]},
                                             {.target = 0, .completion_s = 0.5}};
        const esdm__decision decision = {.pack = "p",
                                         .order = order,
                                         .count = 2,
                                         .bytes = 100,
                                         .predicted_s = predicted[i],
                                         .observed_s = observed[i]};
        esdm__decisions_note(d, &decision);
    }
    esdm__decisions_spent(d, "p", observed[0]);
    const esdm__pack_owner owner = {.session = &session, .uuid = "uuid", .writer = "writer"};
    const esdm_write_counts writes = {.fragments = 7, .elsewhere = 2, .fewer_copies = UINT32_MAX};
    esdm__decisions_store(d, &owner, &writes, false);
    assert_int_equal(esdm__decisions_history(&session, "uuid", &found.writes, NULL), ESDM_OK);
    assert_int_equal(esdm__decisions_visit(&session, "uuid", see, &found, NULL), ESDM_OK);
    esdm__decisions_free(d);
    free(store);
    return found;
}

static void
test_decisions__times_add_up(void **state)
{
    (void) state;
    const double seconds[3] = {0.5, 0.25, 1};
    seen found = there_and_back(seconds, seconds, seconds, 3);
    assert_int_equal(found.packs, 1);
    assert_string_equal(found.target, "slow");
    assert_int_equal(found.fragments, 3);
    assert_true(found.predicted_s == 1.75 && found.observed_s == 2.25);
    assert_true(found.writes.fragments == 7 && found.writes.elsewhere == 2 &&
                found.writes.fewer_copies == UINT32_MAX);
    assert_int_equal(found.ntargets, 2);
    assert_true(found.standings[0] == 0.5 && fabs(found.standings[1] - 1.75 / 3) < 1e-5);
}

/* What is no time, or is beyond JSON, costs neither the record nor the other numbers. */
static void
test_decisions__odd_times_leave_it_readable(void **state)
{
    (void) state;
    const double odd[5] = {(double) INFINITY, (double) NAN, 0.5, -(double) INFINITY, -3};
    seen found = there_and_back(odd, odd, odd, 5);
    assert_int_equal(found.packs, 1);
    assert_int_equal(found.fragments, 5);
    assert_true(found.predicted_s == 0.5 && found.observed_s == 0.5);
    assert_int_equal(found.ntargets, 2);
    assert_true(found.standings[0] == 0.5 && found.standings[1] == 0.5);

    const double huge[2] = {1.7e308, 1.7e308}; /* together they are too much */
    found = there_and_back(huge, huge, huge, 2);
    assert_int_equal(found.packs, 1);
    assert_int_equal(found.fragments, 2);
    assert_int_equal(found.ntargets, 2);
}

/* Without anything that was decided, as on a site with one target and two copies wanted. */
static void
test_decisions__counts_alone_are_kept(void **state)
{
    (void) state;
    static const esdm_meta_plugin plugin = {.fact_put = keep_fact, .fact_list = list_facts};
    keeper store = {.puts = 0};
    esdm_session session;
    memset(&session, 0, sizeof session);
    session.meta = &plugin;
    session.store = &store;
    const esdm__pack_owner owner = {.session = &session, .uuid = "uuid", .writer = "writer"};
    esdm__decisions *d = esdm__decisions_new();
    esdm_write_counts writes = {.fragments = 3};
    esdm_write_counts found = {0};
    assert_non_null(d);
    esdm__decisions_store(d, &owner, &writes, false);
    assert_int_equal(store.puts, 0); /* all went as planned */
    writes.fewer_copies = 2;
    store.broken = true;
    esdm__decisions_store(d, &owner, &writes, false);
    store.broken = false;
    esdm__decisions_store(d, &owner, &writes, false);
    assert_int_equal(store.puts, 2);
    assert_int_equal(esdm__decisions_history(&session, "uuid", &found, NULL), ESDM_OK);
    assert_true(found.fragments == 3 && found.elsewhere == 0 && found.fewer_copies == 2);
    esdm__decisions_store(d, &owner, &writes, false);
    assert_int_equal(store.puts, 2); /* nothing new */
    writes.elsewhere = 1;
    esdm__decisions_store(d, &owner, &writes, true);
    assert_int_equal(store.puts, 2); /* so soon only at the end */
    esdm__decisions_store(d, &owner, &writes, false);
    assert_int_equal(esdm__decisions_history(&session, "uuid", &found, NULL), ESDM_OK);
    assert_true(found.fragments == 3 && found.elsewhere == 1 && found.fewer_copies == 2);
    esdm__decisions_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions__times_add_up),
        cmocka_unit_test(test_decisions__counts_alone_are_kept),
        cmocka_unit_test(test_decisions__odd_times_leave_it_readable),
    };
    return cmocka_run_group_tests_name("io.decisions", tests, NULL, NULL);
}
