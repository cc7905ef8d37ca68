/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Signatures of requests against Amazon's examples. */
#include "encode.h"
#include "sigv4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Keys, times and signatures below are those that AWS publishes: in the S3 API reference,
 * "Examples: Signature Calculations", and in the signature 4 test suite. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static s3__signer
s3_signer(void)
{
    return (s3__signer){.access_key = "AKIAIOSFODNN7EXAMPLE",
                        .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                        .region = "us-east-1",
                        .service = "s3"};
}

static s3__signer
suite_signer(void)
{
    return (s3__signer){.access_key = "AKIDEXAMPLE",
                        .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                        .region = "us-east-1",
                        .service = "service"};
}

static void
expect_signature(s3__signer *signer, const s3__signable *what, const char *signature)
{
    esdm__buffer out;
    esdm_error err;
    char end[100];
    esdm__buffer_init(&out);
    assert_int_equal(s3__sign(signer, what, &out, &err), ESDM_OK);
    const char *text = (const char *) out.data;
    (void) snprintf(end, sizeof end, ", Signature=%s", signature);
    const char *found = strstr(text, ", Signature=");
    assert_non_null(found);
    assert_string_equal(found, end);
    assert_int_equal(strlen(text) + 1, out.bytes);
    assert_null(strstr(text, signer->secret_key));
    esdm__buffer_clear(&out);
}

