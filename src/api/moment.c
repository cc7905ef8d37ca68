/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/moment.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/tags.h"
#include "base/buffer.h"
#include "base/error.h"

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS    (86400 * SECOND_NS)

/* What stands behind the '@'. */
typedef struct said {
    enum { SAID_NUMBER, SAID_BACK, SAID_TIME, SAID_TAG } kind;
    uint64_t number;  /* snapshot, or how many before the newest */
    uint64_t time_ns; /* the last nanosecond that counts */
    const char *tag;  /* borrowed */
} said;

static const char tag_prefix[] = "tag:";

static const char *
suffix_of(const char *name)
{
    const char *at = strrchr(name, '@');
    return at != NULL && at > name && strchr(at, '/') == NULL && at[1] != '\0' ? at + 1 : NULL;
}

bool
esdm__moment_is_said(const char *name)
{
    const char *text = suffix_of(name);
    return text != NULL && (isdigit((unsigned char) text[0]) || text[0] == '-' ||
                            strncmp(text, tag_prefix, sizeof tag_prefix - 1) == 0);
}

/* ---- what is said ------------------------------------------------------------------------- */

static bool
parse_number(const char *text, uint64_t *ret)
{
    char *end;
    if (!isdigit((unsigned char) text[0]) || strlen(text) > 18)
        return false;
    *ret = strtoull(text, &end, 10);
    return *end == '\0';
}

/* As many digits; moves on. */
static bool
take(const char **text, int digits, int *ret)
{
    *ret = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (!isdigit((unsigned char) **text))
            return false;
        *ret = *ret * 10 + (**text - '0');
    }
    return true;
}

static bool
take_mark(const char **text, char mark)
{
    if (**text != mark)
        return false;
    (*text)++;
    return true;
}

/* ".5", ".123456789": the last nanosecond of that part of a second. false: it is none. */
static bool
take_fraction(const char **text, uint64_t *ret_ns)
{
    uint64_t unit = SECOND_NS;
    uint64_t ns = 0;
    if (!isdigit((unsigned char) **text))
        return false;
    for (; isdigit((unsigned char) **text); (*text)++) {
        if (unit == 1)
            return false;
        unit /= 10;
        ns += (uint64_t) (**text - '0') * unit;
    }
    *ret_ns = ns + unit - 1;
    return true;
}

/* YYYY-MM-DD[THH:MM[:SS[.F]]][Z], UTC. A day counts to its end, a time until then. */
static bool
parse_time(const char *text, uint64_t *ret_ns)
{
    struct tm date = {0};
    bool whole_day = true;
    uint64_t fraction = SECOND_NS - 1;
    if (!take(&text, 4, &date.tm_year) || !take_mark(&text, '-') || !take(&text, 2, &date.tm_mon) ||
        !take_mark(&text, '-') || !take(&text, 2, &date.tm_mday))
        return false;
    if (take_mark(&text, 'T') || take_mark(&text, ' ')) {
        whole_day = false;
        if (!take(&text, 2, &date.tm_hour) || !take_mark(&text, ':') ||
            !take(&text, 2, &date.tm_min))
            return false;
        bool says_seconds = take_mark(&text, ':');
        if (says_seconds && !take(&text, 2, &date.tm_sec))
            return false;
        if (says_seconds && take_mark(&text, '.') && !take_fraction(&text, &fraction))
            return false;
    }
    (void) take_mark(&text, 'Z');
    if (*text != '\0' || date.tm_year < 1970 || date.tm_mon < 1 || date.tm_mon > 12 ||
        date.tm_mday < 1 || date.tm_mday > 31 || date.tm_hour > 23 || date.tm_min > 59 ||
        date.tm_sec > 60)
        return false;
    date.tm_year -= 1900;
    date.tm_mon -= 1;
    int day = date.tm_mday;
    uint64_t seconds = (uint64_t) timegm(&date);
    if (date.tm_mday != day) /* there is no such day */
        return false;
    if (seconds > UINT64_MAX / SECOND_NS - 86400) { /* after the year 2554: the newest */
        *ret_ns = UINT64_MAX;
        return true;
    }
    *ret_ns = seconds * SECOND_NS + (whole_day ? DAY_NS - 1 : fraction);
    return true;
}

