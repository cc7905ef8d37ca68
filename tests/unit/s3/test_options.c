/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Options of S3 targets, and where credentials come from. */
#include "options.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "verySecret/42+x"
#define KEYS   "\"access_key\": \"AK\", \"secret_key\": \"" SECRET "\""

static s3__options options;
static s3__credentials credentials;
static esdm_error err;

static int
setup(void **state)
{
    (void) state;
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN", "AWS_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void) unsetenv(names[i]);
    (void) setenv("HOME", "/nonexistent", 1);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    s3__options_clear(&options);
    s3__credentials_clear(&credentials);
    return 0;
}

static esdm_status
read_text(const char *json)
{
    const esdm_plugin_config config = {
        .name = "cloud", .json = json, .path = "site.json: targets[0]", .site_id = ""};
    s3__options_clear(&options);
    s3__credentials_clear(&credentials);
    memset(&err, 0, sizeof err);
    return s3__options_read(&config, &options, &credentials, &err);
}

static void
expect_wrong(const char *json, const char *words)
{
    assert_int_equal(read_text(json), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "site.json: targets[0]"));
    if (strstr(err.message, words) == NULL)
        fail_msg("%s: %s", json, err.message);
    assert_null(strstr(err.message, SECRET));
}

static void
test_options__defaults_are_amazons(void **state)
{
    (void) state;
    assert_int_equal(read_text("{\"bucket\": \"abc\", " KEYS "}"), ESDM_OK);
    assert_string_equal(options.endpoint, "https://s3.us-east-1.amazonaws.com");
    assert_string_equal(options.host, "s3.us-east-1.amazonaws.com");
    assert_string_equal(options.prefix, "");
    assert_true(options.tls && options.host_style && !options.sign_payload);
    assert_int_equal(options.part_bytes, 32 << 20);
    assert_int_equal(options.object_bytes, 8 << 20);
    assert_int_equal(options.connections, 16);
    assert_true(options.hedge);
    assert_int_equal(options.timeout_ms, 60000);
    assert_true(options.memory_bytes > 0);
    assert_string_equal(credentials.secret_key, SECRET);
    assert_null(credentials.session_token);
    assert_int_equal(read_text("{\"bucket\": \"a.bc\", \"region\": \"eu-west-1\", " KEYS "}"),
                     ESDM_OK);
    assert_string_equal(options.endpoint, "https://s3.eu-west-1.amazonaws.com");
    assert_false(options.host_style); /* no certificate fits */
}

static void
test_options__endpoints(void **state)
{
    (void) state;
    static const struct {
        const char *given;
        const char *endpoint;
    } right[] = {{"http://127.0.0.1:7070", "http://127.0.0.1:7070"},
                 {"https://s3.example.org/", "https://s3.example.org"},
                 {"https://s3.example.org:443", "https://s3.example.org"},
                 {"http://h:80//", "http://h"},
                 {"http://h:443", "http://h:443"},
                 {"http://[::1]:7070", "http://[::1]:7070"},
                 {"http://[::1]", "http://[::1]"}};
    static const char *const wrong[] = {"h",
                                        "ftp://h",
                                        "http://",
                                        "http://h/path",
                                        "http://u:p@h",
                                        "http://h?x=1",
                                        "http://h:",
                                        "http://h:p",
                                        "http://h h",
                                        "//h"};
    char json[200];
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        (void) snprintf(json, sizeof json, "{\"bucket\": \"abc\", \"endpoint\": \"%s\", " KEYS "}",
                        right[i].given);
        assert_int_equal(read_text(json), ESDM_OK);
        assert_string_equal(options.endpoint, right[i].endpoint);
        assert_false(options.host_style);
        assert_int_equal(options.tls, strncmp(right[i].given, "https", 5) == 0);
        assert_int_equal(options.sign_payload, !options.tls);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void) snprintf(json, sizeof json, "{\"bucket\": \"abc\", \"endpoint\": \"%s\", " KEYS "}",
                        wrong[i]);
        expect_wrong(json, "endpoint");
    }
}

