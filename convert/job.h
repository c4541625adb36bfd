/* SPDX-License-Identifier: MIT
 *
 * A conversion in progress: the state that convert.c and job_read.c share.  job_read.c fills it
 * from the source, with every check that needs no weights; convert.c writes the model.
 */
#ifndef TN_CONVERT_JOB_H
#define TN_CONVERT_JOB_H

#include "base/buf.h"
#include "base/compiler.h"
#include "convert/model_source.h"
#include "convert/stream.h"
#include "convert/tensor_plan.h"
#include "file/model_file_writer.h"
#include "plat/plat.h"
#include "tern/convert.h"

#define TN_JOB_MAX_INPUTS (TN_ST_MAX_SHARDS + 10u)

struct tn_job {
    const struct tern_convert_params *params;
    struct tern_convert_result *result;
    struct tern_error *err;

    bool cut_context;  /* to the range of the rope factors */
    char *resolved;    /* the source's path, with links resolved */
    char *folder;      /* that contains the input files */
    char *source_name; /* the source without path and extension */
    const char *name;
    struct tn_model_source model;
    struct tn_tensor_plan plan;
    struct tn_buf tokenizer;
    char *template_source;
    size_t n_template_source;
    const char *template_name;

    struct tn_mwriter_source inputs[TN_JOB_MAX_INPUTS]; /* files in `folder` */
    uint64_t modified_ns[TN_JOB_MAX_INPUTS]; /* their last write times */
    uint32_t n_inputs;

    struct tn_mwriter *writer;
    struct tn_streamer stream;
};

/* Calls the caller's on_message, if set. */
void tn_job_say(const struct tn_job *j, enum tern_convert_message kind, const char *format, ...)
    TN_PRINTF(3, 4);

/* Opens a file of the source's folder. */
tern_status tn_job_open_input(struct tn_job *j, const char *name, struct tn_file **file);

/* Reads config, headers of the weights, tokenizer and template, chooses the names, and runs all
 * checks that need no weights. */
tern_status tn_job_read(struct tn_job *j);

#endif
