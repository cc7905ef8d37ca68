/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Regular expressions, by PCRE2. */

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "query/query.h"

struct esdm__regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

/* What a pattern may try on one text, and how deep: a pattern is input. */
#define STEPS_MAX  1000000u
#define MEMORY_KIB 4096u

esdm_status
esdm__regex_new(const char *pattern, esdm__regex **ret_regex, esdm_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    esdm__regex *regex = calloc(1, sizeof *regex);
    if (regex == NULL)
        return esdm__error_nomem(err, sizeof *regex, "a regular expression");
    regex->code = pcre2_compile((PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                                &code, &at, NULL);
    if (regex->code == NULL) {
        PCRE2_UCHAR why[120];
        (void) pcre2_get_error_message(code, why, sizeof why);
        free(regex);
        return esdm__error_set(err, ESDM_EINVAL, "regular expression, byte %zu: %s",
                               (size_t) at + 1, (const char *) why);
    }
    regex->limits = pcre2_match_context_create(NULL);
    if (regex->limits == NULL) {
        esdm__regex_free(regex);
        return esdm__error_nomem(err, sizeof *regex, "a regular expression");
    }
    (void) pcre2_set_match_limit(regex->limits, STEPS_MAX);
    (void) pcre2_set_heap_limit(regex->limits, MEMORY_KIB);
    *ret_regex = regex;
    return ESDM_OK;
}

/* Bytes that stand for themselves in a pattern, and in a glob. */
static bool
is_literal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("_-/:,;=@%&~!\"'<> ", c) != NULL);
}

/* Literal bytes and escaped signs at the beginning are certain, but for the last one where it is
 * optional or repeated. An alternative, or an option, anywhere makes all uncertain. */
void
esdm__regex_glob(const char *pattern, char *ret_glob)
{
    bool begins = pattern[0] == '^';
    const char *at = pattern + begins;
    char *out = ret_glob;
    if (!begins)
        *out++ = '*';
    char *first = out;
    bool certain = strchr(pattern, '|') == NULL && strstr(pattern, "(?") == NULL &&
                   strstr(pattern, "(*") == NULL && strstr(pattern, "\\Q") == NULL &&
                   strstr(pattern, "\\E") == NULL;
    while (certain && *at != '\0') {
        bool sign = at[0] == '\\' && at[1] != '\0' && strchr("./-+()^$|{}", at[1]) != NULL;
        if (!sign && !is_literal(*at))
            break;
        at += sign;
        *out++ = *at++;
    }
    if (out > first && *at != '\0' && strchr("*?+{", *at) != NULL)
        out--;
    if (out > first || begins)
        *out++ = '*';
    *out = '\0';
}

void
esdm__regex_free(esdm__regex *regex)
{
    if (regex == NULL)
        return;
    pcre2_match_context_free(regex->limits);
    pcre2_code_free(regex->code);
    free(regex);
}

esdm_status
esdm__regex_matches(const esdm__regex *regex, const char *text, bool *ret_matches, esdm_error *err)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    if (data == NULL)
        return esdm__error_nomem(err, strlen(text), "a regular expression");
    int code = pcre2_match(regex->code, (PCRE2_SPTR) text, strlen(text), 0, 0, data, regex->limits);
    pcre2_match_data_free(data);
    if (code < 0 && code != PCRE2_ERROR_NOMATCH)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the regular expression takes too long for the text '%.60s'; write "
                               "it without nested repetitions",
                               text);
    *ret_matches = code >= 0;
    return ESDM_OK;
}
