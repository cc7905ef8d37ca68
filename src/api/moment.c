/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/moment.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/digest.h"
#include "api/formers.h"
#include "api/seen.h"
#include "api/tags.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/read/coarse.h"

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS    (86400 * SECOND_NS)
/* So many are looked for one by one where there may be so many that a list of all takes longer. */
#define FEW  8
#define MANY 100

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
    uint64_t found_ns;
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
                                     : snapshot == k->wanted->number) {
        k->found = snapshot;
        k->found_ns = time_ns;
    }
    return true;
}

static esdm_status
look(esdm_session *session, const char *stored, kept *k, esdm_error *err)
{
    k->count = 0;
    k->found = 0;
    esdm_status status = session->meta->snapshot_list(session->store, stored, note, k, err);
    if (status == ESDM_OK && k->failed)
        return esdm__error_nomem(err, k->count * sizeof *k->numbers, "a list of snapshots");
    if (k->wanted->kind == SAID_BACK)
        k->found = k->wanted->number < k->count ? k->numbers[k->count - 1 - k->wanted->number] : 0;
    return status;
}

static esdm_status
nothing_found(const char *base, const char *text, const kept *k, esdm_error *err)
{
    char numbers[128] = "";
    size_t used = 0;
    size_t from = k->count > 8 ? k->count - 8 : 0;
    for (size_t i = from; i < k->count && used < sizeof numbers - 24; i++)
        used += (size_t) snprintf(numbers + used, sizeof numbers - used, "%s%" PRIu64,
                                  i > from ? ", " : "", k->numbers[i]);
    return esdm__error_set(
        err, ESDM_ENOENT,
        "container '%.200s' has no snapshot '%.40s': kept %s %s%s (esdm-log lists "
        "them; \"history\" of the site says how many are kept)",
        base, text, k->count == 1 ? "is" : "are", from > 0 ? "… " : "", numbers);
}

/* ---- former containers -------------------------------------------------------------------- */

/* A name in time as it is written, to the nanosecond. */
static void
format_time(uint64_t time_ns, char ret_text[40])
{
    time_t seconds = (time_t) (time_ns / SECOND_NS);
    struct tm date;
    (void) gmtime_r(&seconds, &date);
    size_t bytes = strftime(ret_text, 40, "%Y-%m-%dT%H:%M:%S", &date);
    (void) snprintf(ret_text + bytes, 40 - bytes, ".%09u", (unsigned) (time_ns % SECOND_NS));
}

/* Adds to what is wrong how what had the name before is read. @param read_ns a time at which it is
 * found. @param has_it whether it has what was asked for. */
static esdm_status
tell_of_former(const char *base, const esdm__former_record *former, uint64_t read_ns, bool has_it,
               esdm_error *err)
{
    char lost[40], read[40];
    char before[ESDM_ERROR_MESSAGE_BYTES];
    format_time(former->time_ns, lost);
    format_time(read_ns, read);
    lost[19] = '\0'; /* to the second */
    (void) snprintf(before, sizeof before, "%.300s", err->message);
    return esdm__error_set(err, ESDM_ENOENT,
                           "%s; the container that was %s at %s%s is '%.200s@%s' (esdm-restore "
                           "--id %s '%.200s' brings it back, esdm-ls --replaced lists all)",
                           before, former->removed ? "removed" : "replaced", lost,
                           has_it ? " has it: it" : "", base, read, former->id, base);
}

/* A number: the newest of them that has such a snapshot is told of, else the newest one. */
static esdm_status
tell_who_has_it(esdm_session *session, const esdm__formers *all, const kept *wanted,
                esdm_error *err)
{
    const esdm__former_record *newest = &all->items[all->count - 1];
    for (size_t i = all->count; i-- > 0 && wanted->wanted->kind == SAID_NUMBER;) {
        kept k = {.wanted = wanted->wanted};
        esdm_error ignored;
        bool there = look(session, all->items[i].stored, &k, &ignored) == ESDM_OK && k.found != 0;
        free(k.numbers);
        if (there)
            return tell_of_former(all->name, &all->items[i], k.found_ns, true, err);
    }
    return tell_of_former(all->name, newest, newest->time_ns - 1, false, err);
}

/* The one that had the name at that time; where the name is free now, and a number was said, the
 * last one that had it. NULL: none. */
static const esdm__former_record *
choose_former(const esdm__formers *all, const said *wanted, bool absent)
{
    if (wanted->kind != SAID_TIME)
        return absent && all->count > 0 ? &all->items[all->count - 1] : NULL;
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].created_ns <= wanted->time_ns && wanted->time_ns < all->items[i].time_ns)
            return &all->items[i];
    }
    return NULL;
}

/* Looks where the container of that name has no such snapshot, or is not there. */
static esdm_status
look_at_formers(esdm_session *session, const char *base, const char *text, bool absent, kept *k,
                esdm__moment *ret_moment, esdm_error *err)
{
    esdm__formers all;
    esdm_status status = esdm__formers_load(session, base, &all, err);
    const esdm__former_record *one =
        status == ESDM_OK ? choose_former(&all, k->wanted, absent) : NULL;
    if (one != NULL) {
        (void) snprintf(ret_moment->stored, sizeof ret_moment->stored, "%s", one->stored);
        status = look(session, one->stored, k, err);
    }
    if (status == ESDM_OK && k->found == 0) {
        esdm_error why = {0};
        if (absent && one == NULL && all.count > 0)
            (void) esdm__error_set(&why, ESDM_ENOENT,
                                   "there was no container '%.200s' then: '%.40s' is "
                                   "no time of a snapshot that is kept",
                                   base, text);
        else if (absent && one == NULL)
            (void) esdm__error_set(&why, ESDM_ENOENT, "container '%s' does not exist", base);
        else
            (void) nothing_found(base, text, k, &why);
        status = all.count > 0 ? tell_who_has_it(session, &all, k, &why) : why.status;
        if (err != NULL)
            *err = why;
    }
    esdm__formers_clear(&all);
    return status;
}

