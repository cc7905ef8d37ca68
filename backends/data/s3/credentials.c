/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Where the keys come from: configuration, environment, AWS credentials files. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "credentials.h"

#define FILE_MAX_BYTES ((size_t) 1 << 20)

void
s3__forget(char *secret)
{
    if (secret == NULL)
        return;
    explicit_bzero(secret, strlen(secret));
    free(secret);
}

void
s3__credentials_clear(s3__credentials *credentials)
{
    s3__forget(credentials->access_key);
    s3__forget(credentials->secret_key);
    s3__forget(credentials->session_token);
    free(credentials->source);
    *credentials = (s3__credentials){0};
}

/* Anything else would break the header that it stands in. */
static bool
is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

static esdm_status
set_all(s3__credentials *ret, const char *access_key, const char *secret_key,
        const char *session_token, const char *source, esdm_error *err)
{
    bool tokened = session_token != NULL && session_token[0] != '\0';
    if (!is_printable(access_key) || !is_printable(secret_key) ||
        (tokened && !is_printable(session_token)))
        return esdm__error_set(err, ESDM_EINVAL,
                               "the keys of %s hold spaces or other bytes that no key has", source);
    if (strlen(access_key) > 256 || strlen(secret_key) > 256)
        return esdm__error_set(err, ESDM_EINVAL, "the keys of %s are too long", source);
    ret->access_key = strdup(access_key);
    ret->secret_key = strdup(secret_key);
    ret->session_token = tokened ? strdup(session_token) : NULL;
    ret->source = strdup(source);
    if (ret->access_key == NULL || ret->secret_key == NULL || ret->source == NULL ||
        (tokened && ret->session_token == NULL))
        return esdm__error_nomem(err, 256, "credentials");
    return ESDM_OK;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Cuts the next line off, without blanks at its ends; NULL at the end of the text. */
static char *
next_line(char **at)
{
    char *line = *at;
    if (line == NULL)
        return NULL;
    char *end = strchr(line, '\n');
    *at = end != NULL ? end + 1 : NULL;
    if (end != NULL)
        *end = '\0';
    line += strspn(line, " \t\r");
    for (size_t bytes = strlen(line); bytes > 0 && strchr(" \t\r", line[bytes - 1]) != NULL;)
        line[--bytes] = '\0';
    return line;
}

/* "[default]", or "[profile default]" as in ~/.aws/config. */
static bool
is_profile(char *line, const char *profile)
{
    size_t bytes = strlen(line);
    if (bytes < 2 || line[bytes - 1] != ']')
        return false;
    line[bytes - 1] = '\0';
    line++;
    line += strspn(line, " \t");
    if (strncmp(line, "profile ", 8) == 0)
        line += 8 + strspn(line + 8, " \t");
    for (bytes = strlen(line); bytes > 0 && strchr(" \t", line[bytes - 1]) != NULL;)
        line[--bytes] = '\0';
    return strcmp(line, profile) == 0;
}

/* The value of "key = value"; NULL when it is another key. */
static const char *
value_of(const char *line, const char *key)
{
    size_t bytes = strlen(key);
    if (strncmp(line, key, bytes) != 0)
        return NULL;
    line += bytes + strspn(line + bytes, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

static void
take_value(const char *line, const char *key, const char **value)
{
    const char *found = value_of(line, key);
    if (found != NULL)
        *value = found;
}

esdm_status
s3__credentials_parse(const char *text, const char *profile, s3__credentials *ret_credentials,
                      esdm_error *err)
{
    const char *access = NULL;
    const char *secret = NULL;
    const char *token = NULL;
    bool inside = false;
    bool found = false;
    char *own = strdup(text);
    if (own == NULL)
        return esdm__error_nomem(err, strlen(text) + 1, "credentials");
    char *rest = own;
    for (char *line = next_line(&rest); line != NULL; line = next_line(&rest)) {
        if (line[0] == '[') {
            inside = is_profile(line, profile);
            found = found || inside;
        } else if (inside && line[0] != '#' && line[0] != ';') {
            take_value(line, "aws_access_key_id", &access);
            take_value(line, "aws_secret_access_key", &secret);
            take_value(line, "aws_session_token", &token);
        }
    }
    esdm_status status = ESDM_OK;
    if (!found)
        status = esdm__error_set(err, ESDM_ENOENT, "there is no profile [%.64s]", profile);
    else if (access == NULL || secret == NULL || access[0] == '\0' || secret[0] == '\0')
        status = esdm__error_set(err, ESDM_EINVAL, "profile [%.64s] has no %s", profile,
                                 access == NULL || access[0] == '\0' ? "aws_access_key_id"
                                                                     : "aws_secret_access_key");
    else
        status = set_all(ret_credentials, access, secret, token, "this profile", err);
    explicit_bzero(own, strlen(text));
    free(own);
    return status;
}

/* @param ret_text owned, s3__forget(). */
static esdm_status
read_file(const char *path, char **ret_text, esdm_error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return esdm__error_set_errno(err, errno, "cannot open the credentials file '%s'", path);
    char *text = calloc(1, FILE_MAX_BYTES + 1);
    if (text == NULL) {
        (void) fclose(file);
        return esdm__error_nomem(err, FILE_MAX_BYTES, "credentials");
    }
    (void) setvbuf(file, NULL, _IONBF, 0); /* no second copy of secrets */
    size_t bytes = fread(text, 1, FILE_MAX_BYTES, file);
    bool failed = ferror(file) != 0;
    int why = errno;
    (void) fclose(file);
    text[bytes] = '\0';
    if (!failed) {
        *ret_text = text;
        return ESDM_OK;
    }
    s3__forget(text);
    return esdm__error_set_errno(err, why, "cannot read the credentials file '%s'", path);
}

static esdm_status
load_file(const char *path, const char *profile, s3__credentials *ret, esdm_error *err)
{
    char *text = NULL;
    esdm_status status = read_file(path, &text, err);
    if (status != ESDM_OK || text == NULL)
        return status;
    status = s3__credentials_parse(text, profile, ret, err);
    s3__forget(text);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "credentials file '%s'", path);
    free(ret->source);
    if (asprintf(&ret->source, "profile [%s] of '%s'", profile, path) < 0) {
        ret->source = NULL;
        return esdm__error_nomem(err, strlen(path), "credentials");
    }
    return ESDM_OK;
}

/* ---- finding them --------------------------------------------------------------------------- */

/* Of the environment, unless the program runs with another user's rights. */
static const char *
variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* @param ret_path owned; NULL when there is no home. */
static esdm_status
default_file(char **ret_path, esdm_error *err)
{
    const char *named = variable("AWS_SHARED_CREDENTIALS_FILE");
    const char *home = variable("HOME");
    *ret_path = NULL;
    if (named == NULL && home == NULL)
        return ESDM_OK;
    if (named != NULL)
        *ret_path = strdup(named);
    else if (asprintf(ret_path, "%s/.aws/credentials", home) < 0)
        *ret_path = NULL;
    return *ret_path != NULL ? ESDM_OK : esdm__error_nomem(err, 256, "a path");
}

static esdm_status
not_found(const char *path, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EACCES,
                           "no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                           "write a profile into '%s', or give \"access_key\" and \"secret_key\" "
                           "in the configuration",
                           path != NULL ? path : "~/.aws/credentials");
}

static esdm_status
from_file(const s3__credential_options *wanted, s3__credentials *ret, esdm_error *err)
{
    const char *profile = wanted->profile != NULL ? wanted->profile : variable("AWS_PROFILE");
    bool stated = wanted->profile != NULL || wanted->file != NULL || profile != NULL;
    char *path = NULL;
    esdm_status status = wanted->file != NULL ? ESDM_OK : default_file(&path, err);
    const char *file = wanted->file != NULL ? wanted->file : path;
    if (status == ESDM_OK && file == NULL)
        status = not_found(NULL, err);
    else if (status == ESDM_OK)
        status = load_file(file, profile != NULL ? profile : "default", ret, err);
    if (status == ESDM_ENOENT && !stated)
        status = not_found(file, err);
    else if (status == ESDM_ENOENT)
        status = ESDM_EACCES; /* nothing of the site is absent */
    if (status != ESDM_OK && err != NULL)
        err->status = status;
    free(path);
    return status;
}

esdm_status
s3__credentials_find(const s3__credential_options *wanted, s3__credentials *ret_credentials,
                     esdm_error *err)
{
    if (wanted->access_key != NULL)
        return set_all(ret_credentials, wanted->access_key, wanted->secret_key,
                       wanted->session_token, "the site configuration", err);
    const char *access = variable("AWS_ACCESS_KEY_ID");
    const char *secret = variable("AWS_SECRET_ACCESS_KEY");
    if (wanted->profile != NULL || wanted->file != NULL || access == NULL)
        return from_file(wanted, ret_credentials, err);
    if (secret == NULL)
        return esdm__error_set(err, ESDM_EACCES,
                               "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
    return set_all(ret_credentials, access, secret, variable("AWS_SESSION_TOKEN"),
                   "AWS_ACCESS_KEY_ID", err);
}
