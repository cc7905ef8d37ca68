/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What of a regular expression a metadata store can search for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"

static void
test_regex__literal_parts_become_a_glob(void **state)
{
    (void) state;
    static const char *const cases[][2] = {
        {"^CNRM-[0-9]", "CNRM-*"},
        {"^MPI", "MPI*"},
        {"ESM", "*ESM*"},
        {"^a.*b$", "a*"},
        {"^ab*", "a*"},
        {"^ab+c", "a*"},
        {"ab{2}", "*a*"},
        {"^v1\\.2", "v1.2*"},
        {"^v1\\.?2", "v1*"},
        {"^(EC|MPI)", "*"},
        {"^EC|MPI", "*"},
        {"(?i)^ec", "*"},
        {"\\d+", "*"},
        {"", "*"},
        {"^", "*"},
        {"^\\*a", "*"},
        {"a?b", "*"},
        {"^\\Qa.b\\E", "*"},
        {"x\\[1\\]", "*x*"},
        {"^caf\xc3\xa9", "caf*"},
        {"(*UTF)ab", "*"},
        {"near surface", "*near surface*"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char glob[64];
        esdm__regex_glob(cases[i][0], glob);
        assert_string_equal(glob, cases[i][1]);
    }
}

static unsigned
next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

/* Whatever a pattern of few signs matches meets its glob. */
static void
test_regex__globs_lose_nothing(void **state)
{
    (void) state;
    static const char *const parts[] = {"a",   "b",   "-", ".",    "^",    "$",   "*",     "+", "?",
                                        "\\",  "(",   ")", "|",    "[ab]", "{1}", "{0,2}", "/", "é",
                                        "\\d", "\\.", " ", "(?i)", "\\b",  "(?:", "\\E"};
    unsigned seed = 16;
    size_t matched = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern[64] = "", text[16] = "", glob[140];
        esdm__regex *regex = NULL;
        bool matches = false;
        for (unsigned k = 1 + next(&seed) % 6; k > 0; k--)
            strcat(pattern, parts[next(&seed) % (sizeof parts / sizeof *parts)]);
        for (unsigned k = next(&seed) % 6; k > 0; k--)
            strncat(text, &"ab-./ 1AB"[next(&seed) % 9], 1);
        if (esdm__regex_new(pattern, &regex, NULL) != ESDM_OK)
            continue;
        esdm__regex_glob(pattern, glob);
        if (esdm__regex_matches(regex, text, &matches, NULL) == ESDM_OK && matches) {
            matched++;
            if (fnmatch(glob, text, 0) != 0)
                fail_msg("'%s' matches '%s', its glob '%s' does not", pattern, text, glob);
        }
        esdm__regex_free(regex);
    }
    assert_true(matched > 10000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regex__literal_parts_become_a_glob),
        cmocka_unit_test(test_regex__globs_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
