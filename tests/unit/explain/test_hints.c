/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Hints for files by MPI: which facts speak for which, what is kept, and when it ends. */
#include "esdm-explain/hints_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Small pieces with gaps, each rank on its own, of which ROMIO reads all that lies between. */
static hints_facts
with_gaps(double seconds)
{
    return (hints_facts){.ranks = 4,
                         .seconds = seconds,
                         .read_bytes = 4e6,
                         .read_calls = 128,
                         .gap_calls = 128,
                         .file_read_bytes = 130e6,
                         .romio = true,
                         .aggregators = 1};
}

static hints_facts
together(double bytes, double calls)
{
    return (hints_facts){.ranks = 8,
                         .seconds = 1,
                         .write_bytes = bytes,
                         .write_calls = calls,
                         .together_write_bytes = bytes,
                         .together_write_calls = calls,
                         .file_write_calls = calls,
                         .romio = true,
                         .aggregators = 8};
}

static const char *
rule_of(hints_facts f)
{
    static char text[256];
    for (uint32_t i = 1; i < 32; i++) {
        if (hints_rule(i, &f, text, sizeof text))
            return text;
    }
    return "";
}

/* Whether one of the rules says so. */
static bool
speaks(hints_facts f, const char *hints)
{
    char text[256];
    for (uint32_t i = 1; i < 32; i++) {
        if (hints_rule(i, &f, text, sizeof text) && strcmp(text, hints) == 0)
            return true;
    }
    return false;
}

static void
test_hints__rules(void **state)
{
    (void) state;
    assert_string_equal(rule_of(with_gaps(1)), "romio_ds_read=disable\n");
    hints_facts f = with_gaps(1);
    f.file_read_bytes = 2 * f.read_bytes; /* that pays */
    assert_string_equal(rule_of(f), "");
    f = with_gaps(1);
    f.romio = false; /* it knows no such hint */
    assert_string_equal(rule_of(f), "");
    f = (hints_facts){.ranks = 4,
                      .seconds = 1,
                      .write_bytes = 1e6,
                      .write_calls = 100,
                      .gap_calls = 100,
                      .file_read_bytes = 50e6,
                      .romio = true};
    assert_string_equal(rule_of(f), "romio_ds_write=disable\n");
    assert_string_equal(rule_of(together(8e6, 2000)), "romio_cb_write=enable\n");
    f = together(8e6, 2000);
    f.file_write_calls = 100; /* they are put together already */
    assert_string_equal(rule_of(f), "");
    assert_string_equal(rule_of(together(8e9, 1000)),
                        "romio_cb_write=disable\nromio_ds_write=disable\n");
    f = together(3e9, 1000);
    f.aggregators = 1;
    assert_string_equal(rule_of(f), "romio_cb_write=disable\n");
    assert_true(speaks(f, "cb_buffer_size=33554432\n"));
    f = (hints_facts){.ranks = 4,
                      .seconds = 1,
                      .read_bytes = 1e9,
                      .read_calls = 1000,
                      .together_read_bytes = 1e9,
                      .together_read_calls = 1000,
                      .romio = true};
    assert_string_equal(rule_of(f), "romio_cb_read=disable\n");
    f.together_read_bytes = f.read_bytes = 8e9;
    assert_string_equal(rule_of(f), "romio_cb_read=disable\nromio_ds_read=disable\n");
    f.romio = false;
    assert_string_equal(rule_of(f), "");
    f = together(3e9, 1000);
    f.together_read_bytes = 1e9;
    f.together_read_calls = 1000;
    assert_string_equal(rule_of(f), "romio_cb_write=disable\nromio_cb_read=disable\n");
    f = together(0.3e9, 1000);
    f.aggregators = 2;
    assert_string_equal(rule_of(f), "cb_nodes=4\ncb_config_list=*:2\n");
    f.romio = false;
    f.aggregators = 0;
    assert_string_equal(rule_of(f), "cb_nodes=4\n");
    f = together(2e9, 10000);
    f.lustre = true;
    assert_string_equal(rule_of(f), "striping_factor=8\n");
    f.lustre = false;
    assert_string_equal(rule_of(f), "");
    f = together(8e6, 10); /* too few to say anything */
    assert_string_equal(rule_of(f), "");
}

/* A run as the record wants it. */
static double
run_with(watch_hints_file *r, double plain_s, double hinted_s)
{
    char given[sizeof r->give];
    (void) memcpy(given, r->give, sizeof given);
    hints_facts f = with_gaps(given[0] != '\0' ? hinted_s : plain_s);
    f.file_read_bytes = given[0] != '\0' ? f.read_bytes : f.file_read_bytes;
    return hints_learn(r, &f, given);
}

