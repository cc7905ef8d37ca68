/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_HANDOVER_WIRE_H
#define ESDM_IO_PACKS_HANDOVER_WIRE_H

/**
 * @file
 * What two processes of a node say to each other when one stores for the other: messages over a
 * local socket that keeps their bounds, and memory that both see. One request at a time on a
 * connection; its answer is any number of NEWS and one END. Both run the same libesdm. Names of
 * sockets are abstract: nothing is left behind. Threads: no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/packs/pack.h"

/** Of a socket's name. */
#define ESDM__HANDOVER_NAME_BYTES 96u
/** Of a message with its texts. */
#define ESDM__HANDOVER_MESSAGE_BYTES 8192u
/** Of memory that a connection shares. */
#define ESDM__HANDOVER_WINDOW_MOST (UINT64_C(64) << 20)

typedef enum esdm__handover_kind {
    ESDM__HANDOVER_HELLO,    /**< both ends check each other */
    ESDM__HANDOVER_APPEND,   /**< the first bytes of the memory are a blob */
    ESDM__HANDOVER_PUBLISH,  /**< esdm__pack_set_publish() */
    ESDM__HANDOVER_READABLE, /**< of all packs, or (`bytes`) of some: pairs of texts in the memory,
                                  each with its NUL: where it lies, and its name */
    ESDM__HANDOVER_NEWS,     /**< of a pack: where it lies now, or (`lost`) that it is lost */
    ESDM__HANDOVER_END       /**< what became of the request */
} esdm__handover_kind;

typedef struct esdm__handover_request {
    uint32_t kind;
    uint32_t form; /**< esdm__handover_form() */
    uint64_t targets;
    uint64_t window_bytes; /**< of memory that comes with the message; 0: that of before */
    uint64_t bytes;        /**< in the memory */
    uint64_t behind_bytes; /**< with those to `allowed`: as in esdm__pack_hint */
    uint32_t copies;
    bool cheap;
    bool global;
    bool restricted; /**< `allowed` counts */
    bool durable;
    esdm__target_set allowed;
} esdm__handover_request;

typedef struct esdm__handover_answer {
    uint32_t kind;
    bool lost;
    bool moved; /**< END of READABLE: a pack lies elsewhere than its text said */
    uint64_t position;
    esdm_error error;                         /**< END: ESDM_OK, or why not */
    char texts[ESDM__HANDOVER_MESSAGE_BYTES]; /**< two, each with its NUL: name of a pack, and where
                                                   it lies; sent as far as they go */
} esdm__handover_answer;

/** Tells other forms of messages from these. */
uint32_t esdm__handover_form(void);

/** A socket at which requests arrive. @return its descriptor; -1 and errno. */
int esdm__handover_listen(const char *name);
/** ECONNREFUSED: nobody listens. @return a descriptor; -1 and errno. */
int esdm__handover_connect(const char *name, unsigned timeout_s);
/** The process at the other end; 0: it cannot be seen. false: it is another user's. */
bool esdm__handover_peer(int socket, pid_t *ret_process);

/** Sends one message of two parts. @param fd goes along; -1: none. false and errno. */
bool esdm__handover_send(int socket, const void *head, size_t head_bytes, const void *tail,
                         size_t tail_bytes, int fd);
/** Receives one message. @param ret_fd what came along; -1: nothing. @return its bytes, 0 at the
 *  end; -1 and errno. */
ptrdiff_t esdm__handover_receive(int socket, void *message, size_t bytes, int *ret_fd);

/** Shared memory of a connection. */
typedef struct esdm__window {
    void *data; /**< NULL: none */
    uint64_t bytes;
} esdm__window;

/** New memory, of which all is there. @param ret_fd for the other end; owned. false: none. */
bool esdm__window_make(esdm__window *window, uint64_t bytes, int *ret_fd);
/** Takes what the other end has made, if nobody can make it shorter. Owns `fd`. */
bool esdm__window_take(esdm__window *window, uint64_t bytes, int fd);
void esdm__window_clear(esdm__window *window);

#endif
