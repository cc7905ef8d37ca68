/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/scratch.h"
#include "model/copy.h"

/* Plain bytes are read and turned round by so many. */
#define LEAF_BYTES (UINT64_C(256) << 10)
/* Less than that is likely to go to memory that one processor has in its cache. */
#define DIVIDED_BYTES (UINT64_C(16) << 20)
/* Gaps up to that are read with what lies around them. */
#define GAP_BYTES UINT64_C(4096)
/* The same of objects on servers, where each request costs a way there and back. */
#define REMOTE_LEAF_BYTES (UINT64_C(4) << 20)
#define REMOTE_GAP_BYTES  (UINT64_C(128) << 10)

typedef struct source {
    esdm_session *session;
    const esdm__source_request *request;
    esdm__foreign foreign;
    esdm__decoding decoding;
    esdm__file *file;
    bool certain;
    bool swap;
    uint32_t rank;
    size_t element;                 /* bytes */
    uint64_t shape[ESDM_MAX_RANK];  /* as it is stored */
    uint64_t stride[ESDM_MAX_RANK]; /* bytes in the file; of plain ones */
    uint64_t first[ESDM_MAX_RANK];  /* of the request, within the fragment */
    uint64_t raw_bytes;             /* of the stored shape */
    uint64_t leaf, gap;             /* plain bytes: see LEAF_BYTES and GAP_BYTES */
    const uint8_t *order;           /* u32 × rank: axes as they are stored; NULL: as they are */
} source;

/* ---- what is stored ----------------------------------------------------------------------- */

static bool
is_cut(const source *s, const esdm__fragment *fragment)
{
    for (uint32_t d = 0; d < s->rank; d++) {
        if (s->decoding.rank == s->rank && fragment->box.n[d] != s->decoding.chunk[d])
            return true;
    }
    return false;
}

/* Zarr's transpose: its axis k is axis order[k] of the fragment. */
static esdm_status
describe_order(source *s, esdm_error *err)
{
    const esdm__filter *first = &s->decoding.filters[0];
    uint32_t seen = 0;
    if (s->decoding.nfilters == 0 || strcmp(first->codec, "transpose") != 0)
        return ESDM_OK;
    bool fits = first->parameter_bytes == s->rank * sizeof(uint32_t);
    for (uint32_t k = 0; fits && k < s->rank; k++) {
        uint32_t axis;
        memcpy(&axis, first->parameters + k * sizeof axis, sizeof axis);
        fits = axis < s->rank && (seen >> axis & 1u) == 0;
        seen |= fits ? 1u << axis : 0;
    }
    if (!fits)
        return esdm__error_set(err, ESDM_ECORRUPT, "an order of axes that is none");
    s->order = first->parameters;
    return ESDM_OK;
}

/* The description comes from storage: what does not fit the fragment is damage. */
static esdm_status
describe(source *s, const esdm__fragment *fragment, esdm_error *err)
{
    const esdm__decoding *how = &s->decoding;
    esdm_status status = esdm__foreign_get(fragment->elsewhere.source, &s->foreign, err);
    if (status == ESDM_OK && fragment->elsewhere.decoding == NULL)
        status = esdm__error_set(err, ESDM_ECORRUPT, "it does not say how its bytes are stored");
    if (status == ESDM_OK)
        status = esdm__decoding_get(fragment->elsewhere.decoding, &s->decoding, err);
    if (status != ESDM_OK)
        return status;
    s->rank = fragment->box.rank;
    s->element = s->request != NULL ? s->request->elements->bytes : how->element_bytes;
    if (how->element_bytes != s->element || (how->rank != 0 && how->rank != s->rank) ||
        (how->flags & ~(uint32_t) (ESDM__DECODING_BIG_ENDIAN | ESDM__DECODING_EDGES_WHOLE |
                                   ESDM__DECODING_EDGES_PLAIN)) != 0)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "its bytes are stored in a way that this ESDM cannot read");
    s->swap = (how->flags & ESDM__DECODING_BIG_ENDIAN) != 0;
    s->raw_bytes = s->element;
    for (uint32_t d = 0; d < s->rank; d++) {
        s->shape[d] = how->rank != 0 ? how->chunk[d] : fragment->box.n[d];
        if (fragment->box.n[d] > s->shape[d] ||
            __builtin_mul_overflow(s->raw_bytes, s->shape[d], &s->raw_bytes))
            return esdm__error_set(err, ESDM_ECORRUPT, "its box does not fit its chunk");
    }
    return describe_order(s, err);
}

