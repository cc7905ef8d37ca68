/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Millions of lines: each thread makes the text of the next piece of the list in memory of its own,
 * and writes it when the pieces before it are written. One thread makes text while another one
 * writes.
 */
#include "esdm-reduce/list.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm-reduce/number_text.h"

enum {
    PIECE = 16384, /* lines */
    MOST_THREADS = 8,
    INDEX_BYTES = 21 /* of the longest one, with its blank */
};

typedef struct lines {
    const reduce_list *list;
    uint64_t pieces;
    pthread_mutex_t lock; /* what follows; ThreadSanitizer does not see those of GLib */
    pthread_cond_t turn;
    uint64_t begun;   /* pieces */
    uint64_t written; /* pieces */
    bool failed;
} lines;

/* The indices of a row, which is all but the last one. @return bytes. */
static size_t
row_text(const reduce_list *list, uint64_t row, char *ret)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    size_t bytes = 0;
    for (uint32_t k = list->rank > 0 ? list->rank - 1 : 0; k-- > 0; row /= list->shape[k])
        index[k] = row % list->shape[k];
    for (uint32_t k = 0; k + 1 < list->rank; k++) {
        bytes += whole_text(index[k], ret + bytes);
        ret[bytes++] = ' ';
    }
    return bytes;
}

/* @param ret room for the longest lines. @return bytes. */
static size_t
piece_text(const reduce_list *list, uint64_t from, uint64_t to, char *ret)
{
    char row[INDEX_BYTES * ESDM_MAX_RANK + NUMBER_TEXT_BYTES];
    uint64_t last = list->rank > 0 ? list->shape[list->rank - 1] : 1;
    uint64_t at = from % last;
    size_t row_bytes = row_text(list, from / last, row);
    char *end = ret;
    for (uint64_t i = from; i < to; i++, at++) {
        if (at == last) {
            at = 0;
            row_bytes = row_text(list, i / last, row);
        }
        memcpy(end, row, row_bytes);
        end += row_bytes;
        if (list->rank > 0) {
            end += whole_text(at, end);
            *end++ = ' ';
        }
        if (isnan(list->values[i]))
            *end++ = '-';
        else
            end += number_text(list->values[i], end);
        *end++ = '\n';
    }
    return (size_t) (end - ret);
}

/* @return false: there is none left, or nothing more can be written. */
static bool
begin_piece(lines *all, uint64_t *ret_piece)
{
    (void) pthread_mutex_lock(&all->lock);
    bool begins = all->begun < all->pieces && !all->failed;
    if (begins)
        *ret_piece = all->begun++;
    (void) pthread_mutex_unlock(&all->lock);
    return begins;
}

/* When it is its turn. */
static void
write_piece(lines *all, uint64_t piece, const char *text, size_t bytes)
{
    (void) pthread_mutex_lock(&all->lock);
    while (all->written != piece)
        (void) pthread_cond_wait(&all->turn, &all->lock);
    bool failed = all->failed;
    (void) pthread_mutex_unlock(&all->lock);
    if (!failed)
        failed = !tool_output_plain(text, bytes);
    (void) pthread_mutex_lock(&all->lock);
    all->failed = failed;
    all->written++;
    (void) pthread_cond_broadcast(&all->turn);
    (void) pthread_mutex_unlock(&all->lock);
}

static void *
print_pieces(void *user)
{
    lines *all = user;
    const reduce_list *list = all->list;
    uint64_t piece = 0;
    uint64_t most = list->count < PIECE ? list->count : PIECE;
    gsize line = (gsize) INDEX_BYTES * list->rank + NUMBER_TEXT_BYTES + 1;
    g_autofree char *text = g_malloc(most * line + 1);
    while (begin_piece(all, &piece)) {
        uint64_t from = piece * PIECE;
        uint64_t to = list->count - from > PIECE ? from + PIECE : list->count;
        write_piece(all, piece, text, piece_text(list, from, to, text));
    }
    return NULL;
}

void
list_print(const reduce_list *list)
{
    lines all = {.list = list,
                 .pieces = list->count / PIECE + (list->count % PIECE != 0),
                 .lock = PTHREAD_MUTEX_INITIALIZER,
                 .turn = PTHREAD_COND_INITIALIZER};
    pthread_t threads[MOST_THREADS];
    uint64_t most = MIN((uint64_t) MIN(g_get_num_processors(), MOST_THREADS), all.pieces);
    uint64_t started = 1; /* this one */
    while (started < most && pthread_create(&threads[started], NULL, print_pieces, &all) == 0)
        started++; /* one that cannot be started is not needed */
    (void) print_pieces(&all);
    for (uint64_t i = 1; i < started; i++)
        (void) pthread_join(threads[i], NULL);
    (void) pthread_cond_destroy(&all.turn);
    (void) pthread_mutex_destroy(&all.lock);
}
