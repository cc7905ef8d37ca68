/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/line_vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/formers.h"
#include "api/line_tags.h"
#include "base/buffer.h"
#include "base/error.h"

/* ---- vectors -------------------------------------------------------------------------------- */

void
esdm__vector_clear(esdm__vector *v)
{
    free(v->items);
    *v = (esdm__vector){0};
}

uint64_t
esdm__vector_get(const esdm__vector *v, const char *id)
{
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->items[i].id, id) == 0)
            return v->items[i].snapshot;
    }
    return 0;
}

esdm_status
esdm__vector_raise(esdm__vector *v, const char *branch, const char *id, uint64_t snapshot,
                   esdm_error *err)
{
    size_t i = 0;
    if (snapshot == 0)
        return ESDM_OK;
    while (i < v->count && strcmp(v->items[i].id, id) != 0)
        i++;
    if (i == v->count) {
        if (!esdm__array_grow(&v->items, v->count, sizeof *v->items))
            return esdm__error_nomem(err, v->count * sizeof *v->items, "lines");
        v->items[v->count] = (esdm__vector_item){.snapshot = 0};
        (void) snprintf(v->items[i].id, sizeof v->items[i].id, "%s", id);
        (void) snprintf(v->items[i].branch, sizeof v->items[i].branch, "%s", branch);
        v->count++;
    }
    if (v->items[i].snapshot < snapshot)
        v->items[i].snapshot = snapshot;
    return ESDM_OK;
}

esdm_status
esdm__vector_join(esdm__vector *v, const esdm__vector *other, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < other->count && status == ESDM_OK; i++) {
        const esdm__vector_item *one = &other->items[i];
        status = esdm__vector_raise(v, one->branch, one->id, one->snapshot, err);
    }
    return status;
}

esdm_status
esdm__vector_meet(const esdm__vector *a, const esdm__vector *b, esdm__vector *ret, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < a->count && status == ESDM_OK; i++) {
        const esdm__vector_item *one = &a->items[i];
        uint64_t other = esdm__vector_get(b, one->id);
        status = esdm__vector_raise(ret, one->branch, one->id,
                                    other < one->snapshot ? other : one->snapshot, err);
    }
    return status;
}

bool
esdm__vector_equal(const esdm__vector *a, const esdm__vector *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++)
        equal = esdm__vector_get(b, a->items[i].id) == a->items[i].snapshot;
    return equal;
}

char *
esdm__vector_text(const esdm__vector *v)
{
    size_t most = v->count * sizeof(esdm__vector_item) + 24 * v->count + 1, used = 0;
    char *text = malloc(most);
    if (text == NULL)
        return NULL;
    text[0] = '\0';
    for (size_t i = 0; i < v->count; i++)
        used += (size_t) snprintf(text + used, most - used, "%s%s=%" PRIu64 "=%s", i > 0 ? " " : "",
                                  v->items[i].id, v->items[i].snapshot, v->items[i].branch);
    return text;
}

