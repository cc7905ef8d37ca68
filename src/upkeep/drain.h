/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_DRAIN_H
#define ESDM_UPKEEP_DRAIN_H

/** @file What is to be stored elsewhere: of node-local targets, of named ones, or of those that are
 *  too full. One thread at a time, but for asking whether a fragment is. */

#include "layout/packs.h"
#include "layout/places.h"
#include "upkeep/upkeep.h"

typedef enum esdm__drain_kind {
    ESDM__DRAIN_LOCAL,    /* all that this node alone can see */
    ESDM__DRAIN_FROM,     /* all on the named targets */
    ESDM__DRAIN_REBALANCE /* some packs of targets that are fuller than others */
} esdm__drain_kind;

typedef struct esdm__drain_choice {
    esdm_session *session;
    const esdm_drain_options *options;
    esdm__drain_kind kind;
    bool *source;          /* of each target: what lies there is to leave it; owned */
    bool *barred;          /* takes nothing; owned; NULL: none */
    bool blind;            /* some source cannot be opened: its packs are not in the inventory */
    uint32_t takers;       /* targets that can take something */
    esdm__inventory packs; /* of all targets that can be opened, now */
    bool *chosen;          /* REBALANCE: which of them go; owned */
    uint64_t bytes;        /* that are to go, about */
} esdm__drain_choice;

/** Zeroed before; to be cleared in any case. Opens the targets. ESDM_ENOENT: there is no such
 *  target, or none to bring something to. */
esdm_status esdm__drain_choice_init(esdm__drain_choice *choice, esdm_session *session,
                                    const esdm_drain_options *options, esdm_error *err);
void esdm__drain_choice_clear(esdm__drain_choice *choice);
/**
 * Lists the packs anew and decides which go. With a dry run, and for REBALANCE, tells what of which
 * target by options->report.
 * @param uuid of the one container that matters; NULL: all.
 * @return ESDM_ENOSPC: it cannot fit.
 */
esdm_status esdm__drain_choice_look(esdm__drain_choice *choice, const char *uuid, esdm_error *err);
/** Whether there is something to do at all. */
bool esdm__drain_choice_any(const esdm__drain_choice *choice);
/** The part of the packs that belongs to a container. @param ret_packs borrows from the choice.
 *  @return whether some of it is to go. */
bool esdm__drain_choice_of(const esdm__drain_choice *choice, const char *uuid,
                           esdm__inventory *ret_packs);

/** Where a fragment lies, as far as it matters here. */
typedef struct esdm__drain_place {
    bool goes;       /* to be stored anew */
    bool elsewhere;  /* another node alone could do that with some copy: `node` */
    uint32_t copies; /* places that it has */
    char node[ESDM__PLACE_NODE_BYTES];
} esdm__drain_place;
void esdm__drain_choice_place(const esdm__drain_choice *choice, const esdm__pack_name *pack,
                              esdm__drain_place *ret_place);

#endif
