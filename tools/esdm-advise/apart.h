/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_ADVISE_APART_H
#define ESDM_TOOLS_ADVISE_APART_H

/**
 * @file
 * Sources that are read by a process of their own, which may crash or hang: that costs the source
 * that it was reading, and another process goes on with the next one.
 */

#include "esdm-advise/esdm-advise.h"

/** A source is given up of which nothing is read for so many seconds; 0: never. */
extern double advise_timeout_s;

/** What is done with each source, in their order. */
typedef struct advise_turn {
    const GPtrArray *sources; /**< advise_source; none is added or removed meanwhile */
    void *user;
    bool with_session; /**< some are containers */
    /** In the process that reads, before the first source. @param session owned by it; NULL: none
     */
    esdm_status (*begin)(void *user, esdm_session *session, esdm_error *err);
    /** There: reads a source, and appends what it found. May call advise_apart_block(). */
    void (*read)(void *user, guint source, GByteArray *found);
    /** In this process: what was found, after all of it was read. */
    void (*take)(void *user, guint source, const uint8_t *found, size_t bytes);
    /** In this process: advise_apart_block() was called. NULL: nothing to do */
    void (*block)(void *user);
    /** In this process: nothing will be found of it. Why has been said. */
    void (*lost)(void *user, guint source);
} advise_turn;

void advise_apart(const advise_turn *turn);
/** A block of a source is done with. */
void advise_apart_block(void);
/** Work goes on. */
void advise_apart_alive(void);
/** The same of what goes through all sources more than once, and prints at its end.
 *  @param in_hand the name of the source that the process reads, from memory that both share.
 *  @return false: the process was lost in that source, which was said. */
bool advise_apart_whole(tool_exit (*run)(void *user), void *user,
                        const char *(*in_hand)(void *user), tool_exit *ret_result);
/** A session of the process that reads, as its parent's does not survive fork().
 *  @param ret_session owned; NULL: none is wanted. */
esdm_status advise_apart_session(bool wanted, esdm_session **ret_session, esdm_error *err);

void advise_put(GByteArray *to, const void *from, size_t bytes);
void advise_put_text(GByteArray *to, const char *text);
/** Moves @param at behind it. */
void advise_get(const uint8_t **at, void *to, size_t bytes);
/** @return borrowed from what was found */
const char *advise_get_text(const uint8_t **at);

#endif