/* "ID=SNAPSHOT=BRANCH", with blanks between: no branch has one in its name. */
esdm_status
esdm__vector_parse(esdm__vector *v, const char *text, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    while (*text != '\0' && status == ESDM_OK) {
        char id[ESDM__LINE_ID_BYTES], branch[ESDM_BRANCH_MAX + 1];
        uint64_t snapshot = 0;
        int used = 0;
        size_t bytes = strcspn(text, " ");
        bool is_one = sscanf(text, "%16[0-9a-f]=%20" SCNu64 "=%n", id, &snapshot, &used) == 2 &&
                      used > 0 && (size_t) used <= bytes && bytes - (size_t) used < sizeof branch;
        if (is_one) {
            (void) snprintf(branch, sizeof branch, "%.*s", (int) (bytes - (size_t) used),
                            text + used);
            status = esdm__vector_raise(v, branch, id, snapshot, err);
        }
        text += bytes + (text[bytes] == ' ');
    }
    return status;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* The one of that name among former containers. */
static esdm_status
find_former(esdm_session *session, const char *name, const char *id, esdm__line *ret,
            esdm_error *err)
{
    esdm__formers all;
    esdm_status status = esdm__formers_load(session, name, &all, err);
    *ret = (esdm__line){.record = 0};
    for (size_t i = all.count; i-- > 0 && status == ESDM_OK && ret->record == 0;) {
        const esdm__former_record *one = &all.items[i];
        if (strncmp(one->uuid, id, ESDM__LINE_ID_BYTES - 1) == 0)
            esdm__line_fill(ret, one->stored, one->record, one->uuid);
    }
    esdm__formers_clear(&all);
    return status;
}

esdm_status
esdm__line_by_id(esdm_session *session, const char *name, const char *branch, const char *id,
                 esdm__line *ret, char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err)
{
    if (branch[0] != '\0')
        esdm__line_beside(name, branch, ret_name);
    else
        esdm__line_base(name, ret_name);
    esdm_status status = esdm__line_find(session, ret_name, ret, err);
    if (status != ESDM_OK || strcmp(ret->id, id) == 0)
        return status;
    status = find_former(session, ret_name, id, ret, err);
    if (status != ESDM_OK || ret->record != 0)
        return status;
    status = esdm__line_find(session, ret_name, ret, err); /* it may have been restored between */
    if (strcmp(ret->id, id) != 0)
        *ret = (esdm__line){.record = 0};
    return status;
}

/* What one tag says: its author, or what stands in it after the line ("up:BRANCH:VECTOR"). */
static esdm_status
take_tag(const struct esdm__tag_pair *one, bool came, uint64_t snapshot, esdm__vector *ret,
         esdm_error *err)
{
    const char *text = one->author;
    for (int colons = came ? 2 : 0; colons > 0 && text != NULL; colons--) {
        text = strchr(text, ':');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL && one->snapshot <= snapshot ? esdm__vector_parse(ret, text, err) : ESDM_OK;
}

static esdm_status
take_tags(esdm_session *session, const esdm__line *l, const char *begins, uint64_t snapshot,
          esdm__vector *ret, esdm_error *err)
{
    esdm__tag_texts all;
    bool came = strcmp(begins, ESDM__CAME_TAG) == 0;
    esdm_status status = esdm__tag_texts_load(session, l->record, begins, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++)
        status = take_tag(&all.items[i], came, snapshot, ret, err);
    esdm__tag_texts_clear(&all);
    return status;
}

/* A line above, at the snapshot with which the branch began, as that line's tag says. */
static esdm_status
take_fork(esdm_session *session, const char *name, const char *above, uint64_t snapshot,
          esdm__vector *ret, esdm_error *err)
{
    esdm__line l;
    uint64_t fork = 0;
    const char *branch = esdm__name_branch(above, NULL);
    esdm_status status = esdm__line_find(session, above, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_fork_of(session, name, &l, &fork, err);
    if (status != ESDM_OK || fork == 0)
        return status;
    return esdm__vector_raise(ret, branch != NULL ? branch : "", l.id,
                              fork < snapshot ? fork : snapshot, err);
}

/* A former branch has no name by which others know it, and all that it has is told by its own tags.
 */
esdm_status
esdm__line_vector(esdm_session *session, const char *name, const esdm__line *l, uint64_t snapshot,
                  esdm__vector *ret, esdm_error *err)
{
    char above[ESDM_CONTAINER_NAME_MAX + 1];
    const char *branch = esdm__name_branch(name, NULL);
    esdm_status status =
        esdm__vector_raise(ret, branch != NULL ? branch : "", l->id, snapshot, err);
    if (status == ESDM_OK)
        status = take_tags(session, l, ESDM__CAME_TAG, snapshot, ret, err);
    if (status == ESDM_OK) /* who notes it sets this one before the other one goes */
        status = take_tags(session, l, ESDM__HAS_TAG, snapshot, ret, err);
    if (status != ESDM_OK || branch == NULL || strcmp(l->stored, name) != 0)
        return status;
    esdm__line_base(name, above);
    status = take_fork(session, name, above, snapshot, ret, err);
    if (status == ESDM_OK)
        status = esdm__line_parent(session, name, above, NULL, NULL, err);
    return status == ESDM_OK && esdm__name_branch(above, NULL) != NULL
               ? take_fork(session, name, above, snapshot, ret, err)
               : status;
}

/* How many of the snapshots such tags name, as far as those before do not. */
static esdm_status
count_merges(esdm_session *session, const esdm__line *l, const char *begins, uint64_t after,
             uint64_t to, uint64_t *ret, esdm_error *err)
{
    esdm__tag_texts all;
    esdm_status status = esdm__tag_texts_load(session, l->record, begins, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        uint64_t snapshot = all.items[i].snapshot;
        bool again = snapshot <= after || snapshot > to;
        for (size_t k = 0; k < i && !again; k++)
            again = all.items[k].snapshot == snapshot;
        *ret += !again;
    }
    esdm__tag_texts_clear(&all);
    return status;
}

esdm_status
esdm__line_only_merged(esdm_session *session, const esdm__line *l, uint64_t after, uint64_t to,
                       bool *ret, esdm_error *err)
{
    uint64_t merges = 0;
    esdm_status status = count_merges(session, l, ESDM__HAS_TAG, after, to, &merges, err);
    *ret = to <= after || merges == to - after;
    return status;
}