static void
test_sigv4__get_object_with_range(void **state)
{
    (void) state;
    s3__signer signer = s3_signer();
    const s3__pair headers[] = {{"x-amz-date", "20130524T000000Z"},
                                {"range", "bytes=0-9"},
                                {"x-amz-content-sha256", EMPTY},
                                {"host", "examplebucket.s3.amazonaws.com"}};
    const s3__signable what = {"GET", "/test.txt", "", headers, 4, EMPTY, "20130524T000000Z"};
    expect_signature(&signer, &what,
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    assert_string_equal(signer.day, "20130524");
    expect_signature(&signer, &what, /* with the key that it kept */
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void
test_sigv4__put_object(void **state)
{
    (void) state;
    static const char body[] = "Welcome to Amazon S3.";
    char hash[S3__SHA256_TEXT];
    esdm__buffer path;
    s3__signer signer = s3_signer();
    assert_true(s3__sha256_hex(body, strlen(body), hash));
    assert_string_equal(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    const s3__pair headers[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                {"host", "examplebucket.s3.amazonaws.com"},
                                {"x-amz-content-sha256", hash},
                                {"x-amz-date", "20130524T000000Z"},
                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    esdm__buffer_init(&path);
    s3__encode(&path, "/test$file.text", true);
    esdm__buffer_put_u8(&path, 0);
    const s3__signable what = {"PUT", (const char *) path.data, "", headers, 5,
                               hash,  "20130524T000000Z"};
    expect_signature(&signer, &what,
                     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    esdm__buffer_clear(&path);
}

static void
expect_query(const s3__pair *parameters, size_t count, const char *expected)
{
    esdm__buffer out;
    esdm__buffer_init(&out);
    s3__canonical_query(&out, parameters, count);
    esdm__buffer_put_u8(&out, 0);
    assert_string_equal((const char *) out.data, expected);
    esdm__buffer_clear(&out);
}

static void
test_sigv4__queries(void **state)
{
    (void) state;
    s3__signer signer = s3_signer();
    const s3__pair headers[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                {"x-amz-content-sha256", EMPTY},
                                {"x-amz-date", "20130524T000000Z"}};
    s3__signable what = {"GET", "/", "lifecycle=", headers, 3, EMPTY, "20130524T000000Z"};
    expect_signature(&signer, &what,
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    what.query = "max-keys=2&prefix=J";
    expect_signature(&signer, &what,
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");

    expect_query((s3__pair[]){{"prefix", "J"}, {"max-keys", "2"}}, 2, "max-keys=2&prefix=J");
    expect_query((s3__pair[]){{"uploads", ""}}, 1, "uploads=");
    expect_query((s3__pair[]){{"b", "1"}, {"a", "2"}, {"a", "1"}, {"B", "3"}}, 4,
                 "B=3&a=1&a=2&b=1");
    expect_query((s3__pair[]){{"prefix", "a/b c+d~e=&\xc3\xa4%"}}, 1,
                 "prefix=a%2Fb%20c%2Bd~e%3D%26%C3%A4%25");
    expect_query(NULL, 0, "");
}

static void
test_sigv4__suite(void **state)
{
    (void) state;
    s3__signer signer = suite_signer();
    s3__pair headers[] = {{"host", "example.amazonaws.com"},
                          {"x-amz-date", "20150830T123600Z"},
                          {"my-header1", "value2,value2,value1"}};
    s3__signable what = {"GET", "/", "", headers, 2, EMPTY, "20150830T123600Z"};
    expect_signature(&signer, &what, /* get-vanilla */
                     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    what.nheaders = 3;
    expect_signature(&signer, &what, /* get-header-key-duplicate */
                     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea");
    what.nheaders = 2;
    what.query = "Param1=value1&Param2=value2";
    expect_signature(&signer, &what, /* get-vanilla-query-order-key-case */
                     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    what.query = "";
    what.method = "POST";
    expect_signature(&signer, &what, /* post-vanilla */
                     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

static void
test_sigv4__values_of_headers_are_trimmed(void **state)
{
    (void) state;
    s3__signer signer = suite_signer();
    const s3__pair headers[] = {{"host", "example.amazonaws.com"},
                                {"my-header1", " value1  "},
                                {"my-header2", " \"a   b   c\"  "},
                                {"x-amz-date", "20150830T123600Z"}};
    const s3__signable what = {"GET", "/", "", headers, 4, EMPTY, "20150830T123600Z"};
    expect_signature(&signer, &what, /* get-header-value-trim */
                     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void
test_sigv4__the_day_renews_the_key(void **state)
{
    (void) state;
    s3__signer signer = suite_signer();
    esdm__buffer first;
    esdm__buffer second;
    esdm_error err;
    const s3__pair headers[] = {{"host", "h"}};
    s3__signable what = {"GET", "/", "", headers, 1, EMPTY, "20150830T235959Z"};
    esdm__buffer_init(&first);
    esdm__buffer_init(&second);
    assert_int_equal(s3__sign(&signer, &what, &first, &err), ESDM_OK);
    what.time = "20150831T000000Z";
    assert_int_equal(s3__sign(&signer, &what, &second, &err), ESDM_OK);
    assert_string_equal(signer.day, "20150831");
    assert_non_null(strstr((const char *) second.data, "/20150831/us-east-1/service/aws4_request"));
    assert_string_not_equal((const char *) first.data, (const char *) second.data);
    esdm__buffer_clear(&first);
    esdm__buffer_clear(&second);
}

static void
test_sigv4__times(void **state)
{
    (void) state;
    char text[S3__TIME_TEXT];
    s3__format_time(1369353600, text);
    assert_string_equal(text, "20130524T000000Z");
    s3__format_time(0, text);
    assert_string_equal(text, "19700101T000000Z");
}

static void
test_sigv4__decoding(void **state)
{
    (void) state;
    static const struct {
        const char *from;
        const char *to;
    } cases[] = {{"a%2Fb", "a/b"}, {"%41%6a%6A", "Ajj"}, {"%", "%"},      {"%4", "%4"},
                 {"%zz", "%zz"},   {"%00x", "%00x"},     {"", ""},        {"a+b", "a+b"},
                 {"%%41", "%A"},   {"%25", "%"},         {"%2541", "%41"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        (void) snprintf(text, sizeof text, "%s", cases[i].from);
        s3__decode(text);
        assert_string_equal(text, cases[i].to);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sigv4__get_object_with_range),
        cmocka_unit_test(test_sigv4__put_object),
        cmocka_unit_test(test_sigv4__queries),
        cmocka_unit_test(test_sigv4__suite),
        cmocka_unit_test(test_sigv4__values_of_headers_are_trimmed),
        cmocka_unit_test(test_sigv4__the_day_renews_the_key),
        cmocka_unit_test(test_sigv4__times),
        cmocka_unit_test(test_sigv4__decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
