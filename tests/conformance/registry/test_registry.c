/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The registry with shared objects, good and wrong ones. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/places.h"

static void
refused(const char *name, const char *text)
{
    static const esdm_plugin untouched;
    const esdm_plugin *plugin = &untouched;
    assert_status(esdm__plugin_find(ESDM_PLUGIN_CODEC, name, &plugin, &place_error), ESDM_ENOTSUP);
    assert_ptr_equal(plugin, &untouched);
    if (strstr(place_error.message, text) == NULL)
        fail_msg("'%s' does not say '%s'", place_error.message, text);
}

static void
test_registry__refuses_wrong_plugins(void **state)
{
    (void) state;
    refused("wrong_abi", "install the ESDM that it is for");
    refused("wrong_old", "rebuild");
    refused("wrong_bytes", "sizeof(esdm_codec_plugin)");
    refused("wrong_short", "lacks the function 'decode'");
    refused("wrong_kind", "kind");
    refused("wrong_name", "calls itself 'something_else'");
    refused("wrong_function", "lacks the function 'decode'");
    refused("wrong_entry", "does not export");
    refused("wrong_null", "returns nothing");
    assert_null(esdm__plugin_codec_by_id(250));
}

static void
test_registry__takes_a_table_of_an_older_interface(void **state)
{
    (void) state;
    const esdm_plugin *plugin = NULL;
    assert_ok(esdm__plugin_find(ESDM_PLUGIN_CODEC, "right_short", &plugin, &place_error));
    const esdm_codec_plugin *codec = (const esdm_codec_plugin *) plugin;
    assert_int_equal(codec->id, 251);
    assert_int_equal(codec->flags, 0); /* not what lies behind its table */
    assert_int_equal(codec->bound(7), 7);
    assert_ptr_equal(esdm__plugin_codec_by_id(251), codec);
}

static void *
find_template(void *user)
{
    static const esdm_plugin_kind kinds[] = {ESDM_PLUGIN_DATA, ESDM_PLUGIN_META, ESDM_PLUGIN_CODEC};
    const esdm_plugin **ret_plugins = user;
    for (size_t i = 0; i < 3; i++) {
        if (esdm__plugin_find(kinds[i], "template", &ret_plugins[i], NULL) != ESDM_OK)
            ret_plugins[i] = NULL;
    }
    return NULL;
}

static void
test_registry__loads_once_for_many_threads(void **state)
{
    (void) state;
    pthread_t threads[8];
    const esdm_plugin *plugins[8][3] = {{NULL}};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_template, plugins[i]), 0);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < 8; i++) {
        for (size_t k = 0; k < 3; k++) {
            assert_non_null(plugins[i][k]);
            assert_ptr_equal(plugins[i][k], plugins[0][k]);
            assert_string_equal(plugins[i][k]->name, "template");
        }
    }
    size_t seen = 0;
    const esdm_plugin *plugin = NULL;
    for (size_t i = 0; (plugin = esdm__plugin_at(ESDM_PLUGIN_CODEC, i)) != NULL; i++)
        seen += strcmp(plugin->name, "template") == 0;
    assert_int_equal(seen, 1);
}

/* Runs before anything has loaded the codec by name. */
static void
test_registry__loads_a_codec_by_id(void **state)
{
    (void) state;
    const esdm_codec_plugin *codec = esdm__plugin_codec_by_id(200);
    assert_non_null(codec);
    assert_string_equal(codec->base.name, "template");
}

static void
test_registry__templates_refuse_everything(void **state)
{
    (void) state;
    const esdm_plugin *plugin = NULL;
    esdm_plugin_config config = {.name = "t", .json = "{}", .path = "p", .site_id = PLACE_SITE};
    void *handle = NULL;
    assert_ok(esdm__plugin_find(ESDM_PLUGIN_DATA, "template", &plugin, &place_error));
    const esdm_data_plugin *data = (const esdm_data_plugin *) plugin;
    assert_status(data->make(&config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
    assert_status(data->open(&config, &handle, &place_error), ESDM_ENOTSUP);
    assert_null(handle);
    assert_ok(esdm__plugin_find(ESDM_PLUGIN_META, "template", &plugin, &place_error));
    const esdm_meta_plugin *meta = (const esdm_meta_plugin *) plugin;
    assert_status(meta->make(&config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
    assert_status(meta->open(&config, false, &handle, &place_error), ESDM_ENOTSUP);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry__loads_a_codec_by_id),
        cmocka_unit_test(test_registry__loads_once_for_many_threads),
        cmocka_unit_test(test_registry__refuses_wrong_plugins),
        cmocka_unit_test(test_registry__takes_a_table_of_an_older_interface),
        cmocka_unit_test(test_registry__templates_refuse_everything),
    };
    return cmocka_run_group_tests_name("conformance.registry", tests, NULL, NULL);
}
