/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Templates of views: components of paths from values and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/names.h"
#include "query/view.h"

static char *
component(const char *value)
{
    esdm__buffer text;
    size_t bytes = 0;
    esdm__buffer_init(&text);
    esdm__view_component(value, &text);
    assert_false(text.failed);
    return (char *) esdm__buffer_steal(&text, &bytes);
}

static void
is_written(const char *value, const char *expected)
{
    char *got = component(value);
    char *back = NULL;
    assert_string_equal(got, expected);
    assert_true(esdm__view_value(got, &back));
    if (value == NULL)
        assert_null(back);
    else
        assert_string_equal(back, value);
    free(back);
    free(got);
}

static void
test_component__hostile_values_are_escaped_and_come_back(void **state)
{
    (void) state;
    is_written("MPI-ESM1-2-LR", "MPI-ESM1-2-LR");
    is_written("ScenarioMIP DAMIP", "ScenarioMIP DAMIP");
    is_written(NULL, "_missing_");
    is_written("", "_empty_");
    is_written("_missing_", "%5Fmissing_");
    is_written("_empty_", "%5Fempty_");
    is_written(".", "%2E");
    is_written("..", "%2E.");
    is_written("...", "...");
    is_written("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd");
    is_written("a%2Fb", "a%252Fb");
    is_written("run@7?digest#x", "run%407%3Fdigest%23x");
    is_written(" a ", "%20a%20");
    is_written("a\nb\t\x01\x7f", "a%0Ab%09%01%7F");
    is_written("\xc3\xa4", "\xc3\xa4");
    is_written("\xff\xc3(", "%FF%C3(");
    is_written("\xc2\x85", "%C2%85");
    is_written("C:\\x", "C:%5Cx");
}

static void
test_component__long_values_are_cut_and_stay_apart(void **state)
{
    (void) state;
    char a[4001], b[4001];
    memset(a, '/', sizeof a - 1);
    memset(b, '/', sizeof b - 1);
    a[4000] = b[4000] = '\0';
    b[3999] = 'x';
    char *x = component(a), *y = component(b);
    char *value = NULL;
    assert_true(strlen(x) <= ESDM__VIEW_COMPONENT_MOST && strlen(y) <= ESDM__VIEW_COMPONENT_MOST);
    assert_string_not_equal(x, y);
    assert_false(esdm__view_value(x, &value));
    assert_null(value);
    free(x);
    free(y);
    for (size_t i = 0; i + 1 < sizeof a; i += 2)
        memcpy(a + i, "\xc3\xa4", 2);
    for (size_t from = 0; from < 2; from++) { /* also where a character begins at odd bytes */
        memcpy(b, a, sizeof a);
        b[0] = from == 0 ? b[0] : 'x';
        if (from == 1)
            memcpy(b + 1, a, sizeof a - 2);
        b[3999] = '\0';
        if (from == 0)
            b[3998] = '\0';
        x = component(b);
        assert_true(esdm__utf8_is_valid(x, strlen(x)));
        free(x);
    }
}

static void
test_component__every_byte_pair_comes_back(void **state)
{
    (void) state;
    for (unsigned i = 1; i < 256; i++) {
        for (unsigned j = 0; j < 256; j++) {
            char value[3] = {(char) i, (char) j, '\0'};
            char *back = NULL, *got = component(value);
            assert_null(strchr(got, '/'));
            assert_true(esdm__utf8_is_valid(got, strlen(got)));
            assert_true(esdm__view_value(got, &back));
            assert_string_equal(back, value);
            free(back);
            free(got);
        }
    }
}

static void
test_value__wrong_escapes_are_refused(void **state)
{
    (void) state;
    static const char *const wrong[] = {"%", "%2", "%zz", "%00", "a%~0123", "%~"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *value = NULL;
        assert_false(esdm__view_value(wrong[i], &value));
        assert_null(value);
    }
}

