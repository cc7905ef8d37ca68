/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

uint32_t
esdm__usable_cores(uint32_t most)
{
    cpu_set_t set;
    long cores = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    if (cores <= 0) /* more of them than the set has room for */
        cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores <= 0)
        return 1;
    return cores > (long) most ? most : (uint32_t) cores;
}

bool
esdm__other_cores(cpu_set_t *ret_usable, cpu_set_t *ret_others)
{
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof *ret_usable, ret_usable) != 0)
        return false;
    *ret_others = *ret_usable;
    CPU_CLR(here, ret_others);
    return CPU_COUNT(ret_others) > 0;
}
