/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What answers of S3 servers mean, and that messages have no secrets. */
#include "answer.h"

#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "verySecret/42+x"

static char endpoint[] = "https://s3.example.org";
static char bucket[] = "abc";
static char region[] = "us-east-1";
static char access_key[] = "AK";
static char secret_key[] = SECRET;
static char session_token[] = "TheToken";
static char source[] = "AWS_ACCESS_KEY_ID";
static const s3__options options = {.endpoint = endpoint, .bucket = bucket, .region = region};
static const s3__credentials credentials = {.access_key = access_key,
                                            .secret_key = secret_key,
                                            .session_token = session_token,
                                            .source = source};

static s3__failure
failure(long http_status, const char *code)
{
    return (s3__failure){.doing = "write",
                         .key = "p/packs/x",
                         .http_status = http_status,
                         .code = code,
                         .message = "the server's words",
                         .region = "",
                         .attempts = 1};
}

static void
expect(const s3__failure *what, esdm_status status, const char *words)
{
    esdm_error err = {0};
    assert_int_equal(s3__describe(&options, &credentials, what, &err), status);
    assert_int_equal(err.status, status);
    if (strstr(err.message, words) == NULL)
        fail_msg("%s: %s", words, err.message);
    assert_non_null(
        strstr(err.message, "cannot write 's3://abc/p/packs/x' at https://s3.example.org"));
}

