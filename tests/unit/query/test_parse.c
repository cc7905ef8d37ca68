/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Expressions of esdm-find, and where an error is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"

static void
test_query__several_comparisons(void **state)
{
    (void) state;
    esdm__query query = {0};
    esdm_error err = {0};
    esdm_status status = esdm__query_parse(
        " source_id = CNRM-ESM2-1 and tos:units = \"degC\" AND :year >= 1850 and a!=-1.5e2 ",
        &query, &err);
    assert_int_equal(status, ESDM_OK);
    assert_int_equal(query.nconditions, 4);
    const esdm_meta_condition *c = query.conditions;
    assert_null(c[0].variable);
    assert_string_equal(c[0].attribute, "source_id");
    assert_int_equal(c[0].op, ESDM_META_EQ);
    assert_false(c[0].is_number);
    assert_string_equal(c[0].text, "CNRM-ESM2-1");
    assert_string_equal(c[1].variable, "tos");
    assert_string_equal(c[1].attribute, "units");
    assert_string_equal(c[1].text, "degC");
    assert_string_equal(c[2].variable, "");
    assert_string_equal(c[2].attribute, "year");
    assert_int_equal(c[2].op, ESDM_META_GE);
    assert_true(c[2].is_number);
    assert_true(c[2].number == 1850);
    assert_string_equal(c[2].text, "1850");
    assert_int_equal(c[3].op, ESDM_META_NE);
    assert_true(c[3].is_number && c[3].number == -150);
    esdm__query_clear(&query);
    assert_null(query.conditions);
}

static void
test_query__every_operator(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        esdm_meta_operator op;
    } cases[] = {{"a=1", ESDM_META_EQ},      {"a==1", ESDM_META_EQ},  {"a != 1", ESDM_META_NE},
                 {"a<1", ESDM_META_LT},      {"a <=1", ESDM_META_LE}, {"a> 1", ESDM_META_GT},
                 {"a\t>=\n1", ESDM_META_GE}, {"a~1", ESDM_META_GLOB}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__query query = {0};
        assert_int_equal(esdm__query_parse(cases[i].text, &query, NULL), ESDM_OK);
        assert_int_equal(query.nconditions, 1);
        assert_int_equal(query.conditions[0].op, cases[i].op);
        assert_int_equal(query.conditions[0].is_number, cases[i].op != ESDM_META_GLOB);
        assert_string_equal(query.conditions[0].text, "1");
        esdm__query_clear(&query);
    }
}

static void
test_query__words_and_numbers(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        bool is_number;
        double number;
    } cases[] = {{"1", true, 1},           {"+1", true, 1},        {"-0.5", true, -0.5},
                 {".5", true, 0.5},        {"1e3", true, 1000},    {"0x1f", true, 31},
                 {"1850-01-01", false, 0}, {"r1i1p1f1", false, 0}, {"nan", false, 0},
                 {"inf", false, 0},        {"1e999", false, 0},    {"\"1\"", false, 0},
                 {"0x", false, 0},         {"-", false, 0},        {"hdl:21.14100/x", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64] = "a = ";
        strcat(text, cases[i].text);
        esdm__query query = {0};
        esdm_error err = {0};
        if (esdm__query_parse(text, &query, &err) != ESDM_OK)
            fail_msg("%s: %s", text, err.message);
        if (query.conditions[0].is_number != cases[i].is_number ||
            query.conditions[0].number != cases[i].number)
            fail_msg("%s is %g", text, query.conditions[0].number);
        esdm__query_clear(&query);
    }
}

static void
test_query__quotes_and_escapes(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *value;
    } cases[] = {
        {"a = \"W m-2\"", "W m-2"},
        {"a = 'say \"and\"'", "say \"and\""},
        {"a = \"\"", ""},
        {"a = \"and\"", "and"},
        {"a = 'it\\'s \\\\ \\n\\t'", "it's \\ \n\t"},
        {"a = \"\\u00b0C\"", "\xc2\xb0"
                             "C"},
        {"a = \"\\ud83c\\udf0d!\"", "\xf0\x9f\x8c\x8d!"},
        {"a = \"\\u20ac\"", "\xe2\x82\xac"},
        {"a = \xc3\xa4hnlich", "\xc3\xa4hnlich"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__query query = {0};
        esdm_error err = {0};
        if (esdm__query_parse(cases[i].text, &query, &err) != ESDM_OK)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_string_equal(query.conditions[0].text, cases[i].value);
        assert_false(query.conditions[0].is_number);
        esdm__query_clear(&query);
    }
}

