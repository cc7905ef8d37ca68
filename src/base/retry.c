/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/retry.h"

#define FIRST_MS   100u
#define LARGEST_MS 8000u
#define ASKED_MS   30000u

bool
esdm__retry_http(long status)
{
    switch (status) {
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return true;
    default:
        return false;
    }
}

uint32_t
esdm__retry_wait_ms(uint32_t attempt, uint64_t asked_ms, uint64_t random)
{
    uint32_t longest = attempt > 8 ? LARGEST_MS : FIRST_MS << (attempt > 0 ? attempt - 1 : 0);
    longest = longest < LARGEST_MS ? longest : LARGEST_MS;
    uint32_t wait = longest / 2 + (uint32_t) (random % (longest / 2 + 1));
    uint32_t asked = asked_ms < ASKED_MS ? (uint32_t) asked_ms : ASKED_MS;
    return wait > asked ? wait : asked;
}
