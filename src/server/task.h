/* SPDX-License-Identifier: MIT
 *
 * What the engine does for a request, from the ids of its prompt to the last byte.  What all APIs
 * share is here (task.c, choice.c); how results look is the format's (openai_chat.c, openai_text.c,
 * messages.c, responses.c, ollama.c, llama_completion.c).
 *
 * Owned by the loop thread.  Two parts are computed elsewhere, by one of the threads that read
 * requests (tn_body_thread): the prompt and the grammar.  A task outlives its connection: when the
 * client is gone its errand or its jobs are cancelled, and it is freed when the last has ended.
 */
#ifndef TN_TASK_H
#define TN_TASK_H

#include "server/gen.h"
#include "server/serve.h"
#include "server/waiting.h"
#include "tern/calls.h"
#include "tern/thinking.h"

struct tn_task;

/* What a stream has begun and not ended, in formats whose answers are lists. */
enum tn_open { TN_OPEN_NOTHING, TN_OPEN_REASONING, TN_OPEN_TEXT, TN_OPEN_CALL };

struct tn_choice {
    struct tn_job job;
    struct tn_buf text;     /* all of it */
    size_t n_sent;          /* of the text, in a stream */
    struct tern_thinking *thinking; /* tells reasoning from the text; NULL: nothing does */
    struct tn_buf reasoning;
    size_t n_reasoning_sent;
    uint32_t n_taken, n_reasoning_tokens; /* tokens so far, and those in front of the answer */
    struct tn_buf raw; /* reasoning and text as they came, with their tags, for keeps_raw */
    bool has_lost;     /* text: no memory was there for it */
    struct tern_calls *calls; /* of tools, told from the text; NULL: none are expected */
    size_t n_calls_sent;
    size_t n_arguments_sent; /* bytes of the last of these calls, in formats that stream them */
    enum tn_open open;
    uint32_t i_open;  /* its place, or that of the next one */
    size_t open_from; /* where an open text begins */
    struct tn_buf logprobs; /* [n_tokens][n_logprobs] struct tern_token_logprob */
    uint32_t n_tokens;      /* of the answer, with log-probabilities */
    uint32_t n_shown;       /* of these, in a stream */
    size_t n_shown_bytes;   /* bytes of the shown tokens */
    struct tn_buf prompt_logprobs; /* [n_ids of the prompt][n_logprobs], when echoed */
    uint32_t n_prompt_tokens;
    uint32_t end_id; /* the token that ended it; TERN_NO_ID: none did */
    bool has_ended;
};

/* May the model think before it answers? */
enum tn_reasoning { TN_REASONING_AUTO, TN_REASONING_ON, TN_REASONING_OFF };

/* What becomes of a conversation whose last message is the assistant's (begun_answer.h). */
enum tn_begun {
    TN_BEGUN_ANSWERED,  /* the model answers it with another message */
    TN_BEGUN_CONTINUED, /* the model continues it */
    TN_BEGUN_REQUIRED   /* the same; a conversation that ends otherwise is refused */
};

/* Reads what a request says about its answer.  false: refused. */
typedef bool tn_task_read_fn(struct tn_task *task, struct tn_refusal *refusal);
/* Makes the ids of the prompt, on a thread that reads requests: long texts take time.  false:
 * refused. */
typedef bool tn_task_prepare_fn(struct tn_task *task, struct tn_refusal *refusal);

/* Ids of a prompt: all, those found in the cache, those that are there now. */
struct tn_prompt_progress {
    uint32_t n_total, n_cached, n_processed;
    uint64_t ms; /* since the request came */
};

struct tn_task_format {
    const char *stream_type; /* "text/event-stream" */
    const char *heartbeat;   /* sent in a stream when nothing else was for a while; may be NULL */
    void (*beat)(struct tn_task *task); /* writes one, where it is not always the same */
    bool streams_arguments;  /* of calls, piece by piece */
    tn_error_fn *error;
    /* In streams: behind the head; a choice has more to show; it has ended; an error. */
    void (*begin)(struct tn_task *task);
    void (*more)(struct tn_task *task, struct tn_choice *choice);
    /* A part of a choice's prompt is computed; NULL: nobody is told. */
    void (*progress)(struct tn_task *task, const struct tn_choice *choice,
                     const struct tn_prompt_progress *progress);
    void (*end_choice)(struct tn_task *task, struct tn_choice *choice);
    void (*fail)(struct tn_task *task, const struct tn_refusal *refusal);
    /* All choices have ended, or none were wanted: the end of a stream (written with
     * tn_stream_write), or the whole answer, appended to *out. */
    void (*end)(struct tn_task *task, struct tn_buf *out);
};