static void
learn(watch_hints_file *r)
{
    *r = (watch_hints_file){.program = "model", .name = "/a"};
    assert_true(run_with(r, 1, 0) == 0);
    assert_int_equal(r->phase, WATCH_HINTS_LEARN);
    assert_string_equal(r->give, "");
    assert_true(run_with(r, 1.2, 0) == 0);
    assert_int_equal(r->phase, WATCH_HINTS_TRY);
    assert_string_equal(r->give, "romio_ds_read=disable\n");
    assert_string_not_equal(hints_why(r), "");
}

static void
test_hints__what_helps_stays(void **state)
{
    (void) state;
    watch_hints_file r;
    int without = 0;
    learn(&r);
    assert_true(fabs(run_with(&r, 1, 0.5) - 0.5) < 1e-9);
    assert_int_equal(r.phase, WATCH_HINTS_TRY);
    (void) run_with(&r, 1, 0.01); /* so little that runs without would need no hints */
    assert_int_equal(r.phase, WATCH_HINTS_KEEP);
    for (int i = 0; i < 45; i++) {
        without += r.give[0] == '\0';
        /* One run that is slow for another reason. */
        (void) run_with(&r, 1, i == 11 ? 4 : 0.5);
        assert_int_equal(r.phase, WATCH_HINTS_KEEP);
    }
    assert_true(without >= 5);
    assert_true(without <= 7);
    assert_string_equal(r.program, "model");
    assert_true(r.gained_s > 15);
}

static void
test_hints__what_does_not_help_ends(void **state)
{
    (void) state;
    watch_hints_file r;
    learn(&r);
    (void) run_with(&r, 1, 0.95);
    (void) run_with(&r, 1, 1);
    assert_int_equal(r.phase, WATCH_HINTS_LEARN);
    assert_string_equal(r.give, "");
    for (int i = 0; i < 20; i++) {
        (void) run_with(&r, 1, 0.1);
        assert_int_equal(r.phase, WATCH_HINTS_OVER);
        assert_string_equal(r.give, "");
    }
    /* One run is enough where it is hopeless. */
    learn(&r);
    assert_true(run_with(&r, 1, 3) < -1.9);
    assert_string_equal(r.give, "");
}

static void
test_hints__what_helps_no_more_ends(void **state)
{
    (void) state;
    watch_hints_file r;
    learn(&r);
    for (int i = 0; i < 5; i++)
        (void) run_with(&r, 1, 0.3);
    assert_int_equal(r.phase, WATCH_HINTS_KEEP);
    int hinted = 0;
    for (int i = 0; i < 20; i++) {
        hinted += r.give[0] != '\0';
        (void) run_with(&r, 1, 1.5);
    }
    assert_int_equal(r.phase, WATCH_HINTS_OVER);
    assert_true(hinted <= 5);
    /* All became slower, not for the hint: it stays. */
    learn(&r);
    for (int i = 0; i < 5; i++)
        (void) run_with(&r, 1, 0.3);
    for (int i = 0; i < 20; i++)
        (void) run_with(&r, 4, 1.2);
    assert_int_equal(r.phase, WATCH_HINTS_KEEP);
}

static void
test_hints__another_program_begins_anew(void **state)
{
    (void) state;
    watch_hints_file r;
    learn(&r);
    (void) run_with(&r, 1, 0.5);
    (void) run_with(&r, 1, 0.5);
    hints_facts f = with_gaps(1);
    f.read_calls /= 10;
    (void) hints_learn(&r, &f, r.give);
    assert_int_equal(r.phase, WATCH_HINTS_LEARN);
    assert_string_equal(r.give, "");
    assert_true(r.plain_ns == 0);
    /* Where the program states hints of its own there is nothing to learn. */
    learn(&r);
    watch_hints_file before = r;
    f = with_gaps(0.1);
    assert_true(hints_learn(&r, &f, "") == 0);
    assert_int_equal(r.phase, before.phase);
    assert_string_equal(r.give, before.give);
    assert_true(r.plain_ns == before.plain_ns);
    /* What takes no time needs nothing. */
    r = (watch_hints_file){0};
    f = with_gaps(0.001);
    (void) hints_learn(&r, &f, "");
    assert_int_equal(r.phase, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints__rules),
        cmocka_unit_test(test_hints__what_helps_stays),
        cmocka_unit_test(test_hints__what_does_not_help_ends),
        cmocka_unit_test(test_hints__what_helps_no_more_ends),
        cmocka_unit_test(test_hints__another_program_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
