/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * libnetcdf is not made for threads, its list of open files least of all: two opens at once can get
 * the same ncid, or each a list of its own, of which one is forgotten (NC_EBADID), and a miscounted
 * list is freed while files are open. Containers may be used by threads; so what changes the list
 * is internal but exported, as NC_infermodel is, and goes through here one call at a time. A look
 * into the list needs no lock: the entry of an open file stays where it is.
 */
#include "router/overrides.h"

#include <pthread.h>

/* Internal functions of libnetcdf; a file's entry is a struct NC. */
ESDMNC_EXPORT int add_to_NCList(void *file);
ESDMNC_EXPORT void del_from_NCList(void *file);

/** Held for the real calls: a few pointer steps, or making and freeing the list. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/** Held while a libnetcdf is initialised. The thread that does it may open files meanwhile. */
static pthread_mutex_t start_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int
add_to_NCList(void *file)
{
    esdmnc__library *library = CALLER();
    pthread_mutex_lock(&list_lock);
    int status = CALL_REAL(library, add_to_NCList, file);
    pthread_mutex_unlock(&list_lock);
    return status;
}

void
del_from_NCList(void *file)
{
    esdmnc__library *library = CALLER();
    __typeof__(&del_from_NCList) real = esdmnc__real(library, ESDMNC_FN_del_from_NCList);
    pthread_mutex_lock(&list_lock);
    if (real) {
        real(file);
    }
    pthread_mutex_unlock(&list_lock);
}

/* Says that it is done before it begins, so that the first call of another thread would go on in a
 * library that is half there. */
ESDMNC_EXPORT int
nc_initialize(void)
{
    esdmnc__library *library = CALLER();
    pthread_mutex_lock(&start_lock);
    int status = CALL_REAL(library, nc_initialize);
    pthread_mutex_unlock(&start_lock);
    return status;
}

void
esdmnc__initialised(void)
{
    pthread_mutex_lock(&start_lock);
    pthread_mutex_unlock(&start_lock);
}

void
esdmnc__filelist_forked(void)
{
    pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t start = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    list_lock = list;
    start_lock = start;
}