static esdm__site *
load(const char *views)
{
    char text[1024];
    esdm__site *site = NULL;
    esdm_error err = {0};
    (void) snprintf(text, sizeof text,
                    "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"/d\"}],"
                    "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/m\"}%s}",
                    views);
    if (esdm__site_load(text, NULL, &site, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return site;
}

static void
is_refused(const char *views, const char *why)
{
    char text[1024];
    esdm__site *site = NULL;
    esdm_error err = {0};
    (void) snprintf(text, sizeof text,
                    "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"/d\"}],"
                    "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/m\"},\"views\":%s}",
                    views);
    assert_int_equal(esdm__site_load(text, NULL, &site, &err), ESDM_EINVAL);
    assert_null(site);
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' is not in: %s", why, err.message);
}

static void
test_views__templates_are_checked(void **state)
{
    (void) state;
    is_refused("{\"a\":\"x\"}", "views.a: 'x': a level is {ATTRIBUTE}");
    is_refused("{\"a\":\"{x\"}", "a '}' is missing");
    is_refused("{\"a\":\"{}\"}", "an attribute of a level");
    is_refused("{\"a\":\"{x=}\"}", "a value is missing");
    is_refused("{\"a\":\"{x}{y}\"}", "levels are parted by '/'");
    is_refused("{\"a\":\"{x}/\"}", "a level is {ATTRIBUTE}");
    is_refused("{\"a\":\"{x}/{x}\"}", "stands twice");
    is_refused("{\"a b\":\"{x}\"}", "a view's name");
    is_refused("{\"a\":true}", "expected a string");
    is_refused("[]", "views");
}

static void
test_views__built_in_ones_can_be_replaced_and_switched_off(void **state)
{
    (void) state;
    esdm__site *site = load("");
    assert_int_equal(site->nviews, 3);
    assert_string_equal(site->views[0].name, "cmip6");
    assert_int_equal(site->views[0].nlevels, 9);
    assert_string_equal(site->views[0].levels[0].attribute, "mip_era");
    assert_string_equal(site->views[0].levels[0].value, "CMIP6");
    assert_string_equal(site->views[0].levels[8].attribute, "grid_label");
    esdm__site_free(site);
    site = load(",\"views\":{\"cmip6\":false,\"cordex\":\"{a}\",\"b\":\"{c}/{d=e f}\"}");
    assert_int_equal(site->nviews, 3);
    assert_string_equal(site->views[0].name, "b");
    assert_string_equal(site->views[0].levels[1].value, "e f");
    assert_string_equal(site->views[1].name, "cmip7");
    assert_string_equal(site->views[2].text, "{a}");
    assert_false(esdm__view_is_said(site, "cmip6:/x"));
    esdm__site_free(site);
}

static void
test_path__components_get_the_one_form(void **state)
{
    (void) state;
    esdm__site *site = load("");
    esdm__view_path path;
    esdm_error err = {0};
    assert_true(esdm__view_is_said(site, "cmip6:"));
    assert_true(esdm__view_is_said(site, "esdm://cmip6:/x"));
    assert_true(esdm__view_is_said(site, "esdm:///cmip6:/x"));
    assert_false(esdm__view_is_said(site, "cmip6"));
    assert_false(esdm__view_is_said(site, "cmip6:x"));
    assert_false(esdm__view_is_said(site, "a/cmip6:/x"));
    assert_false(esdm__view_is_said(site, ""));
    assert_int_equal(
        esdm__view_path_parse(site, "esdm://cmip6://CMIP6/%41%2f/_missing_/a%~1/", &path, &err),
        ESDM_OK);
    assert_int_equal(path.depth, 4);
    assert_string_equal(path.components[0], "CMIP6");
    assert_string_equal(path.components[1], "A%2F");
    assert_string_equal(path.components[2], "_missing_");
    assert_string_equal(path.components[3], "a%~1");
    esdm__view_path_clear(&path);
    assert_int_equal(esdm__view_path_parse(site, "cmip6:", &path, &err), ESDM_OK);
    assert_int_equal(path.depth, 0);
    esdm__view_path_clear(&path);
    assert_int_equal(esdm__view_path_parse(site, "cmip6:/1/2/3/4/5/6/7/8/9/10", &path, &err),
                     ESDM_ENOENT);
    assert_non_null(strstr(err.message, "more levels than the 9"));
    assert_int_equal(esdm__view_path_parse(site, "nix:/1", &path, &err), ESDM_ENOENT);
    esdm__site_free(site);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_component__hostile_values_are_escaped_and_come_back),
        cmocka_unit_test(test_component__long_values_are_cut_and_stay_apart),
        cmocka_unit_test(test_component__every_byte_pair_comes_back),
        cmocka_unit_test(test_value__wrong_escapes_are_refused),
        cmocka_unit_test(test_views__templates_are_checked),
        cmocka_unit_test(test_views__built_in_ones_can_be_replaced_and_switched_off),
        cmocka_unit_test(test_path__components_get_the_one_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
