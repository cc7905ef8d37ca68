/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Site configurations: where they are found, and which message a wrong one gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "site/parts.h"
#include "site/site.h"

#define TARGETS  "\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"/d\"}]"
#define METADATA "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/m\"}"

static esdm__site *
load(const char *text)
{
    esdm__site *site = NULL;
    esdm_error err = {0};
    if (esdm__site_load(text, NULL, &site, &err) != ESDM_OK)
        fail_msg("%s: %s", text, err.message);
    return site;
}

static void
refuses(const char *text, const char *message)
{
    esdm__site *site = NULL;
    esdm_error err = {0};
    esdm_status status = esdm__site_load(text, NULL, &site, &err);
    if (status != ESDM_EINVAL || err.status != status)
        fail_msg("%s: status %d", text, status);
    if (strstr(err.message, message) == NULL)
        fail_msg("%s\n  gives:   %s\n  without: %s", text, err.message, message);
    assert_null(site);
}

static void
check_directory(const esdm__site_target *target, const char *expected)
{
    json_t *object = json_loads(target->json, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "directory")), expected);
    json_decref(object);
}

/* A folder of its own for each test; `state` holds its path. */
static int
make_folder(void **state)
{
    char *path = strdup("/tmp/esdm-test-site-XXXXXX");
    if (path == NULL || mkdtemp(path) == NULL || chdir(path) != 0)
        return -1;
    *state = path;
    static const char *const unset[] = {"ESDM_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"};
    for (size_t i = 0; i < 3; i++)
        (void) unsetenv(unset[i]);
    return setenv("HOME", path, 1);
}

static int
remove_folder(void **state)
{
    char command[128];
    (void) snprintf(command, sizeof command, "rm -rf '%s'", (const char *) *state);
    int failed = chdir("/") != 0 || system(command) != 0;
    free(*state);
    return failed;
}

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void) fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* ---- values ------------------------------------------------------------------------------- */

static void
test_site__defaults(void **state)
{
    (void) state;
    esdm__site *site = load("{" TARGETS "," METADATA "}");
    assert_string_equal(site->name, "default");
    assert_string_equal(site->source, "(text)");
    assert_false(site->embedded);
    assert_string_equal(site->id, "");
    assert_string_equal(site->stated_id, "");
    assert_int_equal(site->ntargets, 1);
    assert_string_equal(site->targets[0].name, "d");
    assert_string_equal(site->targets[0].plugin, "posix");
    assert_string_equal(site->targets[0].path, "(text): targets[0]");
    check_directory(&site->targets[0], "/d");
    assert_string_equal(site->metadata.name, "metadata");
    assert_string_equal(site->metadata.path, "(text): metadata");
    assert_true(site->engine.threads >= 1);
    assert_int_equal(site->engine.memory_bytes, 256u << 20);
    assert_int_equal(site->engine.fragment_bytes, 4u << 20);
    assert_int_equal(site->engine.pack_bytes, 1u << 30);
    assert_int_equal(site->engine.inline_bytes, 1024);
    assert_string_equal(site->engine.codec, "none");
    assert_null(site->engine.codec_on_request);
    assert_true(site->engine.earlier_runs);
    assert_int_equal(site->durability, ESDM__DURABLE_PROCESS);
    assert_int_equal(site->history, 1);
    assert_int_equal(site->nroutes, 0);
    esdm__site_free(site);
}

