/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_META_SEARCH_WORDS_H
#define ESDM_META_SEARCH_WORDS_H

/** @file Words of titles, long names and comments, as queries look for them. Pure functions. */

#include <stdbool.h>
#include <stddef.h>

/** Longest word, in bytes; of longer ones the beginning counts. */
#define ESDM__SEARCH_WORD_BYTES 40
/** Words of a container that are indexed: of its title, then of long names, then of comments. */
#define ESDM__SEARCH_WORDS_MOST 64u

/** @param word lower case (ASCII), not NUL-terminated. @param last no other word follows. */
typedef bool (*esdm__search_word_visitor)(const char *word, size_t bytes, bool last, void *user);

/** Visits the words of a text: letters and digits in a row, two at least; bytes of UTF-8 sequences
 *  count as letters. */
void esdm__search_words(const char *text, size_t bytes, esdm__search_word_visitor visit,
                        void *user);

#endif
