/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Names of branches. */

#include "base/hidden_names.h"

const char *
esdm__name_branch(const char *name, size_t *ret_bytes)
{
    const char *mark = strstr(name, ESDM__BRANCH_MARK);
    const char *branch = mark != NULL ? mark + sizeof ESDM__BRANCH_MARK - 1 : NULL;
    if (mark == NULL || mark == name || branch[0] == '\0' || strpbrk(branch, "@?:") != NULL)
        return NULL;
    if (ret_bytes != NULL)
        *ret_bytes = (size_t) (mark - name);
    return branch;
}
