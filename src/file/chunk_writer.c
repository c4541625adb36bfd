/* SPDX-License-Identifier: MIT
 *
 * The thread sleeps on `state`.  The caller sets it to FULL and waits for IDLE before it touches
 * `chunk`, `status` or `error` again.
 */
#define XXH_INLINE_ALL
#include "file/chunk_writer.h"

#include <stdatomic.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "tern/model_format.h"

enum chunk_state { IDLE, FULL, STOPPING };

static tern_status write_chunk(const struct tn_chunk *c, struct tern_error *err)
{
    const uint64_t hash = XXH3_64bits(c->bytes, c->n_bytes);
    memcpy(c->hash, &hash, sizeof hash);
    return tn_file_write_at(c->file, c->offset, c->bytes, c->n_bytes, err);
}

static void set_state(struct tn_chunk_writer *w, enum chunk_state state)
{
    atomic_store(&w->state, state);
    tn_wake_all(&w->state);
}

static void run(void *arg)
{
    struct tn_chunk_writer *w = arg;
    uint32_t state;
    while ((state = atomic_load(&w->state)) != STOPPING) {
        if (state == FULL) {
            w->status = write_chunk(&w->chunk, &w->error);
            set_state(w, IDLE);
        } else {
            tn_wait_on(&w->state, IDLE, 0);
        }
    }
}

static bool has_thread(struct tn_chunk_writer *w)
{
    if (!w->buffers[1])
        w->buffers[1] = tn_alloc_aligned(TERN_FILE_CHUNK, TERN_FILE_ALIGN);
    if (!w->thread && w->buffers[1])
        w->thread = tn_thread_start(run, w);
    return w->thread != NULL;
}

bool tn_chunk_writer_init(struct tn_chunk_writer *w)
{
    w->buffers[0] = tn_alloc_aligned(TERN_FILE_CHUNK, TERN_FILE_ALIGN);
    return w->buffers[0] != NULL;
}

void tn_chunk_writer_fini(struct tn_chunk_writer *w)
{
    (void)tn_chunk_writer_wait(w, NULL);
    if (w->thread) {
        set_state(w, STOPPING);
        tn_thread_join(w->thread);
    }
    tn_free_aligned(w->buffers[0]);
    tn_free_aligned(w->buffers[1]);
    memset(w, 0, sizeof *w);
}

unsigned char *tn_chunk_writer_buffer(const struct tn_chunk_writer *w)
{
    return w->buffers[w->i_buffer];
}

tern_status tn_chunk_writer_wait(struct tn_chunk_writer *w, struct tern_error *err)
{
    while (atomic_load(&w->state) == FULL)
        tn_wait_on(&w->state, FULL, 0);
    const tern_status status = w->status;
    if (status != TERN_OK && err)
        *err = w->error;
    w->status = TERN_OK;
    return status;
}

tern_status tn_chunk_writer_put(struct tn_chunk_writer *w, struct tn_chunk chunk,
                                struct tern_error *err)
{
    const tern_status status = tn_chunk_writer_wait(w, err);
    if (status != TERN_OK)
        return status;
    chunk.bytes = tn_chunk_writer_buffer(w);
    if (chunk.n_bytes < TERN_FILE_CHUNK || !has_thread(w))
        return write_chunk(&chunk, err);
    w->chunk = chunk;
    w->i_buffer ^= 1;
    set_state(w, FULL);
    return TERN_OK;
}
