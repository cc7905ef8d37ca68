/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Pauses before a request is repeated, and which may be. */
#include "retry.h"

#include "base/retry.h"

#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
test_retry__pauses_double_up_to_a_limit(void **state)
{
    (void) state;
    static const uint32_t longest[] = {100, 200, 400, 800, 1600, 3200, 6400, 8000, 8000};
    for (uint32_t attempt = 1; attempt <= 9; attempt++) {
        uint32_t most = longest[attempt - 1];
        uint32_t low = UINT32_MAX;
        uint32_t high = 0;
        for (uint64_t random = 0; random < 20000; random++) {
            uint32_t wait = esdm__retry_wait_ms(attempt, 0, random * 2654435761u);
            low = wait < low ? wait : low;
            high = wait > high ? wait : high;
        }
        assert_true(low >= most / 2 && low < most * 3 / 5);
        assert_true(high <= most && high > most * 9 / 10);
    }
    assert_in_range(esdm__retry_wait_ms(0, 0, 7), 50, 100);
    assert_in_range(esdm__retry_wait_ms(UINT32_MAX, 0, UINT64_MAX), 4000, 8000);
}

static void
test_retry__servers_may_ask_for_more(void **state)
{
    (void) state;
    assert_int_equal(esdm__retry_wait_ms(1, 5000, 1), 5000);
    assert_int_equal(esdm__retry_wait_ms(1, UINT64_MAX, 1), 30000);
    assert_in_range(esdm__retry_wait_ms(8, 1, 1), 4000, 8000);
}

static void
test_retry__what_may_pass(void **state)
{
    (void) state;
    static const long transient[] = {408, 425, 429, 500, 502, 503, 504};
    static const long lasting[] = {200, 301, 400, 401, 403, 404, 405, 409, 411, 412, 416, 501, 507};
    for (size_t i = 0; i < sizeof transient / sizeof transient[0]; i++)
        assert_true(s3__retry_answer(transient[i], ""));
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++)
        assert_false(s3__retry_answer(lasting[i], ""));
    assert_true(s3__retry_answer(400, "RequestTimeout"));
    assert_true(s3__retry_answer(503, "SlowDown"));
    assert_true(s3__retry_answer(409, "ConditionalRequestConflict"));
    assert_true(s3__retry_answer(200, "InternalError")); /* at the end of a long upload */
    assert_false(s3__retry_answer(403, "SignatureDoesNotMatch"));
    assert_false(s3__retry_answer(503, "XMinioStorageFull"));
    assert_false(s3__retry_answer(500, "NotImplemented"));

    static const CURLcode passing[] = {CURLE_COULDNT_CONNECT,   CURLE_OPERATION_TIMEDOUT,
                                       CURLE_PARTIAL_FILE,      CURLE_GOT_NOTHING,
                                       CURLE_RECV_ERROR,        CURLE_SEND_ERROR,
                                       CURLE_SSL_CONNECT_ERROR, CURLE_COULDNT_RESOLVE_HOST};
    static const CURLcode staying[] = {CURLE_OK,
                                       CURLE_PEER_FAILED_VERIFICATION,
                                       CURLE_SSL_CACERT_BADFILE,
                                       CURLE_OUT_OF_MEMORY,
                                       CURLE_WRITE_ERROR,
                                       CURLE_URL_MALFORMAT};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        assert_true(s3__retry_transport((int) passing[i]));
    for (size_t i = 0; i < sizeof staying / sizeof staying[0]; i++)
        assert_false(s3__retry_transport((int) staying[i]));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry__pauses_double_up_to_a_limit),
        cmocka_unit_test(test_retry__servers_may_ask_for_more),
        cmocka_unit_test(test_retry__what_may_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