static void
test_site__every_key(void **state)
{
    (void) state;
    esdm__site *site = load(
        "{\"$schema\":\"x\",\"site\":{\"name\":\"l\",\"id\":\"0123456789abcdef0123456789abcdef\"},"
        "\"targets\":[{\"name\":\"a\",\"plugin\":\"posix\",\"directory\":\"/a/\"},"
        "{\"name\":\"b\",\"plugin\":\"mem\",\"capacity_bytes\":\"2 MiB\"}],"
        "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/m\"},"
        "\"engine\":{\"threads\":3,\"memory\":\"64 MiB\",\"fragment\":65536,\"pack\":\"1 MiB\","
        "\"inline\":0,\"codec\":\"none+lz4\",\"codec_on_request\":\"none\",\"earlier_runs\":"
        "\"off\"},"
        "\"durability\":\"system\",\"history\":5,\"netcdf\":{\"routes\":[\"/r/\",\"s\"]}}");
    assert_string_equal(site->name, "l");
    assert_string_equal(site->stated_id, "0123456789abcdef0123456789abcdef");
    assert_string_equal(site->id, ""); /* only the store tells */
    assert_int_equal(site->ntargets, 2);
    check_directory(&site->targets[0], "/a");
    assert_non_null(strstr(site->targets[1].json, "\"capacity_bytes\":2097152"));
    assert_int_equal(site->engine.threads, 3);
    assert_int_equal(site->engine.memory_bytes, 64u << 20);
    assert_int_equal(site->engine.fragment_bytes, 65536);
    assert_int_equal(site->engine.pack_bytes, 1u << 20);
    assert_int_equal(site->engine.inline_bytes, 0);
    assert_string_equal(site->engine.codec, "none+lz4");
    assert_string_equal(site->engine.codec_on_request, "none");
    assert_false(site->engine.earlier_runs);
    assert_int_equal(site->durability, ESDM__DURABLE_SYSTEM);
    assert_int_equal(site->history, 5);
    assert_int_equal(site->nroutes, 2);
    assert_string_equal(site->routes[0], "/r");
    esdm_plugin_config config;
    esdm__site_plugin_config(site, &site->targets[1], &config);
    assert_string_equal(config.name, "b");
    assert_ptr_equal(config.site_id, site->id);
    assert_string_equal(config.path, "(text): targets[1]");
    esdm__site_free(site);
}

/* Names that differ may be one place. */
static void
test_site__directories_are_compared_without_links(void **state)
{
    (void) state;
    static const struct {
        const char *target;
        const char *metadata;
        bool good;
    } cases[] = {
        {"real/a", "link/a", false},     {"real/a", "link/a/m", false},
        {"link/a/t", "real/a", false},   {"real/a", "link/../real/a", false},
        {"real/new", "link/new", false}, {"real/new/t/u", "link/new/t", false},
        {"real/a", "link/b", true},      {"real/a", "link/ab", true},
        {"dangling/a", "real/a", true},
    };
    assert_int_equal(mkdir("real", 0700), 0);
    assert_int_equal(mkdir("real/a", 0700), 0);
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        (void) snprintf(text, sizeof text,
                        "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"%s\"}],"
                        "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"%s\"}}",
                        cases[i].target, cases[i].metadata);
        esdm__site *site = NULL;
        esdm_error err = {0};
        esdm_status status = esdm__site_load(text, NULL, &site, &err);
        if (status != (cases[i].good ? ESDM_OK : ESDM_EINVAL))
            fail_msg("%s: %s", text, err.message);
        if (!cases[i].good)
            assert_non_null(strstr(err.message, "of targets[0]"));
        esdm__site_free(site);
    }
}

