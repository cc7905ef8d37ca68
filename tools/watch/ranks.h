/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_WATCH_RANKS_H
#define ESDM_WATCH_RANKS_H

/** @file Which rank this process is, of how many: as what started the step says. What Slurm says of
 *  a whole job (SLURM_NTASKS) holds for each serial command of its script, too: it does not count.
 */

#include <stdbool.h>
#include <stdlib.h>

/** Whether `srun` started this process; steps of scripts and of shells have no number, or one of
 *  those that Slurm keeps for itself. */
static inline bool
ranks_in_step(void)
{
    const char *step = getenv("SLURM_STEP_ID");
    char *end = NULL;
    if (step == NULL || *step < '0' || *step > '9')
        return false;
    unsigned long long number = strtoull(step, &end, 10);
    return *end == '\0' && number < 0xfffffff0u;
}

/** @return -1: nothing says it. */
static inline int
ranks_number(const char *const *names, const char *of_step)
{
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text != NULL && *text >= '0' && *text <= '9')
            return atoi(text);
    }
    const char *text = ranks_in_step() ? getenv(of_step) : NULL;
    return text != NULL && *text >= '0' && *text <= '9' ? atoi(text) : -1;
}

/** @return -1: no rank. */
static inline int
ranks_own(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", NULL};
    return ranks_number(names, "SLURM_PROCID");
}

/** @return -1 or 0: not known. */
static inline int
ranks_all(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    return ranks_number(names, "SLURM_STEP_NUM_TASKS");
}

#endif
