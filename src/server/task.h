/* SPDX-License-Identifier: MIT
 *
 * A task: what the engine does for a request, from the ids of its prompt to the last byte.
 *
 * task.c and choice.c have what all APIs share; the format writes the results (openai_chat.c,
 * openai_text.c, messages.c, responses.c, ollama.c, llama_completion.c).
 *
 * Owned by the loop thread, except that a reader thread (tn_body_thread) computes the prompt and
 * the grammar.  A task outlives its connection: when the client is gone, its work item and jobs are
 * cancelled, and it is freed when the last of them has ended.
 */
#ifndef TN_TASK_H
#define TN_TASK_H

#include "server/gen.h"
#include "server/serve.h"
#include "server/waiting.h"
#include "tern/calls.h"
#include "tern/thinking.h"

struct tn_task;

#define TN_TASK_MAX_END_IDS 8u /* ids that end the answer besides the model's */

/* The entry that a stream has open, in formats whose answers are lists. */
enum tn_open { TN_OPEN_NOTHING, TN_OPEN_REASONING, TN_OPEN_TEXT, TN_OPEN_CALL };

struct tn_choice {
    struct tn_job job;
    struct tn_buf text;     /* complete text so far */
    size_t n_sent;          /* bytes of the text already streamed */
    struct tern_thinking *thinking; /* separates reasoning from the text; NULL: not needed */
    struct tn_buf reasoning;
    size_t n_reasoning_sent;
    uint32_t n_taken, n_reasoning_tokens; /* tokens so far, and those before the answer */
    struct tn_buf raw; /* reasoning and text verbatim, with tags, if the task keeps_raw */
    bool has_lost;     /* some text was dropped: out of memory */
    struct tern_calls *calls; /* separates tool calls from the text; NULL: none expected */
    size_t n_calls_sent;
    size_t n_arguments_sent; /* bytes of the last call's arguments, in formats that stream them */
    enum tn_open open;
    uint32_t i_open;  /* index of the open entry, or of the next one */
    size_t open_from; /* where the open text begins */
    struct tn_buf logprobs; /* [n_tokens][max(1, n_logprobs)] struct tern_token_logprob */
    uint32_t n_tokens;      /* tokens of the answer with log-probabilities, or with ids only */
    uint32_t n_skipped;     /* of which before the text, in its reasoning */
    uint32_t n_shown;       /* of which streamed or skipped */
    size_t n_shown_bytes;   /* bytes of the streamed tokens in the text */
    struct tn_buf lengths;  /* [n_tokens] uint32_t, bytes in the text */
    struct tern_decoder decoder; /* for the lengths */
    size_t n_prompt_bytes;       /* of the text, if the prompt is echoed in it */
    struct tn_buf prompt_logprobs; /* [n_ids of the prompt][n_logprobs], if echoed */
    uint32_t n_prompt_tokens;
    uint32_t end_id; /* the token that ended the answer; TERN_NO_ID: none */
    bool is_complete; /* tokens that may follow do not belong to the answer */
    bool is_cut;      /* complete because of a limit by lines */
    size_t line_at;   /* offset of the first line whose indentation is not known yet; 0: none */
    uint64_t first_ns; /* time of the first token */
    uint32_t end_ids[TN_TASK_MAX_END_IDS]; /* of the job's request */
    bool has_ended;
};

/* May the model reason before it answers? */
enum tn_reasoning { TN_REASONING_AUTO, TN_REASONING_ON, TN_REASONING_OFF };

/* How to treat a conversation whose last message is the assistant's (begun_answer.h). */
enum tn_begun {
    TN_BEGUN_ANSWERED,  /* the model answers it with another message */
    TN_BEGUN_CONTINUED, /* the model continues it */
    TN_BEGUN_REQUIRED   /* continued, and any other conversation is refused */
};

/* Reads a request's parameters.  false: refused. */
typedef bool tn_task_read_fn(struct tn_task *task, struct tn_refusal *refusal);
/* Encodes the prompt, on a reader thread because long texts take time.  false: refused. */
typedef bool tn_task_prepare_fn(struct tn_task *task, struct tn_refusal *refusal);