static void
test_site__wrong_values_name_place_and_remedy(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{", "(text): line 1, column 1: "},
        {"{\n \"targets\": [}\n", "(text): line 2, column 14: "},
        {"[]", "(text): expected an object, found an array"},
        {"{}", "(text): the key \"targets\" is missing"},
        {"{" TARGETS "}", "(text): the key \"metadata\" is missing"},
        {"{\"target\":[]}", "unknown key \"target\"; did you mean \"targets\"?"},
        {"{" TARGETS "," METADATA ",\"ranks\":{\"io\":-1}}", "(text): ranks.io: "},
        {"{" TARGETS "," METADATA ",\"ranks\":{\"io\":2,\"timeout\":0}}",
         "(text): ranks.timeout: "},
        {"{" TARGETS "," METADATA ",\"ranks\":{\"ios\":2}}",
         "(text): ranks: unknown key \"ios\"; did you mean \"io\"?"},
        {"{" TARGETS "," METADATA ",\"ranks\":2}", "(text): ranks: expected an object"},
        {"{\"targets\":[]," METADATA "}", "(text): targets: a site needs 1 ... 256 targets"},
        {"{\"targets\":{}," METADATA "}", "(text): targets: expected an array, found an object"},
        {"{\"targets\":[1]," METADATA "}",
         "(text): targets[0]: expected an object, found a number"},
        {"{\"targets\":[{\"plugin\":\"posix\"}]}", "targets[0]: the key \"name\" is missing"},
        {"{\"targets\":[{\"name\":\"d\"}]}", "targets[0]: the key \"plugin\" is missing"},
        {"{\"targets\":[{\"name\":\"a b\",\"plugin\":\"mem\"}]}", "targets[0].name: a name has"},
        {"{\"targets\":[{\"name\":\"\",\"plugin\":\"mem\"}]}", "targets[0].name: a name has"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"posx\",\"directory\":\"/d\"}]}",
         "(text): targets[0].plugin: "},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\"}]}",
         "targets[0]: the key \"directory\" is missing"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":5}]}",
         "(text): targets[0].directory: expected a string, found a number"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"\"}]}",
         "targets[0].directory: the directory is empty"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"direktory\":\"/d\"}]}",
         "targets[0]: unknown key \"direktory\"; did you mean \"directory\"?"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"mem\"},{\"name\":\"d\",\"plugin\":\"mem\"}]}",
         "targets[1].name: targets[0] is called \"d\" already"},
        {"{\"targets\":[{\"name\":\"d\",\"plugin\":\"mem\",\"capacity_bytes\":\"big\"}]}",
         "targets[0].capacity_bytes: \"big\" is not a size"},
        {"{" TARGETS ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/d\"}}",
         "(text): metadata: \"/d\" is the directory of targets[0] already"},
        {"{" TARGETS ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/x/..//d/.\"}}",
         "(text): metadata: \"/d\" is the directory of targets[0] already"},
        {"{" TARGETS ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/d/e/f\"}}",
         "(text): metadata: the directory \"/d/e/f\" lies inside the one of targets[0], \"/d\""},
        {"{" TARGETS ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"/\"}}",
         "(text): metadata: the directory \"/\" lies around the one of targets[0], \"/d\""},
        {"{" TARGETS ",\"metadata\":{\"plugin\":\"sqlite\",\"name\":\"x\",\"directory\":\"/m\"}}",
         "metadata: unknown key \"name\""},
        {"{" TARGETS "," METADATA ",\"engine\":{\"treads\":1}}",
         "engine: unknown key \"treads\"; did you mean \"threads\"?"},
        {"{" TARGETS "," METADATA ",\"engine\":{\"threads\":-1}}",
         "engine.threads: -1 is outside 0 ... 1024"},
        {"{" TARGETS "," METADATA ",\"engine\":{\"memory\":1000}}",
         "engine.memory: 1000 is outside 1048576 ..."},
        {"{" TARGETS "," METADATA ",\"engine\":{\"writes\":\"later\"}}", "engine.writes: "},
        {"{" TARGETS "," METADATA ",\"engine\":{\"memory\":\"1 MiB\"}}",
         "engine: \"fragment\" is larger than \"memory\""},
        {"{" TARGETS "," METADATA ",\"engine\":{\"codec\":\"none+\"}}",
         "engine.codec: expected codec names joined by '+'"},
        {"{" TARGETS "," METADATA ",\"engine\":{\"codec\":\"zap\"}}", "(text): engine.codec: "},
        {"{" TARGETS "," METADATA ",\"durability\":\"disk\"}",
         "durability: unknown value \"disk\", choose one of: process, system"},
        {"{" TARGETS "," METADATA ",\"history\":0}", "history: 0 is outside 1 ... 4294967295"},
        {"{" TARGETS "," METADATA ",\"history\":1.5}",
         "history: expected a whole number, found 1.5"},
        {"{" TARGETS "," METADATA ",\"netcdf\":{\"routes\":\"/r\"}}",
         "netcdf.routes: expected an array, found a string"},
        {"{" TARGETS "," METADATA ",\"netcdf\":{\"routes\":[\"/r\",null]}}",
         "netcdf.routes[1]: expected a string, found null"},
        {"{" TARGETS "," METADATA ",\"site\":{\"id\":\"12\"}}", "site.id: an id has 32 digits"},
        {"{" TARGETS "," METADATA ",\"site\":{\"name\":true}}",
         "site.name: expected a string, found a boolean"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuses(cases[i].text, cases[i].message);
}

/* ---- directories -------------------------------------------------------------------------- */

static void
target_directory_is(const char *written, const char *expected)
{
    char text[512];
    (void) snprintf(
        text, sizeof text,
        "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"%s\"}]," METADATA "}",
        written);
    esdm__site *site = load(text);
    check_directory(&site->targets[0], expected);
    esdm__site_free(site);
}

static void
test_directory__home_and_variables(void **state)
{
    (void) state;
    (void) setenv("HOME", "/home/x", 1);
    (void) setenv("ESDM_TEST_A", "alpha", 1);
    (void) unsetenv("ESDM_TEST_B");
    target_directory_is("~", "/home/x");
    target_directory_is("~/a", "/home/x/a");
    target_directory_is("/a~b", "/a~b");
    target_directory_is("/s/$ESDM_TEST_A/x", "/s/alpha/x");
    target_directory_is("/s/${ESDM_TEST_A}s", "/s/alphas");
    target_directory_is("/s/$$x", "/s/$x");
    target_directory_is("/s/t//", "/s/t");
    target_directory_is("/t", "/t");
#define DIRECTORY(d) "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"" d "\"}]}"
    refuses(DIRECTORY("/$ESDM_TEST_B"),
            "targets[0].directory: the environment variable ESDM_TEST_B is not set");
    refuses(DIRECTORY("/a$"), "write \"$NAME\" or \"${NAME}\"");
    refuses(DIRECTORY("/${A"), "write \"$NAME\" or \"${NAME}\"");
    refuses(DIRECTORY("~user/x"), "\"~user\" is not supported");
    (void) setenv("ESDM_TEST_B", "\xff", 1);
    refuses(DIRECTORY("/$ESDM_TEST_B"), "the path is not valid UTF-8");
    (void) unsetenv("HOME");
    refuses(DIRECTORY("~/x"), "\"~\" needs HOME, which is not set");
}

static void
test_directory__relative_to_the_file(void **state)
{
    char expected[256];
    (void) mkdir("conf", 0700);
    write_file(
        "conf/site.json",
        "{\"targets\":[{\"name\":\"d\",\"plugin\":\"posix\",\"directory\":\"packs\"}]," METADATA
        "}");
    esdm__site *site = NULL;
    assert_int_equal(esdm__site_load(NULL, "conf/site.json", &site, NULL), ESDM_OK);
    (void) snprintf(expected, sizeof expected, "%s/conf/packs", (const char *) *state);
    check_directory(&site->targets[0], expected);
    assert_string_equal(site->source, "conf/site.json");
    esdm__site_free(site);

    char absolute[256];
    (void) snprintf(absolute, sizeof absolute, "%s/conf/site.json", (const char *) *state);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(esdm__site_load(NULL, absolute, &site, NULL), ESDM_OK);
    check_directory(&site->targets[0], expected);
    esdm__site_free(site);
}

/* ---- finding ------------------------------------------------------------------------------ */

static void
finds(const char *expected)
{
    char *path = NULL;
    esdm_error err = {0};
    if (esdm_site_find(&path, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    if (expected == NULL) {
        /* A machine may have a configuration of its own in /etc. */
        if (path != NULL)
            assert_string_equal(path, "/etc/esdm/site.json");
    } else {
        assert_non_null(path);
        assert_string_equal(path, expected);
    }
    free(path);
}

static void
test_find__order_of_places(void **state)
{
    const char *folder = *state;
    char path[256];
    finds(NULL);
    (void) mkdir(".config", 0700);
    (void) mkdir(".config/esdm", 0700);
    write_file(".config/esdm/site.json", "{}");
    (void) snprintf(path, sizeof path, "%s/.config/esdm/site.json", folder);
    finds(path);

    (void) mkdir("xdg", 0700);
    (void) mkdir("xdg/esdm", 0700);
    write_file("xdg/esdm/site.json", "{}");
    (void) snprintf(path, sizeof path, "%s/xdg", folder);
    (void) setenv("XDG_CONFIG_HOME", path, 1);
    (void) snprintf(path, sizeof path, "%s/xdg/esdm/site.json", folder);
    finds(path);
    (void) setenv("XDG_CONFIG_HOME", "xdg", 1); /* not absolute: does not count */
    (void) snprintf(path, sizeof path, "%s/.config/esdm/site.json", folder);
    finds(path);

    write_file("esdm.json", "{}");
    finds("./esdm.json");
    write_file("named.json", "{}");
    (void) setenv("ESDM_CONFIG", "named.json", 1);
    finds("named.json");
    (void) setenv("ESDM_CONFIG", "", 1);
    finds("./esdm.json");
}

static void
test_find__named_file_must_be_there(void **state)
{
    (void) state;
    (void) setenv("ESDM_CONFIG", "absent.json", 1);
    char *path = NULL;
    esdm_error err = {0};
    assert_int_equal(esdm_site_find(&path, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "ESDM_CONFIG"));
    assert_non_null(strstr(err.message, "absent.json"));
    assert_null(path);
    esdm__site *site = NULL;
    assert_int_equal(esdm__site_load(NULL, NULL, &site, &err), ESDM_ENOENT);
    assert_null(site);
}

static void
test_find__file_in_the_current_folder_is_loaded(void **state)
{
    (void) state;
    write_file("esdm.json", "{" TARGETS "," METADATA ",\"engin\":{}}");
    esdm__site *site = NULL;
    esdm_error err = {0};
    assert_int_equal(esdm__site_load(NULL, NULL, &site, &err), ESDM_EINVAL);
    assert_string_equal(err.message,
                        "./esdm.json: unknown key \"engin\"; did you mean \"engine\"?");
    assert_int_equal(esdm_site_validate(NULL, &err), ESDM_EINVAL);
    const esdm_site_options options = {.config_json = "{" TARGETS "," METADATA "}"};
    assert_int_equal(esdm_site_validate(&options, &err), ESDM_OK);
}

/* ---- the embedded default ----------------------------------------------------------------- */

static void
embedded_is_in(const char *base)
{
    esdm__site *site = NULL;
    esdm_error err = {0};
    if (esdm__site_load(NULL, NULL, &site, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    if (access("/etc/esdm/site.json", F_OK) != 0) {
        char expected[256];
        assert_true(site->embedded);
        assert_string_equal(site->source, "(embedded default)");
        (void) snprintf(expected, sizeof expected, "%s/data", base);
        check_directory(&site->targets[0], expected);
        (void) snprintf(expected, sizeof expected, "%s/meta", base);
        check_directory(&site->metadata, expected);
    }
    esdm__site_free(site);
}

static void
test_embedded__lies_in_the_data_folder(void **state)
{
    char base[256];
    (void) snprintf(base, sizeof base, "%s/.local/share/esdm", (const char *) *state);
    embedded_is_in(base);
    assert_int_not_equal(access(base, F_OK), 0);   /* loading makes nothing */
    (void) setenv("XDG_DATA_HOME", "/x/$HOME", 1); /* taken literally */
    embedded_is_in("/x/$HOME/esdm");
}

static void
test_secret__of_a_connection_is_known(void **state)
{
    static const struct {
        const char *connection;
        bool secret;
    } cases[] = {
        {"postgresql://me:pw@host/d", true},
        {"postgres://host/d?user=me&password=pw", true},
        {"host=h password=pw", true},
        {"postgresql://me@host/d", false},
        {"postgresql://host:5432/d?application_name=a:b@c", false},
        {"host=h user=me", false},
    };
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = json_pack("{s:{s:s, s:s}}", "metadata", "plugin", "postgres", "connection",
                                 cases[i].connection);
        if (esdm__site_holds_secret(root) != cases[i].secret)
            fail_msg("%s", cases[i].connection);
        json_decref(root);
    }
}

static void
test_embedded__needs_a_home(void **state)
{
    (void) state;
    (void) unsetenv("HOME");
    esdm__site *site = NULL;
    esdm_error err = {0};
    if (access("/etc/esdm/site.json", F_OK) == 0)
        skip();
    assert_int_equal(esdm__site_load(NULL, NULL, &site, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "set HOME or XDG_DATA_HOME"));
    assert_null(site);
}

int
main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_site__defaults),
        IN_FOLDER(test_site__every_key),
        IN_FOLDER(test_site__directories_are_compared_without_links),
        IN_FOLDER(test_site__wrong_values_name_place_and_remedy),
        IN_FOLDER(test_directory__home_and_variables),
        IN_FOLDER(test_directory__relative_to_the_file),
        IN_FOLDER(test_find__order_of_places),
        IN_FOLDER(test_find__named_file_must_be_there),
        IN_FOLDER(test_find__file_in_the_current_folder_is_loaded),
        IN_FOLDER(test_embedded__lies_in_the_data_folder),
        IN_FOLDER(test_embedded__needs_a_home),
        IN_FOLDER(test_secret__of_a_connection_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