static bool
parse(const char *text, said *ret)
{
    ret->kind = SAID_NUMBER;
    if (parse_number(text, &ret->number))
        return true;
    ret->kind = SAID_BACK;
    if (text[0] == '-' && parse_number(text + 1, &ret->number))
        return true;
    ret->kind = SAID_TAG;
    ret->tag = text + sizeof tag_prefix - 1;
    if (strncmp(text, tag_prefix, sizeof tag_prefix - 1) == 0)
        return esdm__tag_is_valid(ret->tag);
    ret->kind = SAID_TIME;
    return parse_time(text, &ret->time_ns);
}

/* ---- the snapshots that are kept ---------------------------------------------------------- */

typedef struct kept {
    const said *wanted;
    uint64_t *numbers; /* owned; oldest first */
    size_t count;
    uint64_t found; /* 0: none */
    uint64_t oldest_ns;
    bool failed;
} kept;

static bool
note(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer, const char *message,
     void *user)
{
    kept *k = user;
    (void) parent, (void) writer, (void) message;
    if (k->count == 0)
        k->oldest_ns = time_ns;
    if (!esdm__array_grow(&k->numbers, k->count, sizeof *k->numbers)) {
        k->failed = true;
        return false;
    }
    k->numbers[k->count++] = snapshot;
    if (k->wanted->kind == SAID_TIME ? time_ns <= k->wanted->time_ns
                                     : snapshot == k->wanted->number)
        k->found = snapshot;
    return true;
}

static esdm_status
look(esdm_session *session, const char *stored, kept *k, esdm_error *err)
{
    esdm_status status = session->meta->snapshot_list(session->store, stored, note, k, err);
    if (status == ESDM_OK && k->failed)
        return esdm__error_nomem(err, k->count * sizeof *k->numbers, "a list of snapshots");
    if (k->wanted->kind == SAID_BACK)
        k->found = k->wanted->number < k->count ? k->numbers[k->count - 1 - k->wanted->number] : 0;
    return status;
}

/* The former container that had the name at that time. */
typedef struct search {
    const char *name;
    uint64_t time_ns;
    char stored[ESDM__FORMER_NAME_BYTES]; /* "": none */
} search;

static bool
find_former(const char *stored, const esdm_meta_container *record, void *user)
{
    search *s = user;
    esdm__former former;
    if (esdm__former_parse(stored, &former) && strcmp(former.name, s->name) == 0 &&
        record->created_ns <= s->time_ns && s->time_ns < former.time_ns)
        (void) snprintf(s->stored, sizeof s->stored, "%s", stored);
    return true;
}

static esdm_status
look_at_former(esdm_session *session, const char *base, uint64_t time_ns, kept *k,
               esdm__moment *ret_moment, esdm_error *err)
{
    char prefix[ESDM__FORMER_NAME_BYTES];
    search s = {.name = base, .time_ns = time_ns};
    (void) snprintf(prefix, sizeof prefix, ESDM__FORMER_PREFIX "/%s", base);
    esdm_status status =
        session->meta->container_list(session->store, prefix, find_former, &s, err);
    if (status != ESDM_OK || s.stored[0] == '\0')
        return status;
    memcpy(ret_moment->stored, s.stored, sizeof s.stored);
    k->count = 0;
    return look(session, s.stored, k, err);
}

static bool
count_former(const char *stored, const esdm_meta_container *record, void *user)
{
    search *s = user;
    esdm__former former;
    (void) record;
    if (esdm__former_parse(stored, &former) && strcmp(former.name, s->name) == 0)
        s->time_ns++;
    return true;
}

/* What else the name was: who replaces a container by `-O` or mode "w" looks for it here. */
static void
tell_formers(esdm_session *session, const char *base, char *text, size_t bytes)
{
    char prefix[ESDM__FORMER_NAME_BYTES];
    search s = {.name = base, .time_ns = 0};
    (void) snprintf(prefix, sizeof prefix, ESDM__FORMER_PREFIX "/%s", base);
    text[0] = '\0';
    if (session->meta->container_list(session->store, prefix, count_former, &s, NULL) == ESDM_OK &&
        s.time_ns > 0)
        (void) snprintf(text, bytes,
                        "; of what it replaced NAME@TIME and esdm-restore bring back %" PRIu64
                        " (esdm-ls --replaced)",
                        s.time_ns);
}