static void
test_options__prefixes(void **state)
{
    (void) state;
    static const struct {
        const char *given;
        const char *prefix;
    } right[] = {{"", ""},
                 {"/", ""},
                 {"a", "a/"},
                 {"a/b", "a/b/"},
                 {"/a/b/", "a/b/"},
                 {"..a", "..a/"},
                 {"a.", "a./"},
                 {"a..b/c", "a..b/c/"},
                 {"\xc3\xa4 +", "\xc3\xa4 +/"}};
    static const char *const wrong[] = {"a//b", ".", "..", "a/../b", "a/.", "./a", "a\\nb"};
    char json[400];
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        (void) snprintf(json, sizeof json, "{\"bucket\": \"abc\", \"prefix\": \"%s\", " KEYS "}",
                        right[i].given);
        assert_int_equal(read_text(json), ESDM_OK);
        assert_string_equal(options.prefix, right[i].prefix);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void) snprintf(json, sizeof json, "{\"bucket\": \"abc\", \"prefix\": \"%s\", " KEYS "}",
                        wrong[i]);
        expect_wrong(json, "prefix");
    }
    (void) snprintf(json, sizeof json, "{\"bucket\": \"abc\", \"prefix\": \"%0*d\", " KEYS "}", 257,
                    1);
    expect_wrong(json, "prefix");
}

static void
test_options__wrong_values_are_named(void **state)
{
    (void) state;
    expect_wrong("{" KEYS "}", "\"bucket\" is missing");
    expect_wrong("{\"bucket\": 5, " KEYS "}", "bucket");
    expect_wrong("{\"bucket\": \"a/b\", " KEYS "}", "prefix");
    expect_wrong("{\"bucket\": \"abc\", \"buckte\": 1, " KEYS "}", "did you mean \"bucket\"");
    expect_wrong("{\"bucket\": \"abc\", \"part\": \"1 MiB\", " KEYS "}", "part");
    expect_wrong("{\"bucket\": \"abc\", \"style\": \"dns\", " KEYS "}", "path, host");
    expect_wrong("{\"bucket\": \"abc\", \"timeout\": 0, " KEYS "}", "timeout");
    expect_wrong("{\"bucket\": \"abc\", \"hedge\": 5, " KEYS "}", "hedge");
    expect_wrong("{\"bucket\": \"abc\", \"connections\": 1000, " KEYS "}", "connections");
    expect_wrong("{\"bucket\": \"abc\", \"sign_payload\": 1, " KEYS "}", "true or false");
    expect_wrong("{\"bucket\": \"abc\", \"region\": \"a b\", " KEYS "}", "region");
    expect_wrong("{\"bucket\": \"abc\", \"ca_file\": \"x.pem\", " KEYS "}", "absolute");
    expect_wrong("{\"bucket\": \"abc\", \"ca_file\": \"/nonexistent/x\", " KEYS "}",
                 "cannot be read");
    expect_wrong("{\"bucket\": \"abc\", \"secret_key\": \"" SECRET "\"}", "go together");
    expect_wrong("{\"bucket\": \"abc\", \"profile\": \"x\", " KEYS "}", "either");
    expect_wrong("{\"bucket\": \"abc\", \"secret_key\": \"" SECRET "}", "line 1");
    expect_wrong("{\"secret_key\": {\"" SECRET "\" 5}}", "line 1");
    expect_wrong("{\"bucket\": \"abc\", \"access_key\": \"AK\", \"secret_key\": \"" SECRET
                 "\\nX-Evil: 1\"}",
                 "spaces");
}

/* ---- credentials ---------------------------------------------------------------------------- */

static void
expect_keys(const char *access_key, const char *token, const char *source)
{
    assert_string_equal(credentials.access_key, access_key);
    assert_string_equal(credentials.secret_key, SECRET);
    if (token == NULL)
        assert_null(credentials.session_token);
    else
        assert_string_equal(credentials.session_token, token);
    assert_non_null(strstr(credentials.source, source));
}

