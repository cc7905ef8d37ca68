/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Statements of accuracy as texts, and which of them is the strictest. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/accuracy.h"

/* What fortran/esdm.f90 has room for. */
_Static_assert(sizeof(esdm_accuracy) <= 1024 * sizeof(double), "c_accuracy of module esdm");

static esdm_error error;

/* Parses on top of nothing; the text that is printed again. */
static char *
again(const char *text, const char *units)
{
    esdm_accuracy a;
    char *printed = NULL;
    esdm_accuracy_init(&a);
    if (esdm_accuracy_parse(&a, text, units, &error) != ESDM_OK)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(esdm_accuracy_print(&a, &printed, &error), ESDM_OK);
    return printed;
}

static void
test_accuracy__texts_round_trip(void **state)
{
    static const char *const cases[][3] = {
        {"abs=0.01", NULL, "absolute_tolerance=0.01"},
        {" absolute_tolerance = 0.01 K ; mode = archive ", "K",
         "absolute_tolerance=0.01; mode=archive"},
        {"abs=10 mK", "K", "absolute_tolerance=0.01"},
        {"abs=0.01 degC", "K", "absolute_tolerance=0.01"},
        {"abs=1 hPa", "Pa", "absolute_tolerance=100"},
        {"abs=1 Pa", "hPa", "absolute_tolerance=0.01"},
        {"abs=1 Pa", "kPa", "absolute_tolerance=0.001"},
        {"abs=1.1 hPa", "Pa", "absolute_tolerance=110"}, /* 1.1 * 100 is not */
        {"rel=1.1%", NULL, "relative_tolerance=0.011"},
        {"abs=1 m/s", "m s-1", "absolute_tolerance=1"},
        {"abs=1 W/m2", "W m-2", "absolute_tolerance=1"},
        {"abs=1 mW m**-2", "W m-2", "absolute_tolerance=0.001"},
        {"abs=36 km/h", "m s-1", "absolute_tolerance=10"},
        {"abs=0.9 degF", "K", "absolute_tolerance=0.5"},
        {"abs=1 min", "h", "absolute_tolerance=0.0166666666666667"},
        {"abs=1 kg m-2", "kg m-2", "absolute_tolerance=1"},
        {"rel=1%", NULL, "relative_tolerance=0.01"},
        {"rel=0.001, finest=1e-6", NULL, "relative_tolerance=0.001; relative_finest=1e-06"},
        {"digits=3", NULL, "significant_digits=3"},
        {"bits=10,conserve=mean", NULL, "significant_bits=10; conserve=1e-06"},
        {"nsb=1", NULL, "significant_bits=3"},
        {"nsb=10; mode=archive", NULL, "significant_bits=12; mode=archive"},
        {"nsb=51", NULL, "significant_bits=53"},
        {"nsd=1", NULL, "significant_bits=5"},
        {"nsd=3", NULL, "significant_bits=11"},
        {"nsd=15", NULL, "significant_bits=51"},
        {"nsd=3; nsb=10; bits=8", NULL, "significant_bits=12"},
        {"abs=1; box=0,0,1,1: nsb=3", NULL,
         "absolute_tolerance=1; box=0,0,1,1: significant_bits=5"},
        {"abs=1;lossless_up_to=-5;lossless_from=1e3", NULL,
         "absolute_tolerance=1; lossless_up_to=-5; lossless_from=1000"},
        {"abs=0.1;exact=1 2.5  -9e9", NULL,
         "absolute_tolerance=0.1; exact_values=1 2.5 -9000000000"},
        {"compression_speed=200 MiB/s; decompression_speed=0.5 network", NULL,
         "compression_speed=209715200 B/s; decompression_speed=0.5 network"},
        {"mode=energy;;", NULL, "mode=energy"},
        {"mode=progressive", NULL, "mode=progressive"},
        {"mode=fast", NULL, "mode=fast"},
        {"range=0.1 %; std=1%", NULL, "range_tolerance=0.001; std_tolerance=0.01"},
        {"range=0.1; exact=5; range=0.2", NULL, "exact_values=5; range_tolerance=0.1"},
        {"abs=0.1;abs=0.2", NULL, "absolute_tolerance=0.1"},
        {"abs=0.01 K; abs=1 mK; abs=0.1 K", "K", "absolute_tolerance=0.001"},
        {"rel=0.1 %; rel=1 %; finest=2; finest=1; finest=3", NULL,
         "relative_tolerance=0.001; relative_finest=1"},
        {"digits=5; digits=3; bits=7; bits=9; bits=8", NULL,
         "significant_digits=5; significant_bits=9"},
        {"abs=1; lossless_up_to=2; lossless_up_to=1; lossless_from=8; lossless_from=9", NULL,
         "absolute_tolerance=1; lossless_up_to=2; lossless_from=8"},
        {"conserve=0.1; conserve=0.2; mode=archive; mode=speed", NULL, "conserve=0.1; mode=speed"},
        {"abs=1; exact=1 2; exact=2 3", NULL, "absolute_tolerance=1; exact_values=1 2 3"},
        {"abs=0.5 K; box=-10,35,30,60: abs=10 mK", "K",
         "absolute_tolerance=0.5; box=-10,35,30,60: absolute_tolerance=0.01"},
        {"regions=box=350, 35, 30, 60 : rel=1 %, finest=2; abs=3", NULL,
         "absolute_tolerance=3; box=350,35,390,60: relative_tolerance=0.01, relative_finest=2"},
        {"range=1 %; level=500..1000 hPa: digits=4; level = 10 : bits=9", NULL,
         "range_tolerance=0.01; level=500..1000 hPa: significant_digits=4; "
         "level=10: significant_bits=9"},
        {"abs=1; box=0,-90,360,90 & level=-5.5..1e3 m: abs=0.1, std=0.01; mode=archive", NULL,
         "absolute_tolerance=1; mode=archive; box=0,-90,360,90 & level=-5.5..1000 m: "
         "absolute_tolerance=0.1, std_tolerance=0.01"},
        {"abs=1; box=0,0,1,1: abs=0.1; box=0,0,1,1: abs=0.2, digits=3", NULL,
         "absolute_tolerance=1; box=0,0,1,1: absolute_tolerance=0.1, significant_digits=3"},
        {"abs=1; mask=sftlf>50: abs=0.1; mask = basin == 3 : abs=0.2; mask=h<=-5e2: abs=0.3", NULL,
         "absolute_tolerance=1; mask=sftlf>=50: absolute_tolerance=0.1; "
         "mask=basin=3: absolute_tolerance=0.2; mask=h<=-500: absolute_tolerance=0.3"},
        {"abs=1; mask=m=0 & box=0,0,1,1 & level=2: abs=0.1", NULL,
         "absolute_tolerance=1; box=0,0,1,1 & level=2 & mask=m=0: absolute_tolerance=0.1"},
        {"psnr=60 dB; psnr = 50; level=1: psnr=80", NULL, "psnr=60; level=1: psnr=80"},
        {"gradient=20 mK; mean=0.001; box=0,0,1,1: mean=1e-4, gradient=1 mK", "K",
         "gradient_tolerance=0.02; mean_tolerance=0.001; box=0,0,1,1: gradient_tolerance=0.001, "
         "mean_tolerance=0.0001"},
        {"vector=0.2; vector=0.1 m/s; components=2; components=3", "m s-1",
         "vector_tolerance=0.1; vector_components=3"},
        {"", NULL, ""},
    };
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *printed = again(cases[i][0], cases[i][1]);
        assert_string_equal(printed, cases[i][2]);
        char *twice = again(printed, NULL);
        assert_string_equal(twice, printed);
        free(printed);
        free(twice);
    }
}

