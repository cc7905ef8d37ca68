/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_COMMIT_H
#define ESDM_JOURNAL_COMMIT_H

/**
 * @file
 * What changes the catalogue, as records of the journal.
 *
 * Bodies:
 *     COMMIT  snapshot, id (0: no parts before it), structure, datasets, kind, name ("" of an
 *             update), name that the container gets which had that name ("": none), writer,
 * message, whether there is a document (u8), document; lengths; n, n × checksum u64 of a page that
 * was merged; pages up to the end of the record
 *     PART    id; pages up to the end of the record
 *     NAME    name, "" when it has none any more; the name that who had it before gets; newer
 *             records also:
 *             the name before ("": not known), uuid of who had the new
 *             name before ("": nobody)
 *     CLONE   see journal/whole.h
 *     TAG     name; snapshot, 0 when there is no such tag any more; when it was given
 *             (nanoseconds since 1970); author, or the text of a seal or retraction
 *     MOVED   n × { checksum u64 of the page as it was; the page as it is } up to the end
 */

#include "journal/record.h"

/** One commit that is being entered. Zeroed to begin with. */
typedef struct esdm__journal_entry {
    esdm__buffer pages; /* that have come */
    uint64_t id;        /* of the commit, when it has parts */
} esdm__journal_entry;

/** Bytes of pages from which on they are entered as a part. */
#define ESDM__JOURNAL_PART_BYTES ((size_t) 4 << 20)

/** Adds the record of a commit that took place. @param pages those of the commit and those that
 *  came from its source, as esdm__journal_put_page() put them. @param merged_sums checksums of
 *  commit->merged. @param uuid of the container. */
void esdm__journal_put_commit(esdm__buffer *out, const esdm_meta_commit *commit, const char *uuid,
                              const uint64_t *merged_sums, const esdm_meta_committed *committed,
                              uint64_t id, const esdm__buffer *pages);
void esdm__journal_put_part(esdm__buffer *out, uint64_t time_ns, const char *uuid, uint64_t id,
                            const esdm__buffer *pages);
/** A container has another name, or none. Clocks of nodes differ: the order of such records is
 *  found by what each says was before it. */
typedef struct esdm__journal_naming {
    const char *name;     /* NULL: it has none any more */
    const char *keep_as;  /* what who had that name is called from now on; NULL: it has none */
    const char *from;     /* what it was called before; NULL: not known */
    const char *replaced; /* uuid of who had that name; NULL: nobody */
} esdm__journal_naming;
void esdm__journal_put_name(esdm__buffer *out, uint64_t time_ns, const char *uuid,
                            const esdm__journal_naming *naming);

/** A snapshot of the container has a tag. @param tag with its time, which is that of the record;
 *  snapshot 0: there is no such tag any more. */
void esdm__journal_put_tag(esdm__buffer *out, const char *uuid, const esdm_meta_tag *tag);
/** @param ret_tag name and author are owned (free()). ESDM_ECORRUPT: damaged, or no memory. */
esdm_status esdm__journal_take_tag(const esdm__journal_record *record, esdm_meta_tag *ret_tag,
                                   esdm_error *err);

/** The fixed part of a commit, read back. */
typedef struct esdm__journal_commit {
    uint64_t snapshot;
    uint64_t id;
    uint64_t structure;
    uint32_t datasets;
    esdm_meta_commit_kind kind;
    char *name; /* owned, as what follows */
    char *keep_as;
    char *writer;
    char *message;
    char *document; /* NULL: unchanged */
    size_t document_bytes;
    esdm_meta_length *lengths;
    size_t nlengths;
    uint64_t *merged;
    size_t nmerged;
} esdm__journal_commit;

/** @param ret_body what is left: the pages. ESDM_ECORRUPT, ESDM_ENOMEM. */
esdm_status esdm__journal_take_commit(const esdm__journal_record *record,
                                      esdm__journal_commit *ret_commit, esdm__cursor *ret_body,
                                      esdm_error *err);
void esdm__journal_commit_clear(esdm__journal_commit *commit);

#endif