static void
test_query__quoted_names(void **state)
{
    (void) state;
    esdm__query query = {0};
    assert_int_equal(esdm__query_parse("'my var':\"long: name\" = x", &query, NULL), ESDM_OK);
    assert_string_equal(query.conditions[0].variable, "my var");
    assert_string_equal(query.conditions[0].attribute, "long: name");
    esdm__query_clear(&query);
}

static void
test_query__errors_name_the_column(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "query, column 1: expected the name of an attribute, found the end"},
        {"   ", "query, column 4: expected the name of an attribute, found the end"},
        {"units",
         "query, column 6: expected one of = != < <= > >= ~ (words of titles and long names: "
         "text ~ \"sea ice\"), found the end"},
        {"units K", "query, column 7: expected one of = != < <= > >= ~, found 'K'"},
        {"units = ", "query, column 9: expected a value"},
        {"= K", "query, column 1: expected the name of an attribute, found '='"},
        {"a = b c = d", "query, column 7: expected \"and\" or \"or\" (a value with blanks must be "
                        "in quotes), found 'c'"},
        {"a = b and", "query, column 10: expected a comparison after \"and\", found the end"},
        {"a = b and ", "query, column 11: expected a comparison after \"and\", found the end"},
        {"a = b and and c = d", "query, column 15: expected one of = != < <= > >= ~, found 'c'"},
        {"a = b andy = d", "query, column 7: expected \"and\" or \"or\" (a value with blanks must "
                           "be in quotes), found 'andy'"},
        {"a = and b = c", "query, column 5: expected a value"},
        {"a = b=c", "query, column 6: expected \"and\" or \"or\" (a value with blanks must be in "
                    "quotes), found '=c'"},
        {"a = 'b", "query, column 5: this quote is not closed, found ''b'"},
        {"a = 'b\\q'", "query, column 7: unknown escape"},
        {"a = '\\u12g4'", "query, column 6: expected four hexadecimal digits after \\u"},
        {"a = '\\ud800'", "query, column 6: this \\u escape is not a character"},
        {"a = '\\u0000'", "query, column 6: this \\u escape is not a character"},
        {"a = 'x\\", "query, column 7: unknown escape"},
        {"v: a = 1", "query, column 3: expected the name of an attribute"},
        {"v:w:a = 1", "query, column 4: expected one of"},
        {"'':a = 1", "query, column 1: expected the name of a variable"},
        {"'' = 1", "query, column 1: expected the name of an attribute"},
        {"a = 'b'c = d", "query, column 8: expected \"and\" or \"or\" (a value with blanks must be "
                         "in quotes), found 'c'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__query query = {.nconditions = 77};
        esdm_error err = {0};
        if (esdm__query_parse(cases[i].text, &query, &err) != ESDM_EINVAL)
            fail_msg("'%s' was accepted", cases[i].text);
        if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': %s", cases[i].text, err.message);
        assert_int_equal(query.nconditions, 77);
        assert_null(query.conditions);
    }
}

static void
test_query__locale_does_not_matter(void **state)
{
    (void) state;
    const char *had = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    esdm__query query = {0};
    assert_int_equal(esdm__query_parse("a = 1.5", &query, NULL), ESDM_OK);
    assert_true(query.conditions[0].is_number && query.conditions[0].number == 1.5);
    esdm__query_clear(&query);
    if (had == NULL)
        print_message("[  NOTE    ] the locale de_DE.UTF-8 is not installed\n");
    (void) setlocale(LC_NUMERIC, "C");
}

static void
test_query__many_conditions(void **state)
{
    (void) state;
    char text[100 * 16] = "a=b";
    for (int i = 1; i < 100; i++)
        strcat(text, " and a=b");
    esdm__query query = {0};
    assert_int_equal(esdm__query_parse(text, &query, NULL), ESDM_OK);
    assert_int_equal(query.nconditions, 100);
    assert_string_equal(query.conditions[99].text, "b");
    esdm__query_clear(&query);
}