static void
test_answer__codes_decide(void **state)
{
    (void) state;
    static const struct {
        long http_status;
        const char *code;
        esdm_status status;
        const char *words;
    } cases[] = {
        {403, "SignatureDoesNotMatch", ESDM_EACCES, "AWS_SECRET_ACCESS_KEY"},
        {403, "InvalidAccessKeyId", ESDM_EACCES, "credentials: AWS_ACCESS_KEY_ID"},
        {404, "XAdminUserNotFound", ESDM_EACCES, "AWS_ACCESS_KEY_ID"},
        {403, "AccessDenied", ESDM_EACCES, "right"},
        {400, "ExpiredToken", ESDM_EACCES, "expired"},
        {404, "NoSuchBucket", ESDM_ENOENT, "create_bucket"},
        {404, "NoSuchKey", ESDM_ENOENT, "HTTP 404 NoSuchKey"},
        {404, "", ESDM_ENOENT, "HTTP 404"},
        {412, "PreconditionFailed", ESDM_EEXIST, "412"},
        {416, "InvalidRange", ESDM_ECORRUPT, "shorter"},
        {507, "XMinioStorageFull", ESDM_ENOSPC, "full"},
        {507, "", ESDM_ENOSPC, "full"},
        {403, "QuotaExceeded", ESDM_ENOSPC, "quota"},
        {501, "NotImplemented", ESDM_ENOTSUP, "501"},
        {503, "SlowDown", ESDM_ETIMEDOUT, "connections"},
        {429, "", ESDM_ETIMEDOUT, "fewer"},
        {500, "InternalError", ESDM_EIO, "the server's words"},
        {301, "PermanentRedirect", ESDM_EINVAL, "endpoint"},
        {418, "", ESDM_EIO, "418"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const s3__failure what = failure(cases[i].http_status, cases[i].code);
        expect(&what, cases[i].status, cases[i].words);
    }
    s3__failure what = failure(503, "");
    what.attempts = 7;
    expect(&what, ESDM_EIO, "7 attempts");
}

static void
test_answer__clocks(void **state)
{
    (void) state;
    s3__failure what = failure(403, "RequestTimeTooSkewed");
    what.skew_s = 3600;
    expect(&what, ESDM_EACCES, "3600 seconds behind the server's");
    what.skew_s = -1234;
    expect(&what, ESDM_EACCES, "1234 seconds ahead of the server's");
    what.skew_s = 0;
    expect(&what, ESDM_EACCES, "clock");
}

static void
test_answer__regions(void **state)
{
    (void) state;
    s3__failure what = failure(400, "AuthorizationHeaderMalformed");
    what.region = "eu-west-1";
    expect(&what, ESDM_EINVAL, "\"region\": \"eu-west-1\"");
    what.region = "us-east-1"; /* ours: something else is wrong */
    expect(&what, ESDM_EIO, "400");
}

static void
test_answer__documents(void **state)
{
    (void) state;
    s3__error_document document;
    static const char xml[] = "<?xml version=\"1.0\"?><Error><Code>Bad\nCode</Code>"
                              "<Message>a \xc3\xa4&#9;b</Message><Region>r</Region>"
                              "<StringToSign>ignored</StringToSign></Error>";
    s3__error_read(&credentials, xml, strlen(xml), &document);
    assert_string_equal(document.code, "Bad Code");
    assert_string_equal(document.message, "a    b");
    assert_string_equal(document.region, "r");
    static const char html[] = "<html><body>Bad gateway<br></body></html>";
    s3__error_read(&credentials, html, strlen(html), &document);
    assert_string_equal(document.code, "");
    s3__error_read(&credentials, NULL, 0, &document);
    assert_string_equal(document.code, "");
    char longer[2000];
    (void) snprintf(longer, sizeof longer,
                    "<Error><Code>%0500d</Code><Message>%0500d</Message></Error>", 1, 1);
    s3__error_read(&credentials, longer, strlen(longer), &document);
    assert_int_equal(strlen(document.code), sizeof document.code - 1);
    assert_int_equal(strlen(document.message), sizeof document.message - 1);
}

static void
test_answer__half_a_secret_is_none(void **state)
{
    (void) state;
    s3__error_document document;
    for (int pad = 170; pad < 205; pad++) {
        char xml[600];
        (void) snprintf(xml, sizeof xml, "<Error><Message>%0*d" SECRET "</Message></Error>", pad,
                        0);
        s3__error_read(&credentials, xml, strlen(xml), &document);
        assert_null(strstr(document.message, "very"));
    }
}

static void
test_answer__secrets_are_scrubbed(void **state)
{
    (void) state;
    esdm_error err = {0};
    s3__failure what = failure(500, "InternalError");
    what.message = "you sent " SECRET " and TheToken and " SECRET;
    (void) !s3__describe(&options, &credentials, &what, &err);
    assert_null(strstr(err.message, SECRET));
    assert_null(strstr(err.message, "TheToken"));
    assert_non_null(strstr(err.message, "you sent ***"));
    what.message = "";
    (void) !s3__describe_transport(&options, &credentials, &what, CURLE_RECV_ERROR, "got " SECRET,
                                   &err);
    assert_null(strstr(err.message, SECRET));
}

static void
test_answer__transport(void **state)
{
    (void) state;
    static const struct {
        CURLcode code;
        esdm_status status;
        const char *words;
    } cases[] = {
        {CURLE_COULDNT_CONNECT, ESDM_EIO, "running"},
        {CURLE_COULDNT_RESOLVE_HOST, ESDM_EIO, "endpoint"},
        {CURLE_OPERATION_TIMEDOUT, ESDM_ETIMEDOUT, "why"},
        {CURLE_PEER_FAILED_VERIFICATION, ESDM_EACCES, "ca_file"},
        {CURLE_SSL_CACERT_BADFILE, ESDM_EINVAL, "ca_file"},
        {CURLE_OUT_OF_MEMORY, ESDM_ENOMEM, "why"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm_error err = {0};
        const s3__failure what = failure(0, "");
        assert_int_equal(
            s3__describe_transport(&options, &credentials, &what, (int) cases[i].code, "why", &err),
            cases[i].status);
        assert_non_null(strstr(err.message, cases[i].words));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer__codes_decide),
        cmocka_unit_test(test_answer__clocks),
        cmocka_unit_test(test_answer__regions),
        cmocka_unit_test(test_answer__documents),
        cmocka_unit_test(test_answer__secrets_are_scrubbed),
        cmocka_unit_test(test_answer__half_a_secret_is_none),
        cmocka_unit_test(test_answer__transport),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
