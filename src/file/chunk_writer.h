/* SPDX-License-Identifier: MIT
 *
 * Hashes and writes the chunks of a file on a second thread while the caller fills the next one.
 * For model_file_writer.c.
 *
 *   tn_chunk_writer_buffer   the chunk to fill
 *   tn_chunk_writer_put      waits for the previous chunk, passes this one on
 *   tn_chunk_writer_wait     everything is written, or an error
 *
 * A chunk that is not full, the last of a file, is written at once, as are all if there is no
 * memory for a second buffer or no thread.
 */
#ifndef TN_CHUNK_WRITER_H
#define TN_CHUNK_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plat/plat.h"
#include "tern/status.h"

/* A part of a file, and the destination of its XXH3. */
struct tn_chunk {
    struct tn_file *file;
    uint64_t offset;
    const void *bytes; /* set by tn_chunk_writer_put */
    size_t n_bytes;    /* at most TERN_FILE_CHUNK */
    void *hash;        /* [8], any alignment */
};

struct tn_chunk_writer {
    unsigned char *buffers[2]; /* [TERN_FILE_CHUNK]; the second is NULL before it is needed */
    uint32_t i_buffer;         /* the one that the caller fills */
    struct tn_thread *thread;
    _Atomic uint32_t state;    /* enum chunk_state of chunk_writer.c */
    struct tn_chunk chunk;     /* of the thread, until it is idle */
    tern_status status;        /* of the thread's last chunk */
    struct tern_error error;
};

/* False: no memory. */
bool tn_chunk_writer_init(struct tn_chunk_writer *w);
/* Waits for the thread, ends it and frees the buffers.  Zeros are fine. */
void tn_chunk_writer_fini(struct tn_chunk_writer *w);

unsigned char *tn_chunk_writer_buffer(const struct tn_chunk_writer *w);
/* Hashes and writes the first n_bytes of the buffer; the caller then fills another one.  Returns
 * the error of this chunk or of the previous one. */
tern_status tn_chunk_writer_put(struct tn_chunk_writer *w, struct tn_chunk chunk,
                                struct tern_error *err);
/* Returns the error of the last chunk, once. */
tern_status tn_chunk_writer_wait(struct tn_chunk_writer *w, struct tern_error *err);

#endif
