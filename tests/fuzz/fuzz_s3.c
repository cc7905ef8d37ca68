/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What S3 servers answer, and what credentials files hold: any bytes are read or refused, messages
 * are printable and hold no secret. */

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "encode.h"
#include "sigv4.h"
#include "xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define SECRET "S3cret"

static esdm_status
visit(const char *path, char *text, void *user, esdm_error *err)
{
    size_t *total = user;
    (void) err;
    *total += strlen(path) + strlen(text);
    s3__decode(text);
    return ESDM_OK;
}

static char endpoint[] = "https://h", region[] = "us-east-1", bucket[] = "b", key[] = "AK";
static char secret[] = SECRET, source[] = "the test";
static const s3__options options = {.endpoint = endpoint, .bucket = bucket, .region = region};
static const s3__credentials known = {.access_key = key, .secret_key = secret, .source = source};

static void
describe(const s3__error_document *document, long http_status)
{
    const s3__failure failure = {.doing = "read",
                                 .key = "k",
                                 .http_status = http_status,
                                 .code = document->code,
                                 .message = document->message,
                                 .region = document->region,
                                 .skew_s = http_status,
                                 .attempts = 2};
    esdm_error err = {0};
    esdm_status status = s3__describe(&options, &known, &failure, &err);
    if (status == ESDM_OK || status != err.status || err.message[0] == '\0')
        abort();
    for (const char *at = err.message; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~')
            abort();
    }
    if (strstr(err.message, SECRET) != NULL)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2)
        return 0;
    size_t total = 0;
    esdm_error err = {0};
    esdm_status status = s3__xml_parse(data + 2, bytes - 2, visit, &total, &err);
    if (status != ESDM_OK && (status != ESDM_EIO || err.message[0] == '\0'))
        abort();
    s3__error_document document;
    s3__error_read(&known, data + 2, bytes - 2, &document);
    describe(&document, (long) data[0] * 256 + data[1]);

    char *text = malloc(bytes + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    s3__credentials credentials = {0};
    status = s3__credentials_parse(text, "default", &credentials, &err);
    if (status == ESDM_OK && (credentials.access_key == NULL || credentials.secret_key == NULL))
        abort();
    s3__credentials_clear(&credentials);
    free(text);
    return 0;
}
