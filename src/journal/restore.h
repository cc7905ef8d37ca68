/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_RESTORE_H
#define ESDM_JOURNAL_RESTORE_H

/** @file Bringing a catalogue back: what the files restore*.c share. One thread. */

#include "journal/backup.h"
#include "journal/scan.h"
#include "site/admin.h"

/** Fact: "backup_ns restored_ns" of the last restoration. */
#define ESDM__FACT_RESTORED "esdm/restored"

typedef struct esdm__restoration {
    esdm__site *site;
    const esdm__report_to *say;
    bool dry_run;
    esdm__part *parts;             /* one a target, the metadata store behind them; owned */
    esdm__journal_target *targets; /* those that could be opened; owned, with their handles */
    size_t ntargets;
    esdm__catalogue catalogue; /* store NULL: not open */
    esdm__scan scan;
    uint64_t base_ns; /* when the backup began; 0: there is none */
    bool kept;        /* the catalogue was there, and sound */
    esdm_restore_result result;
} esdm__restoration;

/* What goes before the names that containers have while they are brought back. */
#define ESDM__RESTORE_PREFIX "/restore/"

/** Opens or makes the catalogue that the rest is added to; in a dry run nothing is made, and a
 *  catalogue that would have to be is not open. */
esdm_status esdm__restore_base(esdm__restoration *restoration, esdm_error *err);
/** Adds what the journals tell to the containers, and gives them their names. */
esdm_status esdm__restore_containers(esdm__restoration *restoration, esdm_error *err);

#endif
