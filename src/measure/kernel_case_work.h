/* SPDX-License-Identifier: MIT
 *
 * Helpers of the kernel cases: dimensions of the model, and the handling of results.
 *
 * For the kernel_cases*.c files only.
 */
#ifndef TN_KERNEL_CASE_WORK_H
#define TN_KERNEL_CASE_WORK_H

#include "measure/kernel_calls.h"
#include "measure/kernel_cases.h"
#include "model/kvcache.h"

/* tn_case_gemv_t2_i8 and so on: one per operation, in the file for the kind of data. */
typedef uint64_t tn_case_fn(struct tn_case_work *work, const struct tn_kernels *kernels);
#define TN_CASE_DECLARE(op) tn_case_fn tn_case_##op;
TN_KERN_OPS(TN_CASE_DECLARE)
#undef TN_CASE_DECLARE

/* Defines the case of an operation: an expression of `w` and of the kernels `k`. */
#define TN_CASE_DEFINE(op, ...)                                                                    \
    uint64_t tn_case_##op(struct tn_case_work *w, const struct tn_kernels *k)                      \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

#define TN_CASE_STAND_IN_ROWS 8u
#define TN_CASE_TABLE_ROWS 1024u /* between two calls of should_stop */
/* Size of the stand-in (work->blocks) for every block layout that the model does not have. */
#define TN_CASE_BLOCKS_ROWS TN_TILE_ROWS
#define TN_CASE_BLOCKS_COLS TN_SPAN_COLS
#define TN_CASE_BLOCKS_BYTES 4352u

/* Adds a result to the work's hash, if hashing is on. */
void tn_case_note(struct tn_case_work *work, const void *result, size_t n_bytes);
bool tn_case_is_stopped(const struct tn_case_work *work);

/* Gives the operands of a call their memory: inputs, outputs, and the cache as rows.  The caller
 * may then replace inputs. */
void tn_case_describe(struct tn_case_work *w, struct tn_kernel_call *c, enum tn_call_op op);
/* Calls a kernel, and adds what it has written to the hash. */
void tn_case_call(struct tn_case_work *w, struct tn_kernel_call *c, enum tn_call_op op,
                  void (*fn)(void));
/* Bytes that a call reads and writes. */
uint64_t tn_case_call_bytes(const struct tn_kernel_call *c);

/* Bytes of an input rounded for the kernels of x8 and x16. */
static inline size_t tn_case_x8_bytes(uint32_t cols)
{
    return TN_X8_BYTES(cols);
}

static inline size_t tn_case_x16_bytes(uint32_t cols)
{
    return TN_X16_BYTES(cols);
}

static inline const struct tern_file_config *tn_case_config(const struct tn_case_work *w)
{
    return w->model->file.spec.config;
}

static inline uint32_t tn_case_cache_dim(const struct tn_case_work *w)
{
    return tn_kv_dim(tn_case_config(w)->head_dim);
}

/* Bytes of a block of keys or values. */
static inline size_t tn_case_block_bytes(const struct tn_case_work *w, size_t value_bytes)
{
    return TN_KV_BLOCK * value_bytes * tn_case_cache_dim(w);
}

/* Query heads that share a key head. */
static inline uint32_t tn_case_n_queries(const struct tn_case_work *w)
{
    return tn_case_config(w)->n_head / tn_case_config(w)->n_kv_head;
}

#endif
