/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "retry.h"

#include <curl/curl.h>
#include <string.h>

#include "base/retry.h"

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
    return esdm__retry_http(http_status);
}
