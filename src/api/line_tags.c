/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "api/line_tags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "model/names.h"

void
esdm__line_tag_in(const char *what, const char *line, esdm__tag_name tag)
{
    const char *branch = esdm__name_branch(line, NULL);
    (void) snprintf(tag, sizeof(esdm__tag_name), "%s%s%s", what, branch != NULL ? ":" : "",
                    branch != NULL ? branch : "");
}

void
esdm__line_tag_began(const char *line, esdm__tag_name tag)
{
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__BRANCH_TAG "%s",
                    esdm__name_branch(line, NULL));
}

void
esdm__line_tag_holds(const char *line, const char *in, esdm__tag_name tag)
{
    const char *branch = esdm__name_branch(in, NULL);
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__HOLDS_TAG "%s:%s",
                    esdm__name_branch(line, NULL), branch != NULL ? branch : "");
}

static bool
look(const esdm_meta_tag *tag, void *user)
{
    esdm__tag_wanted *w = user;
    size_t bytes = strlen(w->name);
    if (w->begins ? strncmp(tag->name, w->name, bytes) != 0 : strcmp(tag->name, w->name) != 0)
        return true;
    w->snapshot = tag->snapshot;
    (void) snprintf(w->text, sizeof w->text, "%s",
                    w->begins             ? tag->name + bytes
                    : tag->author != NULL ? tag->author
                                          : "");
    return false;
}

esdm_status
esdm__tag_look(esdm_session *session, uint64_t record, esdm__tag_wanted *w, esdm_error *err)
{
    w->snapshot = 0;
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    return session->meta->tag_list(session->store, record, look, w, err);
}

static bool
note_text(const esdm_meta_tag *tag, void *user)
{
    esdm__tag_texts *t = user;
    size_t bytes = strlen(t->begins);
    if (strncmp(tag->name, t->begins, bytes) != 0)
        return true;
    t->failed = !esdm__array_grow(&t->items, t->count, sizeof *t->items);
    if (t->failed)
        return false;
    struct esdm__tag_pair *one = &t->items[t->count++];
    *one = (struct esdm__tag_pair){strdup(tag->name + bytes),
                                   strdup(tag->author != NULL ? tag->author : ""), tag->snapshot,
                                   tag->created_ns};
    t->failed = one->rest == NULL || one->author == NULL;
    return !t->failed;
}

void
esdm__tag_texts_clear(esdm__tag_texts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i].rest);
        free(t->items[i].author);
    }
    free(t->items);
}

esdm_status
esdm__tag_texts_load(esdm_session *session, uint64_t record, const char *begins, esdm__tag_texts *t,
                     esdm_error *err)
{
    *t = (esdm__tag_texts){.begins = begins};
    esdm_status status = session->meta->tag_list(session->store, record, note_text, t, err);
    return status == ESDM_OK && t->failed
               ? esdm__error_nomem(err, t->count * sizeof *t->items, "tags")
               : status;
}
