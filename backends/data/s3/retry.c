/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "retry.h"

#include <curl/curl.h>
#include <string.h>

#define FIRST_MS   100u
#define LARGEST_MS 8000u
#define ASKED_MS   30000u

bool
s3__retry_transport(int curl_code)
{
    switch (curl_code) {
    case CURLE_COULDNT_RESOLVE_HOST: /* a name server that is busy says the same */
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_AGAIN:
        return true;
    default:
        return false;
    }
}

bool
s3__retry_answer(long http_status, const char *code)
{
    static const char *const transient[] = {
        "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted",
        "ConditionalRequestConflict", "Throttling", "ThrottlingException", "RequestLimitExceeded",
        "TooManyRequests", "BandwidthLimitExceeded", "XMinioServerNotInitialized",
        /* The body was damaged on its way. */
        "BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch", NULL};
    static const char *const lasting[] = {"NotImplemented", "XMinioStorageFull", "QuotaExceeded",
                                          "InsufficientStorage", NULL};
    for (size_t i = 0; lasting[i] != NULL; i++) {
        if (strcmp(code, lasting[i]) == 0)
            return false;
    }
    for (size_t i = 0; transient[i] != NULL; i++) {
        if (strcmp(code, transient[i]) == 0)
            return true;
    }
    switch (http_status) {
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return true;
    default:
        return false;
    }
}

uint32_t
s3__retry_wait_ms(uint32_t attempt, uint64_t asked_ms, uint64_t random)
{
    uint32_t longest = attempt > 8 ? LARGEST_MS : FIRST_MS << (attempt > 0 ? attempt - 1 : 0);
    longest = longest < LARGEST_MS ? longest : LARGEST_MS;
    uint32_t wait = longest / 2 + (uint32_t) (random % (longest / 2 + 1));
    uint32_t asked = asked_ms < ASKED_MS ? (uint32_t) asked_ms : ASKED_MS;
    return wait > asked ? wait : asked;
}