/* The terms, with the values of their comparisons: "a b -c | d". */
static void
has_terms(const char *text, const char *expected)
{
    esdm__query query = {0};
    esdm__query_terms terms = {0};
    esdm_error err = {0};
    char shown[400] = "";
    if (esdm__query_parse(text, &query, &err) != ESDM_OK ||
        esdm__query_terms_make(&query, &terms, &err) != ESDM_OK)
        fail_msg("%s: %s", text, err.message);
    for (size_t i = 0; i < terms.count; i++) {
        const esdm__query_term *term = &terms.items[i];
        for (size_t k = 0; k < term->holds + term->fails; k++) {
            strcat(shown, k > 0 ? " " : i > 0 ? " | " : "");
            strcat(shown, k >= term->holds ? "-" : "");
            strcat(shown, query.conditions[term->conditions[k]].text);
        }
    }
    esdm__query_terms_clear(&terms);
    esdm__query_clear(&query);
    assert_string_equal(shown, expected);
}

static void
test_query__becomes_alternatives(void **state)
{
    (void) state;
    has_terms("a = 1", "1");
    has_terms("a = 1 and b = 2 or c = 3", "1 2 | 3");
    has_terms("a = 1 and (b = 2 or c = 3)", "1 2 | 1 3");
    has_terms("(a = 1 or b = 2)and(c = 3 or d = 4)", "1 3 | 1 4 | 2 3 | 2 4");
    has_terms("not (a = 1 and not b = 2)", "-1 | 2");
    has_terms("NOT(a = 1 Or b = 2)", "-1 -2");
    has_terms("not not not a = 1", "-1");
    has_terms("a in (1, x , 'y z',4)", "1 | x | y z | 4");
    has_terms("a not in (1,2) and b = 3", "3 -1 -2");
    has_terms("exists a and not exists(b)", "* -*");
    has_terms("(a = f(x,y) or a = g())", "f(x,y) | g()");
    has_terms("a = b)", "b)");
    has_terms("not = 1 and exists ~ x and in = 2", "1 x 2");
    has_terms("(a <= 2019-04 or a > 2019-09) and a <= 2019-12-31", "2019-05 2019-12-32 | "
                                                                   "2019-10 2019-12-32");
    has_terms("a <= '2019-04' and a = 2019-04 and a < 2019-04", "2019-04 2019-04 2019-04");
}

static void
test_query__what_is_too_large_is_refused(void **state)
{
    (void) state;
    char text[4000] = "";
    for (int i = 0; i < 13; i++)
        strcat(text, i > 0 ? " and (a = 1 or b = 2)" : "(a = 1 or b = 2)");
    esdm__query query = {0};
    esdm__query_terms terms = {0};
    esdm_error err = {0};
    assert_int_equal(esdm__query_parse(text, &query, &err), ESDM_OK);
    assert_int_equal(esdm__query_terms_make(&query, &terms, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "4096 alternatives"));
    assert_null(terms.items);
    esdm__query_clear(&query);
}

static void
test_query__regular_expressions_end(void **state)
{
    (void) state;
    esdm__regex *regex = NULL;
    esdm_error err = {0};
    bool matches = false;
    assert_int_equal(esdm__regex_new("^(EC|IITM)-\\w+$", &regex, &err), ESDM_OK);
    assert_int_equal(esdm__regex_matches(regex, "EC-Earth3", &matches, &err), ESDM_OK);
    assert_true(matches);
    assert_int_equal(esdm__regex_matches(regex, "\xff\xfe", &matches, &err), ESDM_OK);
    assert_false(matches);
    esdm__regex_free(regex);
    assert_int_equal(esdm__regex_new("(a+)+$", &regex, &err), ESDM_OK);
    assert_int_equal(
        esdm__regex_matches(regex, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", &matches, &err),
        ESDM_EINVAL);
    esdm__regex_free(regex);
    assert_int_equal(esdm__regex_new("a[", &regex, &err), ESDM_EINVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query__several_comparisons),
        cmocka_unit_test(test_query__every_operator),
        cmocka_unit_test(test_query__words_and_numbers),
        cmocka_unit_test(test_query__quotes_and_escapes),
        cmocka_unit_test(test_query__quoted_names),
        cmocka_unit_test(test_query__errors_name_the_column),
        cmocka_unit_test(test_query__locale_does_not_matter),
        cmocka_unit_test(test_query__many_conditions),
        cmocka_unit_test(test_query__becomes_alternatives),
        cmocka_unit_test(test_query__what_is_too_large_is_refused),
        cmocka_unit_test(test_query__regular_expressions_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
