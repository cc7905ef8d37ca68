/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/pack_state.h"

esdm__pack_stage
esdm__pack_stage_next(esdm__pack_stage stage, esdm__pack_event event)
{
    if (stage == ESDM__PACK_GONE)
        return stage;
    switch (event) {
    case ESDM__PACK_ENDS:
        return stage == ESDM__PACK_OPEN ? ESDM__PACK_ENDING : stage;
    case ESDM__PACK_ANSWERED:
        return stage == ESDM__PACK_ENDING ? ESDM__PACK_OPEN : stage;
    case ESDM__PACK_STORED: /* what a flush lost stays lost */
        return stage == ESDM__PACK_FAILED ? stage : ESDM__PACK_SEALED;
    case ESDM__PACK_REFUSED:
        return ESDM__PACK_FAILED;
    case ESDM__PACK_AGAIN:
        return stage == ESDM__PACK_FAILED ? ESDM__PACK_OPEN : stage;
    case ESDM__PACK_VANISHED:
        return ESDM__PACK_GONE;
    }
    return stage;
}

esdm__pack_use
esdm__pack_use_next(esdm__pack_use use, esdm__pack_commit commit)
{
    switch (commit) {
    case ESDM__COMMIT_OFFERS: /* offered already: no later commit tells what became of that one */
        if (use == ESDM__PACK_OFFERED)
            return ESDM__PACK_DOUBTED;
        return use == ESDM__PACK_UNUSED ? ESDM__PACK_OFFERED : use;
    case ESDM__COMMIT_WITHDRAWS:
        return use == ESDM__PACK_OFFERED ? ESDM__PACK_UNUSED : use;
    case ESDM__COMMIT_SUCCEEDS:
        return ESDM__PACK_COMMITTED;
    case ESDM__COMMIT_UNANSWERED:
        return ESDM__PACK_UNVERIFIED;
    }
    return use;
}
