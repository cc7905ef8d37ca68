/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"

#define DEFAULT_PART_BYTES   (UINT64_C(32) << 20)
#define DEFAULT_OBJECT_BYTES (UINT64_C(8) << 20)
#define DEFAULT_MEMORY_BYTES (UINT64_C(32) << 20)
#define PREFIX_MAX           256u

static const char *const known_keys[] = {
    "name",          "plugin",  "bucket",      "prefix",     "endpoint",         "region",
    "style",         "ca_file", "access_key",  "secret_key", "session_token",    "profile",
    "part",          "object",  "connections", "timeout",    "credentials_file", "sign_payload",
    "create_bucket", "hedge",   NULL};

void
s3__options_clear(s3__options *options)
{
    free(options->name);
    free(options->path);
    free(options->site_id);
    free(options->endpoint);
    free(options->host);
    free(options->bucket);
    free(options->prefix);
    free(options->region);
    free(options->ca_file);
    free(options->place);
    *options = (s3__options){0};
}

static esdm_status
copy(const char *text, char **ret_copy, esdm_error *err)
{
    *ret_copy = strdup(text);
    return *ret_copy != NULL ? ESDM_OK : esdm__error_nomem(err, strlen(text) + 1, "a text");
}

/* ---- single keys ---------------------------------------------------------------------------- */

/* *ret_text stays as it is when the key is absent. */
static esdm_status
optional_text(const esdm__json_node *object, const char *key, const char **ret_text,
              esdm_error *err)
{
    esdm__json_node node;
    if (!esdm__json_member(object, key, &node))
        return ESDM_OK;
    esdm_status status = esdm__json_string(&node, ret_text, err);
    if (status == ESDM_OK && (*ret_text)[0] == '\0')
        return esdm__json_error(&node, err, "the text is empty; leave the key out instead");
    return status;
}

static esdm_status
optional_flag(const esdm__json_node *object, const char *key, bool *ret_flag, esdm_error *err)
{
    esdm__json_node node;
    if (!esdm__json_member(object, key, &node))
        return ESDM_OK;
    if (!json_is_boolean(node.value))
        return esdm__json_error(&node, err, "expected true or false");
    *ret_flag = json_is_true(node.value);
    return ESDM_OK;
}

static bool
has_only(const char *text, const char *others)
{
    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char) *text) && strchr(others, *text) == NULL)
            return false;
    }
    return true;
}

static esdm_status
read_bucket(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    const char *bucket = NULL;
    esdm_status status = esdm__json_require(root, "bucket", &node, err);
    if (status != ESDM_OK || (status = esdm__json_string(&node, &bucket, err)) != ESDM_OK)
        return status;
    size_t bytes = strlen(bucket);
    if (bytes < 3 || bytes > 63 || !has_only(bucket, ".-_") || bucket[0] == '.')
        return esdm__json_error(
            &node, err,
            "a bucket's name has 3 ... 63 letters, digits, '.' and '-'; folders "
            "belong into \"prefix\"");
    return copy(bucket, &options->bucket, err);
}

/* "/a/b/" and "a/b" mean the same: objects whose keys begin with "a/b/". */
static esdm_status
read_prefix(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    const char *prefix = "";
    if (esdm__json_member(root, "prefix", &node)) {
        esdm_status status = esdm__json_string(&node, &prefix, err);
        if (status != ESDM_OK)
            return status;
    }
    prefix += strspn(prefix, "/");
    size_t bytes = strlen(prefix);
    while (bytes > 0 && prefix[bytes - 1] == '/')
        bytes--;
    bool wrong = bytes > PREFIX_MAX;
    for (size_t i = 0; i < bytes && !wrong; i++) {
        size_t step = strcspn(prefix + i, "/");
        wrong =
            iscntrl((unsigned char) prefix[i]) || prefix[i] == '/' ||
            (step == 1 && prefix[i] == '.' && (i == 0 || prefix[i - 1] == '/')) ||
            (step == 2 && strncmp(prefix + i, "..", 2) == 0 && (i == 0 || prefix[i - 1] == '/'));
        if (i + 1 < bytes && prefix[i + 1] == '/')
            i++; /* the single slash between two names */
    }
    if (wrong)
        return esdm__json_error(&node, err,
                                "expected names joined by '/', %u bytes at most, none of them "
                                "empty, \".\" or \"..\"",
                                PREFIX_MAX);
    if (asprintf(&options->prefix, "%.*s%s", (int) bytes, prefix, bytes > 0 ? "/" : "") < 0) {
        options->prefix = NULL;
        return esdm__error_nomem(err, bytes + 2, "a prefix");
    }
    return ESDM_OK;
}