/* Progress of a prompt in ids: total, found in the cache, processed so far. */
struct tn_prompt_progress {
    uint32_t n_total, n_cached, n_processed;
    uint64_t ms; /* since the request arrived */
};

struct tn_task_format {
    const char *stream_type; /* "text/event-stream" */
    const char *heartbeat;   /* sent in a stream after a pause; may be NULL */
    void (*write_heartbeat)(struct tn_task *task); /* one that is not constant; may be NULL */
    bool streams_arguments;  /* tool call arguments are streamed in pieces */
    bool is_of_prompt; /* the answer is about the prompt: nothing is computed or streamed */
    tn_error_fn *error;
    /* Stream events: after the head (may be NULL); a choice has more output; it has ended (may be
     * NULL); an error. */
    void (*begin_stream)(struct tn_task *task);
    void (*send_more)(struct tn_task *task, struct tn_choice *choice);
    /* More of a choice's prompt is computed; NULL: not reported. */
    void (*send_progress)(struct tn_task *task, const struct tn_choice *choice,
                          const struct tn_prompt_progress *progress);
    void (*end_choice)(struct tn_task *task, struct tn_choice *choice);
    void (*send_error)(struct tn_task *task, const struct tn_refusal *refusal);
    /* All choices have ended, or none were requested: writes the end of a stream (tn_stream_write),
     * or appends the complete answer to *out. */
    void (*end_answer)(struct tn_task *task, struct tn_buf *out);
};

struct tn_task {
    struct tn_task *next; /* next in the server's list */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    const struct tn_server_model *model;
    const struct tn_task_format *format;
    struct tn_body request;
    /* JSON of the request, or its translation to OpenAI's form; texts point into it */
    json_t *body;
    struct tn_gen gen;
    const json_t *tools; /* that the model may call; NULL: none */
    enum tern_call_form call_form;
    struct tern_call_tools *call_tools; /* the tools, for what separates calls from the text */
    bool is_single_call;    /* an answer has at most one call */
    bool must_call;         /* a tool call is forced */
    const char *must_name;  /* the forced tool; NULL: any */
    enum tn_reasoning reasoning;
    const char *effort;     /* for the template, such as "low"; NULL: not set */
    bool hides_reasoning;     /* does not show it */
    bool separates_reasoning; /* from the text */
    bool keeps_raw;           /* the verbatim text with its reasoning is needed */
    /* tag that closes the reasoning opened by the prompt; NULL: none */
    const char *reasoning_close;
    enum tn_begun begun_answers;
    bool continues_answer; /* the prompt ends with a begun answer, inside its reasoning or not */
    /* With today's date; should_stop: the client is gone or the server stops. */
    struct tern_chat_params chat_params;
    struct tn_work_item item; /* runs `prepare`, then compiles the grammar */
    tn_task_prepare_fn *prepare;
    struct tn_refusal refusal; /* of the work item; status 0: none */
    struct tern_ids ids; /* of the prompt */
    struct tern_chat_marks marks; /* checkpoints in the prompt of a conversation */
    struct tern_ids more_ids[TN_GEN_MAX_CHOICES]; /* completions with several prompts */
    size_t n_added[TN_GEN_MAX_CHOICES]; /* leading ids of a prompt that the client did not send */
    uint32_t n_prompts; /* 1, or several; choices are ordered by prompt */
    char id[48];
    int64_t created; /* seconds since 1970 */
    struct tn_waiting waiting;
    bool is_ended;  /* for the client */
    bool echoes;    /* completions: the text includes the prompt */
    uint32_t n_choices, n_ended;
    uint32_t n_events; /* events of a stream that numbers them */
    struct tn_choice choices[TN_GEN_MAX_CHOICES];
    const char *called; /* the model name as an Ollama client wrote it */
    bool is_chat;       /* Ollama: /api/chat */
};

