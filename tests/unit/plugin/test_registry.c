/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Plug-ins by kind and name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/registry.h"

static void
test_registry__finds_builtin_plugins(void **state)
{
    static const struct {
        esdm_plugin_kind kind;
        const char *name;
    } wanted[] = {{ESDM_PLUGIN_DATA, "posix"},
                  {ESDM_PLUGIN_DATA, "mem"},
                  {ESDM_PLUGIN_META, "sqlite"},
                  {ESDM_PLUGIN_CODEC, "none"},
                  {ESDM_PLUGIN_CODEC, "lz4"}};
    (void) state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const esdm_plugin *plugin = NULL;
        esdm_error err = {0};
        assert_int_equal(esdm__plugin_find(wanted[i].kind, wanted[i].name, &plugin, &err), ESDM_OK);
        assert_int_equal(plugin->kind, wanted[i].kind);
        assert_string_equal(plugin->name, wanted[i].name);
        assert_int_equal(err.status, ESDM_OK);
    }
}

static void
test_registry__codec_ids_are_fixed(void **state)
{
    (void) state;
    assert_string_equal(esdm__plugin_codec_by_id(0)->base.name, "none");
    assert_string_equal(esdm__plugin_codec_by_id(1)->base.name, "lz4");
    assert_null(esdm__plugin_codec_by_id(99));
    assert_string_equal(esdm__plugin_codec_name(6), "zfp");
    assert_string_equal(esdm__plugin_codec_name(7), "fpzip");
    assert_string_equal(esdm__plugin_codec_name(8), "szip");
    assert_null(esdm__plugin_codec_name(5));
    assert_null(esdm__plugin_codec_name(99));
}

static void
test_registry__unknown_name_lists_known_ones(void **state)
{
    (void) state;
    const esdm_plugin *plugin = NULL;
    esdm_error err = {0};
    assert_int_equal(esdm__plugin_find(ESDM_PLUGIN_DATA, "posox", &plugin, &err), ESDM_ENOENT);
    assert_null(plugin);
    assert_non_null(strstr(err.message, "posox"));
    assert_non_null(strstr(err.message, "posix"));
    assert_int_equal(esdm__plugin_find(ESDM_PLUGIN_DATA, "posox", &plugin, NULL), ESDM_ENOENT);
}

static void
test_registry__names_are_no_paths(void **state)
{
    static const char *const names[] = {"", "../x", "a/b", "A", "x.so", "x y"};
    (void) state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const esdm_plugin *plugin = NULL;
        assert_int_equal(esdm__plugin_find(ESDM_PLUGIN_CODEC, names[i], &plugin, NULL),
                         ESDM_ENOENT);
    }
}

static void
test_registry__unknown_kind_is_an_error(void **state)
{
    (void) state;
    const esdm_plugin *plugin = NULL;
    assert_int_equal(esdm__plugin_find((esdm_plugin_kind) 9, "posix", &plugin, NULL), ESDM_EINVAL);
    assert_null(esdm__plugin_at((esdm_plugin_kind) 9, 0));
}

static void
test_registry__at_enumerates_one_kind(void **state)
{
    (void) state;
    size_t count = 0;
    const esdm_plugin *plugin = NULL;
    for (; (plugin = esdm__plugin_at(ESDM_PLUGIN_META, count)) != NULL; count++)
        assert_int_equal(plugin->kind, ESDM_PLUGIN_META);
    assert_true(count >= 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry__finds_builtin_plugins),
        cmocka_unit_test(test_registry__codec_ids_are_fixed),
        cmocka_unit_test(test_registry__unknown_name_lists_known_ones),
        cmocka_unit_test(test_registry__names_are_no_paths),
        cmocka_unit_test(test_registry__unknown_kind_is_an_error),
        cmocka_unit_test(test_registry__at_enumerates_one_kind),
    };
    (void) setenv("ESDM_PLUGIN_PATH", "/nonexistent", 1);
    return cmocka_run_group_tests_name("unit.plugin.registry", tests, NULL, NULL);
}