static void
test_accuracy__the_strictest_statement_counts(void **state)
{
    static const char *const cases[][3] = {
        {"abs=0.01", "abs=0.1", "absolute_tolerance=0.01"},
        {"abs=0.1", "abs=0.01", "absolute_tolerance=0.01"},
        {"abs=0.1; mode=speed", "mode=archive", "absolute_tolerance=0.1; mode=archive"},
        {"nsb=9", "nsd=3", "significant_bits=11"},
        {"nsb=8", "nsd=3", "significant_bits=11"},
        {"nsb=10", "bits=9", "significant_bits=12"},
        {"digits=5", "digits=3; rel=0.5", "relative_tolerance=0.5; significant_digits=5"},
        {"rel=0.1; finest=2", "rel=0.2; finest=1", "relative_tolerance=0.1; relative_finest=1"},
        {"rel=0.1; finest=2", "finest=1", "relative_tolerance=0.1; relative_finest=1"},
        {"rel=0.1; finest=2", "rel=0.2", "relative_tolerance=0.1"},
        {"rel=0.2", "rel=0.1; finest=2", "relative_tolerance=0.1"},
        {"abs=3", "rel=0.1; finest=2",
         "absolute_tolerance=3; relative_tolerance=0.1; relative_finest=2"},
        {"rel=0.1", "finest=2", NULL},
        {"abs=1; box=0,0,1,1: abs=0.1", "abs=0.5; box=0,0,1,1: abs=0.2; level=3: abs=0.3",
         "absolute_tolerance=0.5; box=0,0,1,1: absolute_tolerance=0.1; "
         "level=3: absolute_tolerance=0.3"},
        {"abs=1; level=1: abs=0; level=2: abs=0; level=3: abs=0; level=4: abs=0; level=5: abs=0",
         "abs=1; level=6: abs=0; level=7: abs=0; level=8: abs=0; level=9: abs=0", NULL},
        {"abs=1; exact=1 2 3 4 5 6 7 8 9", "exact=11 12 13 14 15 16 17 18", NULL},
    };
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm_accuracy a;
        char *printed = NULL;
        esdm_accuracy_init(&a);
        assert_int_equal(esdm_accuracy_parse(&a, cases[i][0], NULL, &error), ESDM_OK);
        esdm_status st = esdm_accuracy_parse(&a, cases[i][1], NULL, &error);
        assert_int_equal(st, cases[i][2] != NULL ? ESDM_OK : ESDM_EINVAL);
        assert_int_equal(esdm_accuracy_print(&a, &printed, &error), ESDM_OK);
        if (cases[i][2] != NULL)
            assert_string_equal(printed, cases[i][2]);
        free(printed);
    }
}

