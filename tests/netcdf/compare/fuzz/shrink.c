/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Makes a failing sequence short: leaves out ops while the same thing goes wrong. */

#include "fuzz.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 120 };

bool
fuzz_same_failure(const report *wanted, const op *ops, int count, int format)
{
    static report before;
    before = *fuzz_shared;
    memmove(fuzz_shared->ops, ops, (size_t) count * sizeof ops[0]);
    fuzz_shared->count = count;
    fuzz_shared->verdict = SAME;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        alarm(CHILD_SECONDS);
        fuzz_run(fuzz_shared, format, 0, count, NULL);
        _exit(0);
    }
    int status = 0;
    (void) waitpid(child, &status, 0);
    verdict v = fuzz_shared->verdict;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        v = fuzz_shared->side == ESDM ? CRASHED_ESDM : CRASHED_STOCK;
    bool same = v == wanted->verdict && fuzz_shared->kind == wanted->kind;
    if (same && v == DIFFERENT && wanted->kind >= 0)
        same = fuzz_shared->rc[STOCK] == wanted->rc[STOCK] &&
               fuzz_shared->rc[ESDM] == wanted->rc[ESDM];
    if (same) {
        memcpy(before.difference, fuzz_shared->difference, sizeof before.difference);
        before.at = fuzz_shared->at;
    }
    *fuzz_shared = before;
    return same;
}

void
fuzz_shrink(report *r, int format)
{
    static report wanted;
    static op shorter[OPS_MAX];
    wanted = *r;
    int count = r->at < r->count ? r->at + 1 : r->count;
    for (int piece = count / 2; piece >= 1; piece /= 2) {
        bool again = true;
        while (again) {
            again = false;
            for (int from = 0; from + piece <= count;) {
                memcpy(shorter, r->ops, (size_t) from * sizeof(op));
                memcpy(shorter + from, r->ops + from + piece,
                       (size_t) (count - from - piece) * sizeof(op));
                if (!fuzz_same_failure(&wanted, shorter, count - piece, format)) {
                    from += piece;
                    continue;
                }
                count -= piece;
                memcpy(r->ops, shorter, (size_t) count * sizeof(op));
                r->count = count;
                again = piece == 1;
            }
        }
    }
    r->count = count;
}