static void
test_credentials__profiles(void **state)
{
    (void) state;
    static const char text[] = "# comment\n"
                               "[other]\n"
                               "aws_access_key_id = WRONG\n"
                               "[default]\r\n"
                               "  aws_access_key_id=AK1  \r\n"
                               "aws_secret_access_key\t=\t" SECRET "\r\n"
                               "region = x\n"
                               "\n"
                               "[ profile two ]\n"
                               "aws_secret_access_key = " SECRET "\n"
                               "#aws_access_key_id = WRONG\n"
                               "aws_access_key_id = AK2\n"
                               "aws_session_token = TOKEN\n"
                               "[empty]\n"
                               "aws_access_key_id = AK3\n"
                               "aws_secret_access_key =";
    assert_int_equal(s3__credentials_parse(text, "default", &credentials, &err), ESDM_OK);
    expect_keys("AK1", NULL, "");
    s3__credentials_clear(&credentials);
    assert_int_equal(s3__credentials_parse(text, "two", &credentials, &err), ESDM_OK);
    expect_keys("AK2", "TOKEN", "");
    s3__credentials_clear(&credentials);
    assert_int_equal(s3__credentials_parse(text, "empty", &credentials, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "aws_secret_access_key"));
    s3__credentials_clear(&credentials);
    assert_int_equal(s3__credentials_parse(text, "other", &credentials, &err), ESDM_EINVAL);
    s3__credentials_clear(&credentials);
    assert_int_equal(s3__credentials_parse(text, "none", &credentials, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "[none]"));
    s3__credentials_clear(&credentials);
    assert_int_equal(s3__credentials_parse("", "default", &credentials, &err), ESDM_ENOENT);
}

static void
write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void
test_credentials__order_of_sources(void **state)
{
    (void) state;
    char path[] = "/tmp/esdm-test-credentials-XXXXXX";
    char json[300];
    assert_int_equal(close(mkstemp(path)), 0);
    write_file(path, "[default]\naws_access_key_id = FILE\naws_secret_access_key = " SECRET "\n"
                     "[p]\naws_access_key_id = PROFILE\naws_secret_access_key = " SECRET "\n");
    static const char plain[] = "{\"bucket\": \"abc\"}";
    assert_int_equal(read_text(plain), ESDM_EACCES);
    assert_non_null(strstr(err.message, "AWS_ACCESS_KEY_ID"));
    assert_non_null(strstr(err.message, "/nonexistent/.aws/credentials"));

    (void) setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    assert_int_equal(read_text(plain), ESDM_OK);
    expect_keys("FILE", NULL, path);
    (void) setenv("AWS_PROFILE", "p", 1);
    assert_int_equal(read_text(plain), ESDM_OK);
    expect_keys("PROFILE", NULL, "[p]");
    (void) setenv("AWS_PROFILE", "q", 1);
    assert_int_equal(read_text(plain), ESDM_EACCES);
    assert_non_null(strstr(err.message, "[q]"));

    (void) setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    assert_int_equal(read_text(plain), ESDM_EACCES);
    assert_non_null(strstr(err.message, "AWS_SECRET_ACCESS_KEY is not"));
    (void) setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    (void) setenv("AWS_SESSION_TOKEN", "TOK", 1);
    assert_int_equal(read_text(plain), ESDM_OK);
    expect_keys("ENV", "TOK", "AWS_ACCESS_KEY_ID");

    (void) snprintf(json, sizeof json,
                    "{\"bucket\": \"abc\", \"profile\": \"p\", \"credentials_file\": \"%s\"}",
                    path);
    assert_int_equal(read_text(json), ESDM_OK);
    expect_keys("PROFILE", NULL, "[p]");
    assert_int_equal(read_text("{\"bucket\": \"abc\", " KEYS "}"), ESDM_OK);
    expect_keys("AK", NULL, "configuration");
    assert_int_equal(read_text("{\"bucket\": \"abc\", \"credentials_file\": \"/nonexistent/c\"}"),
                     ESDM_EACCES);
    assert_non_null(strstr(err.message, "/nonexistent/c"));
    assert_int_equal(unlink(path), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_options__defaults_are_amazons),
        TEST(test_options__endpoints),
        TEST(test_options__prefixes),
        TEST(test_options__wrong_values_are_named),
        TEST(test_credentials__profiles),
        TEST(test_credentials__order_of_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