static bool
is_plain(const source *s, const esdm__fragment *fragment)
{
    uint32_t n = s->decoding.nfilters;
    uint32_t all = n >= 32 ? UINT32_MAX : (1u << n) - 1;
    return n == 0 || (fragment->elsewhere.filter_mask & all) == all ||
           ((s->decoding.flags & ESDM__DECODING_EDGES_PLAIN) != 0 && is_cut(s, fragment));
}

static esdm_status
may_be_changed(const source *s, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "file '%s' may have been changed (its inode or time of change is "
                           "another one), and its plain bytes have no checksum; refer to it "
                           "again (esdm-ref)",
                           s->foreign.location);
}

/* ---- plain bytes -------------------------------------------------------------------------- */

/* Strides in the file; records of netCDF classic lie further apart than they are long. */
static esdm_status
plain_strides(source *s, const esdm__fragment *fragment, esdm_error *err)
{
    uint64_t step = s->element;
    uint64_t end = s->element;
    bool failed = false;
    for (uint32_t d = s->rank; d-- > 0;) {
        if (d == 0 && s->decoding.extra_bytes == sizeof step)
            memcpy(&step, s->decoding.extra, sizeof step);
        s->stride[d] = step;
        uint64_t reach = 0;
        failed |= __builtin_mul_overflow(step, s->shape[d] - 1, &reach) ||
                  __builtin_add_overflow(end, reach, &end);
        if (d > 0)
            failed |= __builtin_mul_overflow(step, s->shape[d], &step);
    }
    if (failed || end > fragment->stored_bytes || fragment->position > INT64_MAX ||
        end > INT64_MAX - fragment->position)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "%" PRIu64 " bytes at %" PRIu64 " do not hold its elements",
                               fragment->stored_bytes, fragment->position);
    return ESDM_OK;
}

/* How many of the fastest axes of a selection are one range of the file. */
static uint32_t
dense_axes(const source *s, const uint64_t *count, uint64_t *ret_bytes)
{
    uint64_t bytes = s->element;
    uint32_t axis = s->rank;
    while (axis > 0) {
        uint32_t a = axis - 1;
        if (count[a] > 1 && (s->request->step[a] != 1 || s->stride[a] != bytes))
            break;
        bytes *= count[a];
        axis = a;
    }
    *ret_bytes = bytes;
    return axis;
}

/* A selection that is one range of the file, in memory as it is wanted. */
static esdm_status
leaf_direct(source *s, uint64_t position, uint8_t *target, uint64_t bytes, esdm_error *err)
{
    if (!s->swap)
        return esdm__file_read(s->file, position, target, bytes, err);
    for (uint64_t done = 0; done < bytes;) {
        uint64_t n = bytes - done < s->leaf ? bytes - done : s->leaf / s->element * s->element;
        n = n == 0 ? s->element : n;
        esdm_status status = esdm__file_read(s->file, position + done, target + done, n, err);
        if (status != ESDM_OK)
            return status;
        esdm__swap_bytes(s->element, target + done, n / s->element);
        done += n;
    }
    return ESDM_OK;
}

