/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Containers that are not there: what the program perhaps meant, or how to bring back what was
 * removed. "No such file or directory" cannot tell. Some programs ask whether a file exists before
 * they open it, and end when it does not; others ask so for what they are about to make. Which it
 * was shows at the end.
 */

#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Not to programs that try many names. */
#define SUGGESTIONS_MOST 3

static atomic_int told;
static atomic_int site;
enum { SITE_UNKNOWN, SITE_NONE, SITE_TOLD };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char asked[ESDM_CONTAINER_NAME_MAX + 1]; /* under the lock; "": none, or it was told */

static void
ask(const char *name)
{
    (void) pthread_mutex_lock(&lock);
    (void) snprintf(asked, sizeof asked, "%s", name);
    (void) pthread_mutex_unlock(&lock);
}

void
esdmnc_missing_note(const char *name)
{
    ask(name);
}

void
esdmnc_missing_forget(void)
{
    ask("");
}

/* NAME@7, NAME@TIME: why there is none, that is, which there are. */
static bool
tell_snapshot(esdm_session *session, const char *name)
{
    esdm_container_info info;
    esdm_error err = {0};
    if (strchr(name, '@') == NULL ||
        esdm_container_stat(session, name, &info, &err) != ESDM_ENOENT ||
        (strstr(err.message, " has no ") == NULL && strstr(err.message, "snapshot") == NULL))
        return false;
    if (atomic_fetch_add(&told, 1) < SUGGESTIONS_MOST)
        esdmnc_say("%s", err.message);
    return true;
}

void
esdmnc_missing_tell(esdm_session *session, const char *name)
{
    char text[2 * ESDM_CONTAINER_NAME_MAX + 128];
    ask("");
    if (atomic_load(&told) >= SUGGESTIONS_MOST || tell_snapshot(session, name))
        return;
    esdm_container_suggest(session, name, text, sizeof text);
    if (text[0] != '\0' && atomic_fetch_add(&told, 1) < SUGGESTIONS_MOST)
        esdmnc_say("there is no container '%s'; %s", name, text);
}

void
esdmnc_missing_site(void)
{
    int unknown = SITE_UNKNOWN;
    (void) atomic_compare_exchange_strong(&site, &unknown, SITE_NONE);
}

void
esdmnc_missing_tell_site(void)
{
    int none = SITE_NONE;
    if (atomic_compare_exchange_strong(&site, &none, SITE_TOLD))
        esdmnc_say("there is no site yet: the default one is made when something is first written; "
                   "one that others have made is named by ESDM_CONFIG");
}

void
esdmnc_missing_ending(int status)
{
    char name[sizeof asked];
    esdm_container_info info;
    esdm_error err = {0};
    esdm_session *session = status != 0 ? esdmnc_session_now() : NULL;
    (void) pthread_mutex_lock(&lock);
    (void) snprintf(name, sizeof name, "%s", asked);
    (void) pthread_mutex_unlock(&lock);
    if (status != 0 && session == NULL)
        esdmnc_missing_tell_site();
    if (session == NULL || name[0] == '\0' ||
        esdm_container_stat(session, name, &info, &err) != ESDM_ENOENT)
        return;
    if (name[0] == '?') /* a query */
        esdmnc_say("%s", err.message);
    else
        esdmnc_missing_tell(session, name);
}
