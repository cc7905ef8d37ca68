/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* JSON with paths of what is wrong and the nearest key; texts of sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

static json_t *
parse(const char *text)
{
    json_t *value = NULL;
    esdm_error err = {0};
    if (esdm__json_parse(text, strlen(text), "f.json", &value, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return value;
}

/* ---- documents ---------------------------------------------------------------------------- */

static void
test_json__syntax_error_hints_at_the_usual_causes(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *hint;
    } cases[] = {
        {"{\"a\": [1, 2 ,\n ]}", "; take away the comma before it"},
        {"{\"a\": 1,}", "; take away the comma before it"},
        {"{ // all\n}", "; JSON has no comments"},
        {"{\"a\": /* x */ 1}", "; JSON has no comments"},
        {"{\"a\": 1 # x\n}", "; JSON has no comments"},
        {"{'a': 1}", "; texts stand in double quotes"},
        {"\xef\xbb\xbf{}", "byte order mark (BOM)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *value = NULL;
        esdm_error err = {0};
        assert_int_equal(
            esdm__json_parse(cases[i].text, strlen(cases[i].text), "f.json", &value, &err),
            ESDM_EINVAL);
        if (strstr(err.message, cases[i].hint) == NULL)
            fail_msg("%s: %s", cases[i].text, err.message);
    }
    static const char *const others[] = {"{\"a\": ]", "{\"a\"", "", "]", "{\"a\": tru}"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        json_t *value = NULL;
        esdm_error err = {0};
        assert_int_equal(esdm__json_parse(others[i], strlen(others[i]), "f.json", &value, &err),
                         ESDM_EINVAL);
        assert_null(strchr(err.message, ';'));
    }
}

static void
test_json__syntax_error_names_line_and_column(void **state)
{
    (void) state;
    json_t *value = NULL;
    esdm_error err = {0};
    const char text[] = "{\n  \"a\": 1,\n  \"b\" 2\n}";
    assert_int_equal(esdm__json_parse(text, strlen(text), "f.json", &value, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "f.json: line 3, column 7: "));
    assert_null(value);
}

static void
test_json__duplicate_key_is_refused(void **state)
{
    (void) state;
    json_t *value = NULL;
    esdm_error err = {0};
    const char text[] = "{\"a\": 1, \"a\": 2}";
    assert_int_equal(esdm__json_parse(text, strlen(text), "f.json", &value, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "duplicate"));
    assert_null(value);
}

static void
test_json__oversized_text_is_refused(void **state)
{
    (void) state;
    json_t *value = NULL;
    esdm_error err = {0};
    assert_int_equal(esdm__json_parse("", ESDM__JSON_MAX_BYTES + 1, "f.json", &value, &err),
                     ESDM_EINVAL);
    assert_null(value);
}

/* What programs wrote, with the checks of what people wrote. */
static void
test_json__what_is_read_has_the_same_limits(void **state)
{
    (void) state;
    static const char *const refused[] = {"", "1", "{\"a\": 1", "{\"a\": 1, \"a\": 2}", "{} x"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_null(esdm__json_read(refused[i]));
    assert_null(esdm__json_read(NULL));
    assert_null(esdm__json_read_any("{\"a\": 1, \"a\": 2}"));
    json_t *value = esdm__json_read("{\"a\": [1, 2]}");
    assert_int_equal(json_array_size(json_object_get(value, "a")), 2);
    json_decref(value);
    value = esdm__json_read_any("\"word\"");
    assert_string_equal(json_string_value(value), "word");
    json_decref(value);

    const size_t most = ESDM__JSON_MAX_BYTES;
    char *text = malloc(most + 2);
    esdm_error err = {0};
    assert_non_null(text);
    memset(text, '[', most + 1);
    text[100000] = '\0'; /* nested too deep */
    value = NULL;
    assert_null(esdm__json_read(text));
    assert_int_equal(esdm__json_parse(text, 100000, "f.json", &value, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "depth"));
    memset(text, ' ', most + 1);
    memcpy(text, "[1]", 3);
    text[most] = '\0'; /* as long as it may be, and longer */
    value = esdm__json_read(text);
    assert_int_equal(json_array_size(value), 1);
    json_decref(value);
    text[most] = ' ';
    text[most + 1] = '\0';
    assert_null(esdm__json_read(text));
    free(text);
}

static void
test_json__missing_file_and_folder_are_named(void **state)
{
    (void) state;
    json_t *value = NULL;
    esdm_error err = {0};
    assert_int_equal(esdm__json_load("/nonexistent/f.json", &value, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "/nonexistent/f.json"));
    assert_int_equal(esdm__json_load("/", &value, &err), ESDM_EIO);
    assert_null(value);
}

static void
test_json__file_loads(void **state)
{
    (void) state;
    char path[] = "/tmp/esdm-test-json-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    /* Longer than one read step. */
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    (void) fprintf(file, "{\"text\": \"");
    for (int i = 0; i < 40000; i++)
        (void) fputc('x', file);
    (void) fprintf(file, "\"}");
    assert_int_equal(fclose(file), 0);
    json_t *value = NULL;
    assert_int_equal(esdm__json_load(path, &value, NULL), ESDM_OK);
    assert_int_equal(json_string_length(json_object_get(value, "text")), 40000);
    json_decref(value);
    (void) unlink(path);
}

/* ---- nodes -------------------------------------------------------------------------------- */

static void
test_json__wrong_type_names_the_path(void **state)
{
    (void) state;
    json_t *value = parse("{\"targets\": [{\"directory\": 7}]}");
    esdm__json_node root = esdm__json_root(value, "f.json"), list, member;
    assert_true(esdm__json_member(&root, "targets", &list));
    assert_int_equal(esdm__json_is_array(&list, NULL), ESDM_OK);
    esdm__json_node first = esdm__json_element(&list, 0);
    assert_true(esdm__json_member(&first, "directory", &member));
    const char *text = "untouched";
    esdm_error err = {0};
    assert_int_equal(esdm__json_string(&member, &text, &err), ESDM_EINVAL);
    assert_string_equal(err.message,
                        "f.json: targets[0].directory: expected a string, found a number");
    assert_string_equal(text, "untouched");
    assert_int_equal(esdm__json_is_object(&list, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "f.json: targets: expected an object, found an array");
    json_decref(value);
}

static void
test_json__missing_key_names_its_object(void **state)
{
    (void) state;
    json_t *value = parse("{\"a\": {}}");
    esdm__json_node root = esdm__json_root(value, "f.json"), a, b = {0};
    esdm_error err = {0};
    assert_int_equal(esdm__json_require(&root, "a", &a, &err), ESDM_OK);
    assert_int_equal(esdm__json_require(&a, "b", &b, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "f.json: a: the key \"b\" is missing");
    assert_null(b.value);
    json_decref(value);
}

static void
test_json__long_paths_are_cut(void **state)
{
    (void) state;
    json_t *value = parse("{\"abcdefgh\": [1]}");
    esdm__json_node root = esdm__json_root(value, "f.json"), list;
    assert_true(esdm__json_member(&root, "abcdefgh", &list));
    esdm__json_node first = esdm__json_element(&list, 0);
    char path[8];
    esdm__json_path(&first, path, sizeof path);
    assert_string_equal(path, "abcdefg");
    esdm__json_path(&root, path, sizeof path);
    assert_string_equal(path, "");
    json_decref(value);
}

static void
test_json__unknown_key_names_the_nearest(void **state)
{
    (void) state;
    static const char *const keys[] = {"threads", "memory", "source", "source_id", NULL};
    struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{\"treads\": 1}", "unknown key \"treads\"; did you mean \"threads\"?"},
        {"{\"mem\": 1}", "unknown key \"mem\"; did you mean \"memory\"?"},
        {"{\"threads_per_core\": 1}",
         "unknown key \"threads_per_core\"; did you mean \"threads\"?"},
        {"{\"Memory\": 1}", "unknown key \"Memory\"; did you mean \"memory\"?"},
        {"{\"sourceid\": 1}", "unknown key \"sourceid\"; did you mean \"source_id\"?"},
        {"{\"zzz\": 1}", "unknown key \"zzz\"; known keys: threads, memory, source, source_id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *value = parse(cases[i].text);
        esdm__json_node root = esdm__json_root(value, "f.json");
        esdm_error err = {0};
        assert_int_equal(esdm__json_known_keys(&root, keys, &err), ESDM_EINVAL);
        assert_non_null(strstr(err.message, cases[i].message));
        json_decref(value);
    }
}

static void
test_json__known_keys_pass(void **state)
{
    (void) state;
    static const char *const keys[] = {"threads", "memory", NULL};
    json_t *value = parse("{\"memory\": 1, \"threads\": 2}");
    esdm__json_node root = esdm__json_root(value, "f.json");
    assert_int_equal(esdm__json_known_keys(&root, keys, NULL), ESDM_OK);
    json_decref(value);
}

static void
test_json__whole_numbers_are_bounded(void **state)
{
    (void) state;
    json_t *value = parse("[5, -1, 11, 1.5, \"5\", 9223372036854775807]");
    esdm__json_node root = esdm__json_root(value, "f.json");
    uint64_t number = 77;
    esdm_error err = {0};
    const esdm_status expected[] = {ESDM_OK,     ESDM_EINVAL, ESDM_EINVAL,
                                    ESDM_EINVAL, ESDM_EINVAL, ESDM_EINVAL};
    for (size_t i = 6; i-- > 0;) {
        esdm__json_node node = esdm__json_element(&root, i);
        assert_int_equal(esdm__json_u64(&node, 1, 10, &number, &err), expected[i]);
        assert_int_equal(number, i == 0 ? 5 : 77);
    }
    assert_string_equal(err.message, "f.json: [1]: -1 is outside 1 ... 10");
    json_decref(value);
}

static void
test_json__choice_lists_the_choices(void **state)
{
    (void) state;
    static const char *const choices[] = {"process", "system", NULL};
    json_t *value = parse("[\"system\", \"none\"]");
    esdm__json_node root = esdm__json_root(value, "f.json");
    esdm__json_node first = esdm__json_element(&root, 0), second = esdm__json_element(&root, 1);
    size_t choice = 9;
    esdm_error err = {0};
    assert_int_equal(esdm__json_choice(&second, choices, &choice, &err), ESDM_EINVAL);
    assert_string_equal(err.message,
                        "f.json: [1]: unknown value \"none\", choose one of: process, system");
    assert_int_equal(choice, 9);
    assert_int_equal(esdm__json_choice(&first, choices, &choice, &err), ESDM_OK);
    assert_int_equal(choice, 1);
    json_decref(value);
}

/* ---- sizes -------------------------------------------------------------------------------- */

static void
test_size__texts_with_units(void **state)
{
    (void) state;
    const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"256 MiB", 256u << 20},
        {"256MiB", 256u << 20},
        {" 1 kib ", 1024},
        {"1.5 GB", 1500000000},
        {"1.5K", 1536},
        {"1 kB", 1000},
        {"2 T", UINT64_C(2) << 40},
        {"3 PiB", UINT64_C(3) << 50},
        {"7 B", 7},
        {"0.5 KiB", 512},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 1;
        if (!esdm__size_parse(cases[i].text, &bytes) || bytes != cases[i].bytes)
            fail_msg("'%s' gives %lu", cases[i].text, (unsigned long) bytes);
    }
}

static void
test_size__other_texts_are_refused(void **state)
{
    (void) state;
    static const char *const texts[] = {"",
                                        " ",
                                        "MiB",
                                        "-1",
                                        "1 XB",
                                        "1 MiBx",
                                        "1 2",
                                        "1 MBB",
                                        "1 KiBit",
                                        "99999999999999999999",
                                        "99999999 PiB",
                                        ".5",
                                        "1e6",
                                        "1 iB",
                                        "0x10"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t bytes = 4711;
        if (esdm__size_parse(texts[i], &bytes))
            fail_msg("'%s' was taken for a size", texts[i]);
        assert_int_equal(bytes, 4711);
    }
}

static void
test_size__json_takes_numbers_and_texts(void **state)
{
    (void) state;
    json_t *value = parse("[4096, \"4 KiB\", \"4 Kilo\", true, \"1 GiB\"]");
    esdm__json_node root = esdm__json_root(value, "f.json");
    uint64_t bytes = 1;
    esdm_error err = {0};
    for (size_t i = 0; i < 2; i++) {
        esdm__json_node node = esdm__json_element(&root, i);
        bytes = 1;
        assert_int_equal(esdm__json_size(&node, 0, 1u << 20, &bytes, &err), ESDM_OK);
        assert_int_equal(bytes, 4096);
    }
    esdm__json_node node = esdm__json_element(&root, 2);
    assert_int_equal(esdm__json_size(&node, 0, 1u << 20, &bytes, &err), ESDM_EINVAL);
    assert_string_equal(err.message,
                        "f.json: [2]: \"4 Kilo\" is not a size; write bytes or \"4 MiB\"");
    node = esdm__json_element(&root, 3);
    assert_int_equal(esdm__json_size(&node, 0, 1u << 20, &bytes, &err), ESDM_EINVAL);
    node = esdm__json_element(&root, 4);
    assert_int_equal(esdm__json_size(&node, 0, 1u << 20, &bytes, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "\"1 GiB\" is outside 0 ... 1048576 bytes"));
    assert_int_equal(bytes, 4096);
    json_decref(value);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json__syntax_error_names_line_and_column),
        cmocka_unit_test(test_json__syntax_error_hints_at_the_usual_causes),
        cmocka_unit_test(test_json__duplicate_key_is_refused),
        cmocka_unit_test(test_json__oversized_text_is_refused),
        cmocka_unit_test(test_json__what_is_read_has_the_same_limits),
        cmocka_unit_test(test_json__missing_file_and_folder_are_named),
        cmocka_unit_test(test_json__file_loads),
        cmocka_unit_test(test_json__wrong_type_names_the_path),
        cmocka_unit_test(test_json__missing_key_names_its_object),
        cmocka_unit_test(test_json__long_paths_are_cut),
        cmocka_unit_test(test_json__unknown_key_names_the_nearest),
        cmocka_unit_test(test_json__known_keys_pass),
        cmocka_unit_test(test_json__whole_numbers_are_bounded),
        cmocka_unit_test(test_json__choice_lists_the_choices),
        cmocka_unit_test(test_size__texts_with_units),
        cmocka_unit_test(test_size__other_texts_are_refused),
        cmocka_unit_test(test_size__json_takes_numbers_and_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