/* Selected elements of one range that has gaps, or goes to scattered memory. */
static esdm_status
leaf_copy(source *s, uint64_t position, uint64_t span, const uint64_t *count, uint8_t *target,
          esdm_error *err)
{
    int64_t from_stride[ESDM_MAX_RANK];
    uint8_t *data = esdm__scratch_new(span);
    if (data == NULL)
        return esdm__error_nomem(err, span, "a part of a file");
    esdm_status status = esdm__file_read(s->file, position, data, span, err);
    for (uint32_t d = 0; d < s->rank; d++)
        from_stride[d] = (int64_t) (s->stride[d] / s->element * s->request->step[d]);
    if (status == ESDM_OK && s->swap)
        esdm__swap_bytes(s->element, data, span / s->element);
    if (status == ESDM_OK)
        esdm__copy_bytes_nd(s->rank, count, s->element, data, from_stride, target,
                            s->request->target_stride);
    esdm__scratch_free(data);
    return status;
}

static uint64_t
span_of(const source *s, const uint64_t *count)
{
    uint64_t span = s->element;
    for (uint32_t d = 0; d < s->rank; d++)
        span += (count[d] - 1) * s->request->step[d] * s->stride[d];
    return span;
}

/* Splits what is too long, or has gaps that are not worth reading, along its slowest axis. */
static esdm_status
read_plain(source *s, uint64_t position, uint64_t *count, uint8_t *target, esdm_error *err)
{
    uint64_t bytes = 0;
    uint32_t axis = 0;
    bool aligned = true;
    if (dense_axes(s, count, &bytes) == 0 &&
        esdm__strides_are_dense(s->rank, count, s->request->target_stride))
        return leaf_direct(s, position, target, bytes, err);
    while (axis < s->rank && count[axis] == 1)
        axis++;
    for (uint32_t d = 0; d < s->rank; d++)
        aligned &= count[d] == 1 || s->stride[d] % s->element == 0;
    uint64_t span = span_of(s, count);
    uint64_t step = axis < s->rank ? s->request->step[axis] * s->stride[axis] : 0;
    uint64_t inner = 0;
    if (axis < s->rank) {
        uint64_t all = count[axis];
        count[axis] = 1;
        inner = span_of(s, count);
        count[axis] = all;
    }
    if (axis == s->rank || (span <= s->leaf && aligned && step - inner <= s->gap))
        return leaf_copy(s, position, span, count, target, err);
    uint64_t all = count[axis];
    uint64_t at_once = inner <= s->leaf / 2 && aligned && step - inner <= s->gap
                           ? (s->leaf - inner) / step + 1
                           : 1;
    esdm_status status = ESDM_OK;
    for (uint64_t i = 0; i < all && status == ESDM_OK; i += at_once) {
        count[axis] = all - i < at_once ? all - i : at_once;
        status = read_plain(
            s, position + i * step, count,
            target + (int64_t) i * s->request->target_stride[axis] * (int64_t) s->element, err);
    }
    count[axis] = all;
    return status;
}

static esdm_status
plain(source *s, const esdm__fragment *fragment, esdm_error *err)
{
    uint64_t count[ESDM_MAX_RANK];
    uint64_t position = fragment->position;
    esdm_status status = plain_strides(s, fragment, err);
    if (status != ESDM_OK)
        return status;
    if (!s->certain)
        return may_be_changed(s, err);
    bool remote = esdm__file_is_remote(s->file);
    s->leaf = remote ? REMOTE_LEAF_BYTES : LEAF_BYTES;
    s->gap = remote ? REMOTE_GAP_BYTES : GAP_BYTES;
    for (uint32_t d = 0; d < s->rank; d++) {
        count[d] = s->request->count[d];
        position += s->first[d] * s->stride[d];
    }
    return read_plain(s, position, count, s->request->target, err);
}

/* ---- chunks with filters ------------------------------------------------------------------ */

