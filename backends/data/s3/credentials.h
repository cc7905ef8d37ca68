/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_CREDENTIALS_H
#define ESDM_BACKEND_S3_CREDENTIALS_H

/** @file Keys of S3: those of a target, and of objects that containers refer to (source "http"). */

#include "esdm/status.h"

/** Never printed. `source` says where they come from, for messages. */
typedef struct s3__credentials {
    char *access_key;
    char *secret_key;
    char *session_token; /* NULL: none */
    char *source;
} s3__credentials;

void s3__credentials_clear(s3__credentials *credentials); /* overwrites the secrets */

/** A text that may be NULL is overwritten and freed. */
void s3__forget(char *secret);

/**
 * Finds a profile in the text of an AWS credentials file.
 * @param ret_credentials zeroed before; `source` is left NULL.
 * @return ESDM_ENOENT: no such profile; ESDM_EINVAL: it lacks a key (`err` names it and the line,
 *         never a value). ESDM_ENOMEM.
 */
esdm_status s3__credentials_parse(const char *text, const char *profile,
                                  s3__credentials *ret_credentials, esdm_error *err);

/** What a configuration says of them. */
typedef struct s3__credential_options {
    const char *access_key; /* all may be NULL */
    const char *secret_key;
    const char *session_token;
    const char *profile;
    const char *file;
} s3__credential_options;
/** As s3__options_read() has them. @param ret_credentials zeroed before. */
esdm_status s3__credentials_find(const s3__credential_options *wanted,
                                 s3__credentials *ret_credentials, esdm_error *err);

#endif
