/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of test_null_error: the calls with NULL for the error, and the model that
 * they use.
 */
#ifndef NULL_ERROR_H
#define NULL_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "robust/model_dir.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#define DIR TERN_BUILD_DIR "/test_null_error"
#define DEMO DIR "/demo.tern"
#define OUT DIR "/out.tern"

/* Made by the set-up of test_null_error.c. */
extern struct tern_sysinfo live;
extern struct tern_engine *engine;
extern struct tern_model *model;
extern struct tern_session *session;
extern uint32_t vocab;
extern struct model_dir source; /* in DIR */

extern bool is_short; /* with_short_memory is letting allocations fail */

void note_call(const char *name);

/* name(arguments..., NULL) must return `expected`; while memory is short, TERN_MEMORY is allowed
 * too. */
#define CALL(expected, name, ...)                                                                  \
    do {                                                                                           \
        note_call(#name);                                                                          \
        const tern_status got = name(__VA_ARGS__, NULL);                                           \
        if (got != (expected) && !(is_short && got == TERN_MEMORY))                                \
            fail_msg("%s, line %d: %s instead of %s", #name, __LINE__, tern_status_text(got),      \
                     tern_status_text(expected));                                                  \
    } while (0)

/* Fails all allocations from the n-th on, n = 0, step, 2 step ... until the function succeeds. */
void with_short_memory(void (*run)(void), unsigned step);

/* For tern_model_prefetch, tern_verify and tern_convert: interrupts them. */
bool stop_reading(void *arg, uint64_t n_done, uint64_t n_total);

/* null_error_text.c */
void test_text(void **state);
void test_grammar(void **state);
void test_conversation(void **state);

/* null_error_tools.c */
void test_verify(void **state);
void test_measures(void **state);
void test_convert(void **state);
void test_convert_refused(void **state);
void test_machine(void **state);
void test_plan(void **state);

#endif