static esdm_status
nothing_found(esdm_session *session, const char *base, const char *text, const kept *k,
              esdm_error *err)
{
    char numbers[128] = "";
    char formers[160];
    size_t used = 0;
    size_t from = k->count > 8 ? k->count - 8 : 0;
    for (size_t i = from; i < k->count && used < sizeof numbers - 24; i++)
        used += (size_t) snprintf(numbers + used, sizeof numbers - used, "%s%" PRIu64,
                                  i > from ? ", " : "", k->numbers[i]);
    tell_formers(session, base, formers, sizeof formers);
    return esdm__error_set(err, ESDM_ENOENT,
                           "container '%s' has no snapshot '%s': kept %s %s%s (esdm-log lists "
                           "them; \"history\" of the site says how many are kept)%s",
                           base, text, k->count == 1 ? "is" : "are", from > 0 ? "… " : "", numbers,
                           formers);
}

/* A number needs no list of all snapshots, which takes long where there are many. */
static bool
is_kept(esdm_session *session, const char *base, uint64_t snapshot)
{
    esdm_meta_container record;
    esdm_error ignored;
    if (session->meta->container_find(session->store, base, &record, &ignored) != ESDM_OK ||
        snapshot == 0 || snapshot > record.snapshot ||
        session->meta->pin(session->store, record.container, snapshot, &ignored) != ESDM_OK)
        return false;
    session->meta->unpin(session->store, record.container, snapshot);
    return true;
}

esdm_status
esdm__moment_find(esdm_session *session, const char *name, esdm__moment *ret_moment,
                  esdm_error *err)
{
    const char *text = suffix_of(name);
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    said wanted = {.number = 0};
    kept k = {.wanted = &wanted};
    esdm_error why = {0};
    if (text == NULL)
        return esdm__error_set(err, ESDM_ENOENT, "container '%s' does not exist", name);
    (void) snprintf(base, sizeof base, "%.*s", (int) (text - 1 - name), name);
    if (!parse(text, &wanted))
        return esdm__error_set(err, ESDM_EINVAL,
                               "container '%s' does not exist, and '%s' is no snapshot of '%s': "
                               "write NAME@7, NAME@-1, NAME@2026-11-20T12:00 (UTC) or "
                               "NAME@tag:TAG",
                               name, text, base);
    if (wanted.kind == SAID_TAG) {
        uint64_t record;
        return esdm__moment_find_tag(session, base, wanted.tag, ret_moment, &record, err);
    }
    (void) snprintf(ret_moment->stored, sizeof ret_moment->stored, "%s", base);
    if (wanted.kind == SAID_NUMBER && is_kept(session, base, wanted.number)) {
        ret_moment->snapshot = wanted.number;
        return ESDM_OK;
    }
    esdm_status status = look(session, base, &k, &why);
    bool absent = status == ESDM_ENOENT;
    if ((status == ESDM_OK || absent) && k.found == 0 && wanted.kind == SAID_TIME)
        status = look_at_former(session, base, wanted.time_ns, &k, ret_moment, &why);
    ret_moment->snapshot = k.found;
    if (status == ESDM_OK && k.found == 0 && absent)
        status = esdm__error_set(&why, ESDM_ENOENT, "container '%s' does not exist", base);
    else if (status == ESDM_OK && k.found == 0)
        status = nothing_found(session, base, text, &k, &why);
    free(k.numbers);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm__moment_check_new(esdm_session *session, const char *name, esdm_error *err)
{
    const char *text = suffix_of(name);
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    said wanted;
    esdm_meta_container record;
    if (text == NULL || !parse(text, &wanted))
        return ESDM_OK;
    (void) snprintf(base, sizeof base, "%.*s", (int) (text - 1 - name), name);
    if (session->meta->container_find(session->store, name, &record, NULL) == ESDM_OK ||
        session->meta->container_find(session->store, base, &record, NULL) != ESDM_OK)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES,
                           "'%s' names a snapshot of '%s', which nobody can write to: write to "
                           "'%s' itself, or give another name",
                           name, base, base);
}
