/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_RESTORE_WORK_H
#define ESDM_JOURNAL_RESTORE_WORK_H

/** @file The containers of a catalogue that is brought back: what
 * restore_{containers,names,enter}.c share. One thread. */

#include "base/hidden_names.h"
#include "journal/restore.h"
#include "journal/whole.h"

/*
 * A call may be killed at any point, and another one then goes on. So in the catalogue each
 * container keeps its name until it gets the next one: a newer record takes the name over in one
 * step, and where names are exchanged by way of others, a fact tells what the container was called
 * before. Names are looked at from the same time on (FROM) until all is done.
 */
#define FACT_FROM   "esdm/restoring"  /* nanoseconds */
#define FACT_BEFORE "esdm/restoring/" /* and a uuid: the name that it had */
/* Goes behind ESDM__RESTORE_PREFIX and the uuid while a record is entered. */
#define NEW_RECORD "/new"
/* The begin of a name that a sealed container has for a moment, with "-d" at its end, before it
 * gets its own name: a sealed one may only be renamed to the name of a removed container. No former
 * container has such a name. */
#define SEALED_AWAY "/former//restoring-"
/* The begin of the new name of a container whose own name is not known any more. */
#define UNNAMED "restored-"

typedef char own_name[sizeof ESDM__RESTORE_PREFIX + ESDM__UUID_BYTES + sizeof NEW_RECORD];

/* A container of which something is known. */
typedef struct known {
    char uuid[ESDM__UUID_BYTES];
    char *name;      /* it should have; owned; NULL: none, it was removed or replaced */
    bool nameless;   /* what it was called is not known (yet) */
    char *base_name; /* in the catalogue that this began with; owned; NULL: it is not there */
    esdm_meta_container base;
    size_t first; /* its refs */
    size_t nrefs;
    uint64_t first_ns; /* the oldest of them */
    bool present;      /* it is in the catalogue now */
} known;

/* What a container was called from when on. */
typedef struct naming {
    uint64_t time_ns;
    char *name;     /* owned; NULL: no more */
    char *keep_as;  /* of the container that had the name; owned; NULL: none */
    char *from;     /* what it was called before; owned; NULL: not known */
    char *replaced; /* uuid of who had the name; owned; NULL: nobody */
    bool made;      /* the container was made, and nobody had the name */
    bool precise;   /* `replaced` is known */
    char uuid[ESDM__UUID_BYTES];
} naming;

typedef struct work {
    esdm__restoration *r;
    known *all; /* owned; by uuid */
    size_t count;
    naming *names; /* owned; by time */
    size_t nnames;
    known **holders; /* of names; owned; open addressing, a power of two */
    size_t slots;
    bool touched;       /* the catalogue is closed to others */
    bool interrupted;   /* an earlier call was */
    uint64_t from_ns;   /* names and removals that are older are in the catalogue */
    uint64_t newest_ns; /* last commit in the catalogue */
    bool failed;
} work;

static inline esdm_status
esdm__restore_no_memory(esdm_error *err)
{
    return esdm__error_nomem(err, sizeof(known), "the list of containers");
}

/** One of the list, which is sorted; NULL. */
known *esdm__restore_find(const work *w, const char *uuid);

/* names: restore_names.c */

void esdm__restore_free_naming(naming *one);
/** Whether it is to be in the catalogue: it is, or it was made after the backup (others were
 * removed before). */
bool esdm__restore_is_wanted(const work *w, const known *one);
/** The time from which an interrupted call looked at names. */
void esdm__restore_resume_time(work *w);
/** The catalogue has the names of its time; what came later is done once more, in its order. */
esdm_status esdm__restore_settle_names(work *w, esdm_error *err);

/* changing the catalogue: restore_enter.c */

/** Whether the name is one that containers have while they are brought back. */
bool esdm__restore_is_own_name(const char *name);
/** Tidies up behind an interrupted call. The list is sorted; second records leave it. */
esdm_status esdm__restore_resume(work *w, esdm_error *err);
/** Exchanges the record of a container in one step, or enters it: under a name of its own, until
 * all are there. */
esdm_status esdm__restore_enter(work *w, known *one, esdm__whole *whole, esdm_error *err);
/** Names are exchanged by way of ones that nobody else has. */
esdm_status esdm__restore_give_names(work *w, esdm_error *err);
/** Removes the second shapes of variables (base/hidden_names.h). */
esdm_status esdm__restore_drop_shapes(work *w, esdm_error *err);
/** All is done: nothing is left to resume, and a catalogue that was kept is opened. */
esdm_status esdm__restore_end(work *w, esdm_error *err);

#endif