/* ESDM_ENOENT: it is not kept. */
static esdm_status
look_for(esdm_session *session, const esdm_meta_container *record, uint64_t snapshot)
{
    esdm_error ignored;
    if (snapshot == 0 || snapshot > record->snapshot)
        return ESDM_ENOENT;
    esdm_status status = session->meta->pin(session->store, record->container, snapshot, &ignored);
    if (status == ESDM_OK)
        session->meta->unpin(session->store, record->container, snapshot);
    return status;
}

/* Of many snapshots one of the last few. @return 0: the list tells, as it does when one that is
 * kept may have seemed to be none: by a failure, or since a commit let older ones go. */
static uint64_t
look_near(esdm_session *session, const char *base, const esdm_meta_container *record, uint64_t back)
{
    esdm_meta_container now;
    esdm_error ignored;
    esdm_status status = ESDM_OK;
    uint64_t left = back;
    uint64_t snapshot = record->snapshot >= MANY ? record->snapshot : 0;
    for (int asked = 0; snapshot != 0 && left > 0 && asked < 2 * FEW; asked++) {
        status = look_for(session, record, --snapshot);
        left -= status == ESDM_OK;
        if (status != ESDM_OK && status != ESDM_ENOENT)
            return 0;
    }
    bool same = left == 0 && snapshot != 0 &&
                session->meta->container_find(session->store, base, &now, &ignored) == ESDM_OK &&
                now.container == record->container && now.snapshot == record->snapshot;
    return same ? snapshot : 0;
}

/* A number needs no list of all snapshots, which takes long where there are many; nor does a time
 * where the store can look for it, nor one of the last few where there are many. @return the
 * number; 0: the list tells. */
static uint64_t
look_without_list(esdm_session *session, const char *base, const said *wanted)
{
    esdm_meta_container record;
    esdm_error ignored;
    bool near = wanted->kind == SAID_BACK && wanted->number <= FEW;
    if (wanted->kind == SAID_TIME && session->meta->snapshot_at != NULL) {
        uint64_t time_ns = wanted->time_ns < INT64_MAX ? wanted->time_ns : INT64_MAX;
        uint64_t found = 0;
        esdm_status status =
            session->meta->snapshot_at(session->store, base, time_ns, &found, &ignored);
        return status == ESDM_OK ? found : 0;
    }
    if ((wanted->kind != SAID_NUMBER && !near) ||
        session->meta->container_find(session->store, base, &record, &ignored) != ESDM_OK)
        return 0;
    if (near)
        return look_near(session, base, &record, wanted->number);
    return look_for(session, &record, wanted->number) == ESDM_OK ? wanted->number : 0;
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
    ret_moment->snapshot = look_without_list(session, base, &wanted);
    if (ret_moment->snapshot != 0)
        return ESDM_OK;
    esdm_status status = look(session, base, &k, &why);
    bool absent = status == ESDM_ENOENT;
    if (absent || (status == ESDM_OK && k.found == 0))
        status = look_at_formers(session, base, text, absent, &k, ret_moment, &why);
    ret_moment->snapshot = k.found;
    free(k.numbers);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static bool
has_formers(esdm_session *session, const char *base)
{
    esdm__formers all;
    bool has = esdm__formers_load(session, base, &all, NULL) == ESDM_OK && all.count > 0;
    esdm__formers_clear(&all);
    return has;
}

/* "?accuracy=…" and "?digest" say how a container is read: nobody would find one that is called so.
 */
static esdm_status
check_not_asked(esdm_session *session, const char *name, esdm_error *err)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_meta_container record;
    if (esdm__coarse_is_said(name, base) == NULL && !esdm__digest_is_asked(name, base))
        return ESDM_OK;
    if (session->meta->container_find(session->store, name, &record, NULL) == ESDM_OK)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES, "'%s' is for reading: write to '%s' itself", name,
                           base);
}

esdm_status
esdm__moment_check_new(esdm_session *session, const char *made, esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__name_to_be(made, name); /* NCO is told before */
    esdm_status status = check_not_asked(session, name, err);
    if (status != ESDM_OK)
        return status;
    if (esdm__name_is_shapes(name, NULL))
        return esdm__error_set(err, ESDM_EACCES,
                               "'%s' is a name of what ESDM keeps in a second shape: give another "
                               "name",
                               name);
    const char *text = suffix_of(name);
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    said wanted;
    esdm_meta_container record;
    if (text == NULL || !parse(text, &wanted))
        return ESDM_OK;
    (void) snprintf(base, sizeof base, "%.*s", (int) (text - 1 - name), name);
    if (session->meta->container_find(session->store, name, &record, NULL) == ESDM_OK ||
        (session->meta->container_find(session->store, base, &record, NULL) != ESDM_OK &&
         !has_formers(session, base)))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES,
                           "'%s' names a snapshot of '%s', which nobody can write to: write to "
                           "'%s' itself, or give another name",
                           name, base, base);
}