/* How many bytes before the end those begin that are compared; 0: none are. */
static uint64_t
trailer_of(const esdm__fragment *fragment)
{
    switch (fragment->elsewhere.check_kind) {
    case ESDM__CHECK_ADLER32:
    case ESDM__CHECK_FLETCHER32:
    case ESDM__CHECK_TAIL:
        return 4;
    case ESDM__CHECK_GZIP:
        return 8;
    default:
        return 0;
    }
}

static esdm_status
is_other(const source *s, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "file '%s' was changed: the checksum of this chunk is another one; "
                           "refer to it again (esdm-ref)",
                           s->foreign.location);
}

/* The last bytes must be those that were seen when the reference was made.
 * @param end behind the last stored byte. */
static esdm_status
check_trailer(const source *s, const esdm__fragment *fragment, const uint8_t *end, esdm_error *err)
{
    uint64_t before = trailer_of(fragment);
    uint32_t trailer;
    if (before == 0) {
        if (s->certain)
            return ESDM_OK;
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "file '%s' may have been changed, and this chunk has no checksum; "
                               "refer to it again (esdm-ref)",
                               s->foreign.location);
    }
    memcpy(&trailer, end - before, 4);
    return trailer == (uint32_t) fragment->elsewhere.check ? ESDM_OK : is_other(s, err);
}

/* All of the bytes, where their checksum is known. */
static esdm_status
check_stored(const source *s, const esdm__fragment *fragment, const uint8_t *stored,
             esdm_error *err)
{
    if (fragment->elsewhere.check_kind != ESDM__CHECK_XXH3)
        return check_trailer(s, fragment, stored + fragment->stored_bytes, err);
    return esdm__checksum(stored, fragment->stored_bytes) == fragment->elsewhere.check
               ? ESDM_OK
               : is_other(s, err);
}

static esdm_status
decode(source *s, const esdm__fragment *fragment, uint8_t *raw, esdm_error *err)
{
    if (fragment->stored_bytes == 0 || fragment->stored_bytes < trailer_of(fragment) ||
        fragment->stored_bytes > ESDM__CHUNK_BYTES_MAX)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk of %" PRIu64 " bytes",
                               fragment->stored_bytes);
    uint8_t *stored = esdm__scratch_new(fragment->stored_bytes);
    if (stored == NULL)
        return esdm__error_nomem(err, fragment->stored_bytes, "a chunk");
    bool certain = s->certain;
    esdm_status status =
        esdm__file_read(s->file, fragment->position, stored, fragment->stored_bytes, err);
    if (status == ESDM_OK) /* written to while it was read? */
        status = esdm__file_check(s->file, &s->foreign, &certain, err);
    s->certain &= certain;
    if (status == ESDM_OK)
        status = check_stored(s, fragment, stored, err);
    if (status == ESDM_OK)
        status = esdm__filters_undo(&s->decoding, fragment->elsewhere.filter_mask, stored,
                                    fragment->stored_bytes, raw, s->raw_bytes, err);
    if (status == ESDM_OK && s->swap)
        esdm__swap_bytes(s->element, raw, s->raw_bytes / s->element);
    esdm__scratch_free(stored);
    return status;
}

/* The chunk is wanted as it is. */
static bool
is_whole(const source *s)
{
    const esdm__source_request *r = s->request;
    for (uint32_t d = 0; d < s->rank; d++) {
        if (r->count[d] != s->shape[d])
            return false;
    }
    return s->order == NULL && esdm__strides_are_dense(s->rank, r->count, r->target_stride);
}

/* Strides, in elements, of a chunk's axes in memory. */
static void
chunk_strides(const source *s, int64_t *stride)
{
    int64_t step = 1;
    if (s->order == NULL)
        esdm__dense_strides(s->rank, s->shape, stride);
    for (uint32_t k = s->rank; s->order != NULL && k-- > 0;) {
        uint32_t axis;
        memcpy(&axis, s->order + k * sizeof axis, sizeof axis);
        stride[axis] = step;
        step *= (int64_t) s->shape[axis];
    }
}