static void
test_accuracy__nonsense_is_refused(void **state)
{
    static const char *const cases[][3] = {
        {"abs", NULL, "NAME=VALUE"},
        {"absolut=1", NULL, "no quantity 'absolut'"},
        {"abs=", NULL, "expected a number"},
        {"abs=x", NULL, "expected a number"},
        {"abs=-1", NULL, "must not be negative"},
        {"abs=nan", NULL, "finite"},
        {"abs=inf", NULL, "finite"},
        {"abs=1 K", NULL, "no units"},
        {"abs=1 Pa", "K", "units 'Pa' are not those of the dataset, 'K'"},
        {"abs=1 psu", "h", "are not those"},
        {"abs=1 dBZ", "mm6 m-3", "are not those"},               /* no multiple */
        {"abs=1 K;lossless_up_to=3 degF", "K", "are not those"}, /* shifted */
        {"abs=-1 W/m2", "W m-2", "must not be negative"},
        {"abs=1 min", "in", "are not those"},
        {"abs=1;lossless_from=3 degC", "K", "are not those"},
        {"rel=1 K", "K", "no units but %"},
        {"rel=1", NULL, "promises nothing"},
        {"rel=2", NULL, "promises nothing"},
        {"rel=100 %", NULL, "promises nothing"},
        {"rel=-0.1 %", NULL, "must not be negative"},
        {"conserve=1", NULL, "promises nothing"},
        {"digits=18", NULL, "whole number from 1 to 17"},
        {"digits=3 %", NULL, "whole number from 1 to 17"},
        {"bits=0", NULL, "whole number from 1 to 53"},
        {"digits=0", NULL, "whole number from 1 to 17"},
        {"digits=2.5", NULL, "whole number"},
        {"bits=54", NULL, "whole number from 1 to 53"},
        {"nsb=0", NULL, "nsb = '0': expected a whole number from 1 to 51"},
        {"nsb=52", NULL, "nsb = '52': expected a whole number from 1 to 51"},
        {"nsb=9.5", NULL, "whole number from 1 to 51"},
        {"nsd=0", NULL, "nsd = '0': expected a whole number from 1 to 15"},
        {"nsd=16", NULL, "whole number from 1 to 15"},
        {"nsd=3 K", "K", "whole number from 1 to 15"},
        {"finest=1", NULL, "without relative_tolerance"},
        {"lossless_up_to=1", NULL, "nothing that numbers may be off by"},
        {"abs=1;lossless_up_to=5;lossless_from=3", NULL, "leave no number"},
        {"mode=quick", NULL, "expected speed, fast, balanced, archive, energy or progressive"},
        {"compression_speed=3", NULL, "expected a speed"},
        {"compression_speed=0 MiB/s", NULL, "positive"},
        {"exact=1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", NULL, "at most 16"},
        {"box=0,0,1,1: abs=1", NULL, "nothing that numbers elsewhere may be off by"},
        {"abs=1; box=0,0,1,1", NULL, "expected WHERE: TOLERANCES"},
        {"abs=1; box=0,0,1: abs=0.1", NULL, "box=WEST,SOUTH,EAST,NORTH"},
        {"abs=1; box=0,0,1,1,2: abs=0.1", NULL, "box=WEST,SOUTH,EAST,NORTH"},
        {"abs=1; box=0,0,nan,1: abs=0.1", NULL, "box=WEST,SOUTH,EAST,NORTH"},
        {"abs=1; box=0,60,1,30: abs=0.1", NULL, "the southern one first"},
        {"abs=1; box=0,-91,1,30: abs=0.1", NULL, "latitudes are degrees"},
        {"abs=1; box=0,0,1e9,30: abs=0.1", NULL, "longitudes are degrees"},
        {"abs=1; level=a: abs=0.1", NULL, "level=FROM..TO"},
        {"abs=1; level=1..: abs=0.1", NULL, "level=FROM..TO"},
        {"abs=1; level=1..2..3: abs=0.1", NULL, "level=FROM..TO"},
        {"abs=1; level=1 & level=2: abs=0.1", NULL, "ranges of levels"},
        {"abs=1; level=1 & lat=2: abs=0.1", NULL, "expected box="},
        {"abs=1; level=1: mode=archive", NULL, "tolerances alone"},
        {"abs=1; level=1: exact=3", NULL, "tolerances alone"},
        {"abs=1; level=1: level=2: abs=0.1", NULL, "no regions within regions"},
        {"abs=1; level=1:", NULL, "states nothing"},
        {"abs=1; level=1: finest=1", NULL, "states nothing"},
        {"abs=1 K; level=1: abs=1 Pa", "K", "are not those"},
        {"abs=1; level=1: abs=1", NULL, "not more accurate than what is stated for all"},
        {"abs=1; rel=0.1; level=1: rel=0.2", NULL, "not more accurate"},
        {"abs=1; mask=sftlf: abs=0.1", NULL, "mask=VARIABLE>=NUMBER"},
        {"abs=1; mask=>5: abs=0.1", NULL, "mask=VARIABLE>=NUMBER"},
        {"abs=1; mask=m=>5: abs=0.1", NULL, "mask=VARIABLE>=NUMBER"},
        {"abs=1; mask=m>5 K: abs=0.1", NULL, "mask=VARIABLE>=NUMBER"},
        {"abs=1; mask=m>nan: abs=0.1", NULL, "mask=VARIABLE>=NUMBER"},
        {"abs=1; mask=m>1 & mask=m<5: abs=0.1", NULL, "or masks"},
        {"psnr=60 K", "K", "its unit is dB"},
        {"psnr=0", NULL, "more than 0 dB"},
        {"psnr=301", NULL, "at most 300 dB"},
        {"vector=1; components=1", NULL, "whole number from 2 to 3"},
        {"components=2", NULL, "without vector_tolerance"},
        {"gradient=-1", NULL, "must not be negative"},
        {"mean=1 Pa", "K", "are not those"},
        {"mean=1; box=0,0,1,1: mean=0.1", NULL, "nothing that numbers elsewhere may be off by"},
        {"abs=1; mean=0.1; level=1: mean=0.2", NULL, "not more accurate"},
        {"abs=1; regions=", NULL, "expected WHERE: TOLERANCES"},
    };
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm_accuracy a;
        esdm_accuracy_init(&a);
        const esdm_accuracy before = a;
        if (esdm_accuracy_parse(&a, cases[i][0], cases[i][1], &error) != ESDM_EINVAL)
            fail_msg("'%s' is accepted", cases[i][0]);
        if (strstr(error.message, cases[i][2]) == NULL)
            fail_msg("'%s' gives '%s'", cases[i][0], error.message);
        assert_memory_equal(&a, &before, sizeof a);
    }
}