static esdm_status
read_region(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    const char *region = "us-east-1";
    esdm_status status = optional_text(root, "region", &region, err);
    if (status != ESDM_OK)
        return status;
    if (strlen(region) > 63 || !has_only(region, "-_")) {
        (void) esdm__json_member(root, "region", &node);
        return esdm__json_error(&node, err, "a region has letters, digits and '-'");
    }
    return copy(region, &options->region, err);
}

static esdm_status
wrong_endpoint(const esdm__json_node *node, esdm_error *err)
{
    return esdm__json_error(node, err,
                            "expected \"https://HOST\" or \"https://HOST:PORT\" (or http), without "
                            "a path, a user or a password");
}

/* The header "host" must not name the port that the scheme implies: libcurl would not send it. */
static esdm_status
read_endpoint(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    char aws[128];
    const char *endpoint = NULL;
    esdm_status status = optional_text(root, "endpoint", &endpoint, err);
    if (status != ESDM_OK)
        return status;
    if (endpoint == NULL) {
        (void) snprintf(aws, sizeof aws, "https://s3.%s.amazonaws.com", options->region);
        endpoint = aws;
        options->host_style = strchr(options->bucket, '.') == NULL; /* no certificate fits dots */
    } else {
        (void) esdm__json_member(root, "endpoint", &node);
    }
    options->tls = strncmp(endpoint, "https://", 8) == 0;
    if (!options->tls && strncmp(endpoint, "http://", 7) != 0)
        return wrong_endpoint(&node, err);
    const char *host = endpoint + (options->tls ? 8 : 7);
    size_t bytes = strcspn(host, "/");
    if (bytes == 0 || bytes > 255 || strspn(host + bytes, "/") != strlen(host + bytes))
        return wrong_endpoint(&node, err);
    options->host = strndup(host, bytes);
    if (options->host == NULL)
        return esdm__error_nomem(err, bytes + 1, "an endpoint");
    if (!has_only(options->host, ".-_:[]"))
        return wrong_endpoint(&node, err);
    const char *implied = options->tls ? ":443" : ":80";
    char *port = strrchr(options->host, ':');
    if (port != NULL && strchr(port, ']') == NULL) {
        if (port[1] == '\0' || strspn(port + 1, "0123456789") != strlen(port + 1))
            return wrong_endpoint(&node, err);
        if (strcmp(port, implied) == 0)
            *port = '\0';
    }
    if (asprintf(&options->endpoint, "%s%s", options->tls ? "https://" : "http://", options->host) <
        0) {
        options->endpoint = NULL;
        return esdm__error_nomem(err, bytes + 9, "an endpoint");
    }
    return ESDM_OK;
}