static esdm_status
filtered(source *s, const esdm__fragment *fragment, esdm_error *err)
{
    const esdm__source_request *r = s->request;
    int64_t stride[ESDM_MAX_RANK];
    if (s->raw_bytes > ESDM__CHUNK_BYTES_MAX)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk of %" PRIu64 " bytes", s->raw_bytes);
    if (is_whole(s))
        return decode(s, fragment, r->target, err);
    uint8_t *raw = esdm__scratch_new(s->raw_bytes);
    if (raw == NULL)
        return esdm__error_nomem(err, s->raw_bytes, "a chunk");
    char which[384]; /* an identity may take 256 */
    (void) snprintf(which, sizeof which, "%s %" PRId64 " %" PRIu64 " %" PRIu32, s->foreign.identity,
                    s->foreign.mtime_ns, fragment->elsewhere.check,
                    esdm__filters_part(&s->decoding));
    esdm__cache_key key = esdm__cache_key_of(s->foreign.location, which, fragment->position);
    esdm_status status = ESDM_OK;
    if (!esdm__cache_get(s->session->cache, &key, raw, s->raw_bytes)) {
        status = decode(s, fragment, raw, err);
        if (status == ESDM_OK)
            esdm__cache_put(s->session->cache, &key, raw, s->raw_bytes);
    }
    uint64_t at = 0;
    chunk_strides(s, stride);
    for (uint32_t d = 0; d < s->rank; d++) {
        at += s->first[d] * (uint64_t) stride[d];
        stride[d] *= (int64_t) r->step[d];
    }
    if (status == ESDM_OK)
        esdm__copy_bytes_nd(s->rank, r->count, s->element, raw + at * s->element, stride, r->target,
                            r->target_stride);
    esdm__scratch_free(raw);
    return status;
}

/* ---- the table ---------------------------------------------------------------------------- */

static esdm_status
foreign_read(esdm_session *session, const esdm__source_request *request, esdm_error *err)
{
    const esdm__fragment *fragment = request->fragment;
    source s = {.session = session, .request = request};
    esdm_status status = describe(&s, fragment, err);
    if (status == ESDM_OK)
        status = esdm__file_get(session, &s.foreign, &s.file, &s.certain, err);
    if (status != ESDM_OK)
        return status;
    for (uint32_t d = 0; d < s.rank; d++)
        s.first[d] = request->lo[d] - fragment->box.lo[d];
    bool raw = is_plain(&s, fragment);
    status = raw ? plain(&s, fragment, err) : filtered(&s, fragment, err);
    if (raw && status == ESDM_OK)
        status = esdm__file_check(s.file, &s.foreign, &s.certain, err);
    if (raw && status == ESDM_OK && !s.certain)
        status = esdm__error_set(err, ESDM_ECONFLICT, "file '%s' was changed while it was read",
                                 s.foreign.location);
    esdm__file_put(session, s.file);
    return status;
}

/* The last bytes of a chunk alone. */
static esdm_status
check_tail(const source *s, const esdm__fragment *fragment, esdm_error *err)
{
    uint8_t tail[8];
    uint64_t bytes = trailer_of(fragment);
    if (fragment->stored_bytes < bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "a chunk of %" PRIu64 " bytes",
                               fragment->stored_bytes);
    if (fragment->elsewhere.check_kind == ESDM__CHECK_XXH3)
        return ESDM_OK; /* only all of it tells */
    esdm_status status =
        bytes == 0 ? ESDM_OK
                   : esdm__file_read(s->file, fragment->position + fragment->stored_bytes - bytes,
                                     tail, bytes, err);
    return status == ESDM_OK ? check_trailer(s, fragment, tail + bytes, err) : status;
}