/* Units that nobody knows yet do not tell which tolerance is stricter. */
static void
test_accuracy__texts_are_checked_without_units(void **state)
{
    (void) state;
    assert_int_equal(esdm_accuracy_check_text("abs=0.5 K; box=0,0,1,1: abs=1 mK", &error), ESDM_OK);
    assert_int_equal(esdm_accuracy_check_text("abs=0.5 K; box=0,0,1: abs=1 mK", &error),
                     ESDM_EINVAL);
}

static void
test_accuracy__members_out_of_range_are_refused(void **state)
{
    (void) state;
    esdm_accuracy a;
    esdm_accuracy_init(&a);
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_OK);
    a.stated = ESDM_ACCURACY_ABSOLUTE_TOLERANCE;
    a.absolute_tolerance = NAN;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
    a.absolute_tolerance = -1;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
    a.absolute_tolerance = 0;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_OK);
    a.stated |= ESDM_ACCURACY_RELATIVE_TOLERANCE;
    a.relative_tolerance = 1;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
    a.relative_tolerance = 0.999;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_OK);
    a.stated |= ESDM_ACCURACY_CONSERVE;
    a.conserve = 1;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
    a.conserve = 0.5;
    a.stated |= 1u << 20;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
    a.stated = ESDM_ACCURACY_MODE;
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
}

