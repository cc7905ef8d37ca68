/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/commit.h"

#include <stdlib.h>

#include "base/error.h"

void
esdm__journal_put_commit(esdm__buffer *out, const esdm_meta_commit *commit, const char *uuid,
                         const uint64_t *merged_sums, const esdm_meta_committed *committed,
                         uint64_t id, const esdm__buffer *pages)
{
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_COMMIT, committed->time_ns, uuid);
    const uint64_t numbers[] = {committed->snapshot, id, committed->structure, commit->datasets,
                                (uint64_t) commit->kind};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        esdm__buffer_put_varint(out, numbers[i]);
    esdm__journal_put_text(out, commit->kind != ESDM_META_UPDATE ? commit->name : NULL);
    esdm__journal_put_text(out, commit->kind == ESDM_META_REPLACE ? commit->keep_as : NULL);
    esdm__journal_put_text(out, commit->writer);
    esdm__journal_put_text(out, commit->message);
    esdm__buffer_put_u8(out, commit->document != NULL);
    if (commit->document != NULL)
        esdm__journal_put_blob(out, commit->document, commit->document_bytes);
    esdm__journal_put_lengths(out, commit->lengths, commit->nlengths);
    esdm__buffer_put_varint(out, commit->nmerged);
    for (size_t i = 0; i < commit->nmerged; i++)
        esdm__buffer_put_u64(out, merged_sums[i]);
    if (pages->bytes > 0)
        esdm__buffer_put(out, pages->data, pages->bytes);
    out->failed |= pages->failed;
    esdm__journal_finish(out, start);
}

void
esdm__journal_put_part(esdm__buffer *out, uint64_t time_ns, const char *uuid, uint64_t id,
                       const esdm__buffer *pages)
{
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_PART, time_ns, uuid);
    esdm__buffer_put_varint(out, id);
    if (pages->bytes > 0)
        esdm__buffer_put(out, pages->data, pages->bytes);
    out->failed |= pages->failed;
    esdm__journal_finish(out, start);
}

void
esdm__journal_put_name(esdm__buffer *out, uint64_t time_ns, const char *uuid,
                       const esdm__journal_naming *naming)
{
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_NAME, time_ns, uuid);
    esdm__journal_put_text(out, naming->name);
    esdm__journal_put_text(out, naming->keep_as);
    esdm__journal_put_text(out, naming->from);
    esdm__journal_put_text(out, naming->replaced);
    esdm__journal_finish(out, start);
}

void
esdm__journal_put_tag(esdm__buffer *out, const char *uuid, const esdm_meta_tag *tag)
{
    size_t start = esdm__journal_start(out, ESDM__JOURNAL_TAG, tag->created_ns, uuid);
    esdm__journal_put_text(out, tag->name);
    esdm__buffer_put_varint(out, tag->snapshot);
    esdm__buffer_put_varint(out, tag->created_ns);
    esdm__journal_put_text(out, tag->author);
    esdm__journal_finish(out, start);
}

esdm_status
esdm__journal_take_tag(const esdm__journal_record *record, esdm_meta_tag *ret_tag, esdm_error *err)
{
    esdm__cursor body = record->body;
    char *name = esdm__journal_text(&body);
    uint64_t snapshot = esdm__cursor_varint(&body);
    uint64_t created_ns = esdm__cursor_varint(&body);
    char *author = esdm__journal_text(&body);
    if (body.failed || name[0] == '\0') {
        free(name);
        free(author);
        return esdm__error_set(err, ESDM_ECORRUPT, "a tag in the journal is damaged");
    }
    *ret_tag = (esdm_meta_tag){
        .name = name, .snapshot = snapshot, .created_ns = created_ns, .author = author};
    return ESDM_OK;
}

static bool
take_merged(esdm__cursor *body, esdm__journal_commit *commit)
{
    uint64_t count = esdm__cursor_varint(body);
    if (body->failed || count > esdm__cursor_left(body) / sizeof *commit->merged)
        return false;
    commit->merged = malloc((size_t) (count + 1) * sizeof *commit->merged);
    for (size_t i = 0; commit->merged != NULL && i < count; i++)
        commit->merged[i] = esdm__cursor_u64(body);
    commit->nmerged = (size_t) count;
    return commit->merged != NULL;
}

esdm_status
esdm__journal_take_commit(const esdm__journal_record *record, esdm__journal_commit *ret_commit,
                          esdm__cursor *ret_body, esdm_error *err)
{
    esdm__cursor body = record->body;
    esdm__journal_commit commit = {.snapshot = esdm__cursor_varint(&body)};
    commit.id = esdm__cursor_varint(&body);
    commit.structure = esdm__cursor_varint(&body);
    commit.datasets = (uint32_t) esdm__cursor_varint(&body);
    commit.kind = (esdm_meta_commit_kind) esdm__cursor_varint(&body);
    commit.name = esdm__journal_text(&body);
    commit.keep_as = esdm__journal_text(&body);
    commit.writer = esdm__journal_text(&body);
    commit.message = esdm__journal_text(&body);
    if (esdm__cursor_u8(&body) != 0) {
        size_t start = body.position;
        size_t bytes = 0;
        (void) esdm__journal_blob(&body, &bytes);
        body.position = body.failed ? body.position : start;
        commit.document = esdm__journal_text(&body);
        commit.document_bytes = bytes;
    }
    bool good = esdm__journal_lengths(&body, &commit.lengths, &commit.nlengths) &&
                take_merged(&body, &commit) && !body.failed;
    *ret_commit = commit;
    *ret_body = body;
    if (good)
        return ESDM_OK;
    esdm__journal_commit_clear(ret_commit);
    return esdm__error_set(err, ESDM_ECORRUPT, "a commit in the journal is damaged");
}

void
esdm__journal_commit_clear(esdm__journal_commit *commit)
{
    free(commit->name);
    free(commit->keep_as);
    free(commit->writer);
    free(commit->message);
    free(commit->document);
    free(commit->lengths);
    free(commit->merged);
    *commit = (esdm__journal_commit){0};
}