/* Plain bytes have no checksum: whether they can be read. */
static esdm_status
check_readable(const source *s, const esdm__fragment *fragment, esdm_error *err)
{
    uint8_t *data = esdm__scratch_new(LEAF_BYTES);
    if (data == NULL)
        return esdm__error_nomem(err, LEAF_BYTES, "a part of a file");
    esdm_status status = ESDM_OK;
    for (uint64_t at = 0; at < fragment->stored_bytes && status == ESDM_OK; at += LEAF_BYTES) {
        uint64_t left = fragment->stored_bytes - at;
        status = esdm__file_read(s->file, fragment->position + at, data,
                                 left < LEAF_BYTES ? left : LEAF_BYTES, err);
    }
    esdm__scratch_free(data);
    return status;
}

static esdm_status
check_chunk(source *s, const esdm__fragment *fragment, esdm_error *err)
{
    uint8_t *raw = s->raw_bytes <= ESDM__CHUNK_BYTES_MAX ? esdm__scratch_new(s->raw_bytes) : NULL;
    if (raw == NULL)
        return esdm__error_nomem(err, s->raw_bytes, "a chunk");
    esdm_status status = decode(s, fragment, raw, err);
    esdm__scratch_free(raw);
    return status;
}

static esdm_status
foreign_check(esdm_session *session, const esdm__fragment *fragment, bool data, esdm_error *err)
{
    source s = {.session = session};
    esdm_status status = describe(&s, fragment, err);
    if (status == ESDM_OK)
        status = esdm__file_get(session, &s.foreign, &s.file, &s.certain, err);
    if (status != ESDM_OK)
        return status;
    if (!data && esdm__file_is_remote(s.file))
        status = esdm__file_look(s.file, err);
    else if (is_plain(&s, fragment))
        status = !s.certain ? may_be_changed(&s, err)
                 : data     ? check_readable(&s, fragment, err)
                            : ESDM_OK;
    else if (data)
        status = check_chunk(&s, fragment, err);
    else if (!s.certain)
        status = check_tail(&s, fragment, err);
    esdm__file_put(session, s.file);
    return status;
}

static void
foreign_describe(const esdm__fragment *fragment, char *text, size_t room)
{
    esdm__foreign foreign;
    if (esdm__foreign_get(fragment->elsewhere.source, &foreign, NULL) != ESDM_OK)
        (void) snprintf(text, room, "a file that a newer ESDM refers to");
    else
        (void) snprintf(text, room, "bytes %" PRIu64 "-%" PRIu64 " of '%s'", fragment->position,
                        fragment->position + fragment->stored_bytes - 1, foreign.location);
}

/* Plain bytes that the system has in its memory. From a disk one thread reads at least as fast as
 * several, for which the kernel reads ahead less well. */
static bool
foreign_is_divisible(esdm_session *session, const esdm__fragment *fragment, const esdm__box *part)
{
    source s = {.session = session};
    uint64_t first = fragment->position;
    uint64_t span = 0;
    if (describe(&s, fragment, NULL) != ESDM_OK || !is_plain(&s, fragment) ||
        plain_strides(&s, fragment, NULL) != ESDM_OK ||
        esdm__file_get(session, &s.foreign, &s.file, &s.certain, NULL) != ESDM_OK)
        return false;
    for (uint32_t d = 0; d < s.rank; d++) {
        first += (part->lo[d] - fragment->box.lo[d]) * s.stride[d];
        span += (part->n[d] - 1) * s.stride[d];
    }
    bool cached = esdm__box_elements(part) >= DIVIDED_BYTES / s.element &&
                  esdm__file_is_cached(s.file, first) &&
                  esdm__file_is_cached(s.file, first + span / 2) &&
                  esdm__file_is_cached(s.file, first + span);
    esdm__file_put(session, s.file);
    return cached;
}

const esdm__source_ops esdm__foreign_ops = {
    .name = "foreign",
    .read = foreign_read,
    .check = foreign_check,
    .describe = foreign_describe,
    .is_divisible = foreign_is_divisible,
};