/* Creates a task for the request of this connection, and finds its model.  NULL: refused. */
struct tn_task *tn_task_new(struct tn_server *server, struct tn_conn *conn,
                            const struct tn_task_format *format);
/* Allowed only before tn_task_start. */
void tn_task_free(struct tn_task *task);
/* Refuses and frees a task that has not started. */
void tn_task_refuse(struct tn_task *task, const struct tn_refusal *refusal);
/* Prepares the prompt, compiles the grammar and submits the jobs.  Refuses if the schema is
 * invalid, if `prepare` refuses, if the prompt is too long, or if the queue is full. */
void tn_task_start(struct tn_task *task, tn_task_prepare_fn *prepare);
/* All of the above: answers the request of this connection, or refuses it. */
void tn_task_answer(struct tn_server *server, struct tn_conn *conn,
                    const struct tn_task_format *format, tn_task_read_fn *read,
                    tn_task_prepare_fn *prepare);

/* Called about once a second: sends heartbeats to a waiting client. */
void tn_task_tick(struct tn_task *task, uint64_t now_ns);
/* Handles a message of the engine. */
void tn_task_take(struct tn_server *server, struct tn_message *message);
/* Called when the server closes. */
void tn_task_free_all(struct tn_server *server);

/* Refuses a prompt of n_ids (is_bound: at least n_ids).  Returns false. */
bool tn_task_refuse_length(const struct tn_task *task, bool is_bound, size_t n_ids,
                           struct tn_refusal *refusal);
/* For `prepare`: can a prompt of n_bytes fit at all?  false: refused. */
bool tn_task_may_fit(const struct tn_task *task, size_t n_bytes, struct tn_refusal *refusal);
/* For `prepare`: appends the ids of a text to a prompt.  `flags` of tern_tokenizer_encode.  false:
 * refused, out of memory. */
bool tn_task_encode(const struct tn_task *task, struct tern_ids *ids, const char *text, size_t n,
                    uint32_t flags, struct tn_refusal *refusal);
/* The same for n ids. */
bool tn_task_add_ids(struct tern_ids *ids, const uint32_t *more, size_t n,
                     struct tn_refusal *refusal);

static inline const struct tern_tokenizer *tn_task_tokenizer(const struct tn_task *task)
{
    return tern_model_tokenizer(task->model->model);
}

/* ---- for formats ---- */

static inline size_t tn_choice_n_calls(const struct tn_choice *choice)
{
    return choice->calls ? tern_calls_count(choice->calls) : 0;
}
/* The arguments of the last sent call that were not sent yet. */
const char *tn_choice_more_arguments(const struct tn_choice *choice);
/* "stop", or "length" if a limit cut the text. */
const char *tn_choice_finish(const struct tn_choice *choice);
/* Entries of token i. */
const struct tern_token_logprob *tn_choice_logprobs(const struct tn_choice *choice, uint32_t i);
/* Bytes that token i adds to the text. */
size_t tn_choice_token_bytes(const struct tn_choice *choice, uint32_t i);
/* One past the last token whose bytes are all in the first n_bytes of text; at the end all tokens,
 * except those after a stop string.  Tokens of tool calls and of text after them count only at the
 * end.  *n_token_bytes: the bytes of those tokens. */
uint32_t tn_choice_tokens_of(const struct tn_choice *choice, size_t n_bytes,
                             size_t *n_token_bytes);
/* The same without the tokens of calls and of text after the first one. */
uint32_t tn_choice_tokens_before_calls(const struct tn_task *task, const struct tn_choice *choice,
                                       size_t n_bytes, size_t *n_token_bytes);
struct tn_usage_counts {
    uint64_t n_prompt, n_cached, n_new;
    uint64_t n_reasoning; /* of the new ones */
    double prompt_s, decode_s;
};
void tn_task_usage(const struct tn_task *task, struct tn_usage_counts *out);
void tn_task_write(struct tn_task *task, const char *bytes, size_t n);
/* Bytes were lost: ends the stream in a way that the client recognises as incomplete. */
void tn_task_break(struct tn_task *task);

#endif