struct tn_task {
    struct tn_task *next; /* of the server's */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    const struct tn_server_model *model;
    const struct tn_task_format *format;
    struct tn_body request;
    json_t *body; /* its JSON, or as OpenAI would write it: texts point into it */
    struct tn_gen gen;
    const json_t *tools; /* that the model may call; NULL: none */
    enum tern_call_form call_form;
    bool must_call;         /* one of them */
    const char *must_name;  /* this one; NULL: any */
    enum tn_reasoning reasoning;
    const char *effort;     /* for the template, such as "low"; NULL: none is named */
    bool hides_reasoning;   /* what there is of it is not shown */
    bool tells_reasoning;   /* from the text of the answers */
    bool keeps_raw;         /* text with reasoning in it, as it came */
    const char *reasoning_close; /* the prompt has begun it, and this tag ends it; NULL: not */
    enum tn_begun begun_answers;
    bool continues_answer; /* which the prompt ends with, inside its reasoning or not */
    /* With today's date; should_stop tells that the client is gone or the server ends. */
    struct tern_chat_params chat_params;
    struct tn_errand errand;             /* the grammar, then `prepare` */
    tn_task_prepare_fn *prepare;
    struct tn_refusal refusal; /* of the errand; status 0: none */
    struct tern_ids ids; /* the prompt */
    struct tern_chat_marks marks; /* in it, of a conversation */
    struct tern_ids more_ids[TN_GEN_MAX_CHOICES]; /* completions with several prompts */
    size_t n_added[TN_GEN_MAX_CHOICES]; /* first ids of a prompt that are not its client's */
    uint32_t n_prompts; /* 1, or n of them; choices are prompt-major */
    char id[48];
    int64_t created; /* s since 1970 */
    struct tn_waiting waiting;
    bool is_ended;  /* towards the client */
    bool echoes;    /* completions: the prompt is part of the text */
    uint32_t n_choices, n_ended;
    uint32_t n_events; /* of a stream that numbers them */
    struct tn_choice choices[TN_GEN_MAX_CHOICES];
    const char *called; /* the model, as an Ollama client wrote it */
    bool is_chat;       /* Ollama: a conversation, not a text */
};

/* A new task for the request of this connection, which names its model.  NULL: refused. */
struct tn_task *tn_task_new(struct tn_server *server, struct tn_conn *conn,
                                const struct tn_task_format *format);
/* Only before tn_task_start. */
void tn_task_free(struct tn_task *task);
/* Refuses and frees a task that has not started. */
void tn_task_refuse(struct tn_task *task, const struct tn_refusal *refusal);
/* Makes the grammar, prepares the prompt and hands the jobs to the engine.  Refuses when there is
 * none of the form, when `prepare` does, when the prompt does not fit, or all queues are full. */
void tn_task_start(struct tn_task *task, tn_task_prepare_fn *prepare);
/* All of these in one: answers the request of this connection, or refuses it. */
void tn_task_answer(struct tn_server *server, struct tn_conn *conn,
                    const struct tn_task_format *format, tn_task_read_fn *read,
                    tn_task_prepare_fn *prepare);

/* About once a second while it is in work: a client that waits is told that it goes on. */
void tn_task_tick(struct tn_task *task, uint64_t now_ns);
/* What the engine says. */
void tn_task_take(struct tn_server *server, struct tn_message *message);
/* The server ends. */
void tn_task_free_all(struct tn_server *server);

/* Refuses a prompt of n_ids, or, is_bound, of at least so many; false. */
bool tn_task_refuse_length(const struct tn_task *task, bool is_bound, size_t n_ids,
                           struct tn_refusal *refusal);
/* For `prepare`: before a prompt of n_bytes becomes ids.  false: refused, it cannot fit. */
bool tn_task_may_fit(const struct tn_task *task, size_t n_bytes, struct tn_refusal *refusal);

/* ---- for formats ---- */

static inline size_t tn_choice_n_calls(const struct tn_choice *choice)
{
    return choice->calls ? tern_calls_count(choice->calls) : 0;
}
/* Arguments of the last call that was sent, behind those that were sent. */
const char *tn_choice_more_arguments(const struct tn_choice *choice);
/* "stop", or "length" when something cut the text. */
const char *tn_choice_finish(const struct tn_choice *choice);
/* Entries of the tokens [from, to) and their bytes. */
const struct tern_token_logprob *tn_choice_logprobs(const struct tn_choice *choice, uint32_t i);
/* One past the last token whose bytes are all shown with n_bytes of text; at the end all of them,
 * but for those behind a stop string.  *n_token_bytes are the bytes up to there. */
uint32_t tn_choice_tokens_of(const struct tn_task *task, const struct tn_choice *choice,
                             size_t n_bytes, size_t *n_token_bytes);
struct tn_usage_counts {
    uint64_t n_prompt, n_cached, n_new;
    uint64_t n_reasoning; /* of the new ones */
    double prompt_s, decode_s;
};
void tn_task_usage(const struct tn_task *task, struct tn_usage_counts *out);
/* The bytes that a token puts into the text; NULL and 0 for control tokens, which put none. */
const char *tn_task_token_text(const struct tn_task *task, uint32_t id, size_t *n);
void tn_task_write(struct tn_task *task, const char *bytes, size_t n);
/* Bytes are missing: the stream ends so that its client sees that it is cut. */
void tn_task_break(struct tn_task *task);

#endif
