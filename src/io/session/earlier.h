/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_EARLIER_H
#define ESDM_IO_SESSION_EARLIER_H

/**
 * @file
 * What earlier runs of this program read on this site, so that this one can be served before it
 * asks. A record of bounded size per program, in the cache folder of the user.
 *
 * A record is a guess: each action counts what it gained (esdm__ahead_account), ends when the
 * program does something else, and is left out of later runs where it did not help. Nothing here
 * fails: without a record, or without memory, all is as if there were no earlier run.
 *
 * Threads: locked inside.
 */

#include "io/session/ahead.h"
#include "io/session/loops.h"
#include "monitor/monitor.h"
#include "site/site.h"

typedef struct esdm__earlier esdm__earlier;
/** How one dataset is read, now and in an earlier run; stays until the end of the session. */
typedef struct esdm__use esdm__use;

/** Whether earlier runs, of this program and of others, do not count for this process. */
bool esdm__earlier_is_off(const esdm__site *site);
/** Reads the record. NULL: earlier runs do not count for this process (configuration,
 *  $ESDM_EARLIER_RUNS, ranks other than 0, no folder), or there is no memory. */
esdm__earlier *esdm__earlier_new(const esdm__site *site);
/** Writes the record, and tells the monitor what was done and gained. Once; later calls do nothing.
 *  @param monitor may be NULL. */
void esdm__earlier_settle(esdm__earlier *earlier, esdm__monitor *monitor);
/** Without writing. NULL is accepted. */
void esdm__earlier_free(esdm__earlier *earlier);

/** What the record has of a container, in the order in which it was read: use number i of those
 *  that are worth an action. NULL: no more. @param ret_dataset path; borrowed, as long as the use.
 */
esdm__use *esdm__earlier_expected(esdm__earlier *earlier, const char *container, size_t i,
                                  const char **ret_dataset);
/** The use of a dataset that is read now. NULL: no memory, or too many.
 *  @param lengths of its dimensions. */
esdm__use *esdm__earlier_use(esdm__earlier *earlier, const char *container, const char *dataset,
                             uint32_t rank, const uint64_t *lengths);

/** What is foreseen of a use. */
typedef struct esdm__foreseen {
    bool follows;   /* all reads so far were those of the earlier run */
    bool ends;      /* and it is believed that nothing comes after the last one */
    uint64_t depth; /* so many reads may be asked for before the program wants them */
} esdm__foreseen;

/** A read begins. */
void esdm__earlier_note(esdm__earlier *earlier, esdm__use *use, const esdm_dataspace *space,
                        esdm__foreseen *ret);
/** The k-th read from now, k >= 1; false: the earlier run had no more. */
bool esdm__earlier_foresee(esdm__earlier *earlier, const esdm__use *use, uint64_t k,
                           esdm_dataspace *ret);
/** Before the first read: how many of the first ones may be asked for; 0: none. */
uint64_t esdm__earlier_at_once(esdm__earlier *earlier, const esdm__use *use);
/** What requests for it are counted by. */
esdm__ahead_account *esdm__earlier_account(esdm__use *use);
/** Time that foreseeing and asking took. */
void esdm__earlier_cost(esdm__use *use, uint64_t ns);

#endif