/* Earlier versions took shares of 1 and more: their containers stay readable. */
static void
test_accuracy__stored_texts_may_have_large_shares(void **state)
{
    (void) state;
    esdm_accuracy a;
    char *printed = NULL;
    esdm_accuracy_init(&a);
    assert_int_equal(esdm__accuracy_parse_stored(&a, "relative_tolerance=2; conserve=3", &error),
                     ESDM_OK);
    assert_true(esdm_accuracy_is_lossy(&a));
    assert_int_equal(esdm_accuracy_print(&a, &printed, &error), ESDM_OK);
    assert_string_equal(printed, "relative_tolerance=2; conserve=3");
    free(printed);
    assert_int_equal(esdm_accuracy_check(&a, &error), ESDM_EINVAL);
}

/* Programs run under locales with another decimal point. */
static void
test_accuracy__the_locale_does_not_matter(void **state)
{
    (void) state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        skip();
    char *printed = again("abs=0.25", NULL);
    assert_string_equal(printed, "absolute_tolerance=0.25");
    free(printed);
    (void) setlocale(LC_ALL, "C");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy__texts_round_trip),
        cmocka_unit_test(test_accuracy__the_strictest_statement_counts),
        cmocka_unit_test(test_accuracy__nonsense_is_refused),
        cmocka_unit_test(test_accuracy__texts_are_checked_without_units),
        cmocka_unit_test(test_accuracy__members_out_of_range_are_refused),
        cmocka_unit_test(test_accuracy__stored_texts_may_have_large_shares),
        cmocka_unit_test(test_accuracy__the_locale_does_not_matter),
    };
    return cmocka_run_group_tests_name("model.accuracy", tests, NULL, NULL);
}
