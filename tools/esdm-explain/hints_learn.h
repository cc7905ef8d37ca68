/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_EXPLAIN_HINTS_LEARN_H
#define ESDM_EXPLAIN_HINTS_LEARN_H

/** @file Which hints the next run gives a file by MPI: rules with evidence, and what runs took. */

#include "watch/hints.h"

#include <stdbool.h>
#include <stddef.h>

/** What a run did with a file, all ranks together. */
typedef struct hints_facts {
    uint32_t ranks;
    double seconds; /* in calls that move data, without waiting for the last rank to call */
    double read_bytes, write_bytes, read_calls, write_calls;
    double together_read_bytes, together_write_bytes, together_read_calls, together_write_calls;
    double gap_calls; /* through views with gaps */
    /* What the MPI library asked of the file: */
    double file_read_bytes, file_read_calls, file_write_calls;
    bool romio; /* it has hints romio_… */
    bool lustre;
    uint32_t aggregators; /* hint cb_nodes as the library uses it; 0: not known */
    double buffer_bytes;  /* hint cb_buffer_size; 0: not known */
} hints_facts;

/** A run has ended. Two runs without hints are measured; hints for which the run speaks are tried
 *  in two runs each; those that took at most nine tenths of the time are kept. Every eighth run,
 * and the one after a slow one, goes without, to compare. What does not help is not tried again,
 * unless the program does something else.
 *  @param given the hints of this run, as `record->give`; "": none.
 *  @return seconds that they gained in this run; below 0: lost; 0: none were given. */
double hints_learn(watch_hints_file *record, const hints_facts *facts, const char *given);
/** Why the record's candidate was chosen; "" for none. */
const char *hints_why(const watch_hints_file *record);
/** The text of a rule for these facts. @param rule from 1. @return false: they do not speak for it,
 *  or there is no such rule. */
bool hints_rule(uint32_t rule, const hints_facts *facts, char *ret, size_t room);

#endif
