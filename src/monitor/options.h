/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MONITOR_OPTIONS_H
#define ESDM_MONITOR_OPTIONS_H

/** @file What a session observes, and where that goes: "monitor" of the site configuration, or
 *  $ESDM_MONITOR. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

/** Modules, as bits. */
#define ESDM__MONITOR_STATS 0x1u /* counters per container, dataset and target */
#define ESDM__MONITOR_TRACE                                                                        \
    0x2u                        /* every span: JSON Lines, Chrome trace events, rows of a table    \
                                 */
#define ESDM__MONITOR_NODE 0x4u /* CPU, memory, network, block devices, energy of this node */
#define ESDM__MONITOR_RUNS 0x8u /* the site keeps what runs did (runs.h); no module's name */
#define ESDM__MONITOR_RULES                                                                        \
    0x10u /* what is unusual turns modules on for a while (rules.h); no name */
#define ESDM__MONITOR_KEEP                                                                         \
    0x20u /* counters, and the last calls, stay in memory for esdm_records_write(); no name */

/** When modules are turned on by themselves, which ones, and for how long. */
typedef struct esdm__monitor_rule {
    bool of_run;    /* the program's last run was slow, else requests of this one are */
    bool of_files;  /* calls of plain files are, which esdm-run watches; sessions do nothing */
    double slower;  /* than usual, as a factor */
    uint32_t then;  /* ESDM__MONITOR_TRACE, ESDM__MONITOR_NODE */
    uint64_t for_s; /* then they are turned off again */
    uint64_t bytes; /* or when the trace has so many */
    uint64_t times; /* in one session; `of_run`: runs of ten times as many */
    char *targets;  /* names, each with an end of line; owned; NULL: all, and the catalogue */
} esdm__monitor_rule;

#define ESDM__RULES_MAX 8u

typedef struct esdm__monitor_options {
    uint32_t modules;      /* 0: nothing is observed */
    char *stats_file;      /* owned; NULL: ESDM__MONITOR_STATS_FILE; see esdm__monitor_file() */
    char *trace_file;      /* owned; NULL: ESDM__MONITOR_TRACE_FILE; ".json": Chrome events */
    uint64_t buffer_bytes; /* for spans that are not written yet; 0: 4 MiB */
    uint64_t interval_ms;  /* between samples of the node; 0: 1000 */
    char *runs;            /* owned; folder of ESDM__MONITOR_RUNS; NULL: none */
    bool runs_names;       /* whether names of containers and datasets are kept there */
    esdm__monitor_rule rules[ESDM__RULES_MAX]; /* of ESDM__MONITOR_RULES */
    size_t nrules;
} esdm__monitor_options;

#define ESDM__MONITOR_STATS_FILE "esdm-stats.%h.%p.json"
#define ESDM__MONITOR_TRACE_FILE "esdm-trace.%h.%p.jsonl"

/**
 * Reads "stats,trace:FILE,node" over the options: what it states replaces what they have; "off"
 * turns everything off; only that ends ESDM__MONITOR_RUNS and ESDM__MONITOR_RULES. @param source
 * what the text is, for messages. ESDM_EINVAL: an unknown module; the options are then as before.
 */
esdm_status esdm__monitor_parse(const char *text, const char *source,
                                esdm__monitor_options *options, esdm_error *err);
/** Whether it is the name of a database: one in .sqlite, .sqlite3, .db, or a URL of PostgreSQL. */
bool esdm__monitor_is_database(const char *file);
/** By the end of a name it is known what a file shall hold. */
bool esdm__monitor_ends_with(const char *text, const char *end);
/** Refuses names of files that ask for a form which this library does not write: OTF2.
 *  @param source where the name stands. ESDM_ENOTSUP, with what to do. */
esdm_status esdm__monitor_check_file(const char *file, const char *source, esdm_error *err);
/** A rule as it is unless something else is stated: three times slower; a trace of 60 s or 16 MiB,
 * three times. */
esdm__monitor_rule esdm__monitor_rule_default(bool of_run);
/** The bit of a module's name; 0: there is none of that name. */
uint32_t esdm__monitor_module(const char *name, size_t bytes);
void esdm__monitor_options_clear(esdm__monitor_options *options);
/** @param ret_options overwritten; cleared by the caller in any case. */
esdm_status esdm__monitor_options_copy(const esdm__monitor_options *options,
                                       esdm__monitor_options *ret_options, esdm_error *err);

#endif