static esdm_status
read_style(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    static const char *const styles[] = {"path", "host", NULL};
    esdm__json_node node;
    size_t choice = 0;
    if (!esdm__json_member(root, "style", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_choice(&node, styles, &choice, err);
    options->host_style = choice == 1;
    return status;
}

static esdm_status
read_ca_file(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    const char *file = NULL;
    esdm_status status = optional_text(root, "ca_file", &file, err);
    if (status != ESDM_OK || file == NULL)
        return status;
    (void) esdm__json_member(root, "ca_file", &node);
    if (file[0] != '/')
        return esdm__json_error(&node, err, "'%.200s' is not an absolute path", file);
    if (access(file, R_OK) != 0)
        return esdm__json_error(&node, err, "the file '%.200s' cannot be read: %m", file);
    return copy(file, &options->ca_file, err);
}

static esdm_status
read_limits(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm__json_node node;
    esdm_status status = ESDM_OK;
    uint64_t connections = 16;
    uint64_t seconds = 60;
    options->part_bytes = DEFAULT_PART_BYTES;
    options->object_bytes = DEFAULT_OBJECT_BYTES;
    options->sign_payload = !options->tls; /* TLS protects it as well */
    if (esdm__json_member(root, "connections", &node))
        status = esdm__json_u64(&node, 1, 256, &connections, err);
    if (status == ESDM_OK && esdm__json_member(root, "timeout", &node))
        status = esdm__json_u64(&node, 1, 3600, &seconds, err);
    if (status == ESDM_OK && esdm__json_member(root, "part", &node))
        status = esdm__json_size(&node, S3__PART_LEAST, S3__PART_MOST, &options->part_bytes, err);
    if (status == ESDM_OK && esdm__json_member(root, "object", &node))
        status = esdm__json_size(&node, 1, INT64_MAX, &options->object_bytes, err);
    if (status == ESDM_OK)
        status = optional_flag(root, "sign_payload", &options->sign_payload, err);
    if (status == ESDM_OK)
        status = optional_flag(root, "create_bucket", &options->create_bucket, err);
    options->hedge = true;
    if (status == ESDM_OK)
        status = optional_flag(root, "hedge", &options->hedge, err);
    options->connections = (uint32_t) connections;
    options->timeout_ms = (uint32_t) seconds * 1000;
    return status;
}

static esdm_status
read_credentials(const esdm__json_node *root, const s3__options *options,
                 s3__credentials *ret_credentials, esdm_error *err)
{
    s3__credential_options wanted = {0};
    esdm_status status;
    if ((status = optional_text(root, "access_key", &wanted.access_key, err)) != ESDM_OK ||
        (status = optional_text(root, "secret_key", &wanted.secret_key, err)) != ESDM_OK ||
        (status = optional_text(root, "session_token", &wanted.session_token, err)) != ESDM_OK ||
        (status = optional_text(root, "profile", &wanted.profile, err)) != ESDM_OK ||
        (status = optional_text(root, "credentials_file", &wanted.file, err)) != ESDM_OK)
        return status;
    if ((wanted.access_key == NULL) != (wanted.secret_key == NULL))
        return esdm__json_error(root, err, "\"access_key\" and \"secret_key\" go together");
    if (wanted.access_key != NULL && (wanted.profile != NULL || wanted.file != NULL))
        return esdm__json_error(root, err,
                                "give either keys, or \"profile\" and \"credentials_file\"");
    if (wanted.session_token != NULL && wanted.access_key == NULL)
        return esdm__json_error(root, err, "\"session_token\" needs \"access_key\"");
    status = s3__credentials_find(&wanted, ret_credentials, err);
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "%s", options->path);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static esdm_status
read_object(const esdm__json_node *root, s3__options *options, esdm_error *err)
{
    esdm_status status;
    if ((status = esdm__json_known_keys(root, known_keys, err)) != ESDM_OK ||
        (status = read_bucket(root, options, err)) != ESDM_OK ||
        (status = read_prefix(root, options, err)) != ESDM_OK ||
        (status = read_region(root, options, err)) != ESDM_OK ||
        (status = read_endpoint(root, options, err)) != ESDM_OK ||
        (status = read_style(root, options, err)) != ESDM_OK ||
        (status = read_ca_file(root, options, err)) != ESDM_OK ||
        (status = read_limits(root, options, err)) != ESDM_OK)
        return status;
    if (asprintf(&options->place, "s3://%s/%s at %s", options->bucket, options->prefix,
                 options->endpoint) < 0) {
        options->place = NULL;
        return esdm__error_nomem(err, 256, "a text");
    }
    return ESDM_OK;
}

esdm_status
s3__options_read(const esdm_plugin_config *config, s3__options *ret_options,
                 s3__credentials *ret_credentials, esdm_error *err)
{
    json_t *object = NULL;
    if (config->json == NULL || config->name == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "s3: a target needs a name and an object");
    const char *path = config->path != NULL ? config->path : config->name;
    esdm_status status;
    if ((status = copy(config->name, &ret_options->name, err)) != ESDM_OK ||
        (status = copy(path, &ret_options->path, err)) != ESDM_OK ||
        (status = copy(config->site_id != NULL ? config->site_id : "", &ret_options->site_id,
                       err)) != ESDM_OK ||
        (status = esdm__json_parse(config->json, strlen(config->json), path, &object, err)) !=
            ESDM_OK)
        return status;
    esdm__json_node root = esdm__json_root(object, path);
    ret_options->memory_bytes =
        config->memory_bytes > 0 ? config->memory_bytes : DEFAULT_MEMORY_BYTES;
    status = read_object(&root, ret_options, err);
    if (status == ESDM_OK)
        status = read_credentials(&root, ret_options, ret_credentials, err);
    json_decref(object);
    return status;
}
