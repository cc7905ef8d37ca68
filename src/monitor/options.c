/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "monitor/options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct {
    const char *name;
    uint32_t bit;
} modules[] = {
    {"stats", ESDM__MONITOR_STATS}, {"trace", ESDM__MONITOR_TRACE}, {"node", ESDM__MONITOR_NODE}};

uint32_t
esdm__monitor_module(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strlen(modules[i].name) == bytes && memcmp(modules[i].name, name, bytes) == 0)
            return modules[i].bit;
    }
    return 0;
}

bool
esdm__monitor_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t bytes = strlen(end);
    return length >= bytes && strcmp(text + length - bytes, end) == 0;
}

esdm_status
esdm__monitor_check_file(const char *file, const char *source, esdm_error *err)
{
    if (esdm__monitor_ends_with(file, ".otf2"))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "%s: '%.200s': name a database, such as trace:runs.sqlite, of which "
                               "'esdm-explain --trace run.otf2 runs.sqlite#latest' makes one "
                               "archive of all ranks; a name that ends in .jsonl gets JSON Lines, "
                               "one in .json trace events for Perfetto",
                               source, file);
    return ESDM_OK;
}

/* "trace:FILE", of `bytes` bytes. */
static esdm_status
parse_one(const char *text, size_t bytes, const char *source, esdm__monitor_options *o,
          esdm_error *err)
{
    const char *colon = memchr(text, ':', bytes);
    size_t name = colon != NULL ? (size_t) (colon - text) : bytes;
    uint32_t bit = esdm__monitor_module(text, name);
    if (bit == 0 || (colon != NULL && (bit == ESDM__MONITOR_NODE || name + 1 == bytes)))
        return esdm__error_set(err, ESDM_EINVAL,
                               "%s: '%.*s' is none of stats, stats:FILE, trace, trace:FILE, node, "
                               "off",
                               source, (int) (bytes < 200 ? bytes : 200), text);
    o->modules |= bit;
    if (colon == NULL)
        return ESDM_OK;
    char **file = bit == ESDM__MONITOR_STATS ? &o->stats_file : &o->trace_file;
    char *copy = strndup(colon + 1, bytes - name - 1);
    if (copy == NULL)
        return esdm__error_nomem(err, bytes, source);
    esdm_status status = esdm__monitor_check_file(copy, source, err);
    if (status != ESDM_OK) {
        free(copy);
        return status;
    }
    free(*file);
    *file = copy;
    return ESDM_OK;
}

esdm_status
esdm__monitor_parse(const char *text, const char *source, esdm__monitor_options *options,
                    esdm_error *err)
{
    esdm__monitor_options o = {0};
    esdm_status status = esdm__monitor_options_copy(options, &o, err);
    o.modules &= ESDM__MONITOR_RUNS | ESDM__MONITOR_RULES;
    if (strcmp(text, "off") == 0) {
        o.modules = 0;
        text = "";
    }
    while (status == ESDM_OK && *text != '\0') {
        size_t bytes = strcspn(text, ",");
        if (bytes > 0)
            status = parse_one(text, bytes, source, &o, err);
        text += bytes + (text[bytes] == ',');
    }
    if (status != ESDM_OK) {
        esdm__monitor_options_clear(&o);
        return status;
    }
    esdm__monitor_options_clear(options);
    *options = o;
    return ESDM_OK;
}

void
esdm__monitor_options_clear(esdm__monitor_options *options)
{
    free(options->stats_file);
    free(options->trace_file);
    options->stats_file = NULL;
    options->trace_file = NULL;
    free(options->runs);
    options->runs = NULL;
    for (size_t i = 0; i < options->nrules; i++)
        free(options->rules[i].targets);
    options->nrules = 0;
}

esdm__monitor_rule
esdm__monitor_rule_default(bool of_run)
{
    return (esdm__monitor_rule){.of_run = of_run,
                                .slower = 3,
                                .then = ESDM__MONITOR_TRACE,
                                .for_s = 60,
                                .bytes = UINT64_C(16) << 20,
                                .times = 3};
}

static bool
copy_text(const char *text, char **ret_copy)
{
    if (text == NULL)
        return true;
    *ret_copy = strdup(text);
    return *ret_copy != NULL;
}

esdm_status
esdm__monitor_options_copy(const esdm__monitor_options *options, esdm__monitor_options *ret_options,
                           esdm_error *err)
{
    *ret_options = *options;
    ret_options->stats_file = NULL;
    ret_options->trace_file = NULL;
    ret_options->runs = NULL;
    bool good = copy_text(options->stats_file, &ret_options->stats_file) &&
                copy_text(options->trace_file, &ret_options->trace_file) &&
                copy_text(options->runs, &ret_options->runs);
    for (size_t i = 0; i < options->nrules; i++) {
        ret_options->rules[i].targets = NULL;
        good = good && copy_text(options->rules[i].targets, &ret_options->rules[i].targets);
    }
    if (good)
        return ESDM_OK;
    return esdm__error_nomem(err, sizeof *options, "the monitor");
}
