/* SPDX-License-Identifier: MIT
 *
 * The commands and flags of the program: one table drives the parser (args.c) and the help
 * (help.c), so that they cannot disagree.
 */
#ifndef TN_OPTIONS_H
#define TN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tn_command {
    TN_CMD_RUN,
    TN_CMD_CHAT,
    TN_CMD_CONVERT,
    TN_CMD_INFO,
    TN_CMD_EMBED,
    TN_CMD_PULL,
    TN_CMD_LIST,
    TN_CMD_REMOVE,
    TN_CMD_SERVE,
    TN_CMD_PROBE,
    TN_CMD_VERIFY,
    TN_CMD_BENCH,
    TN_CMD_TOKENIZE,
    TN_CMD_DETOKENIZE,
    TN_CMD_PERPLEXITY,
    TN_CMD_LOGITS,
    TN_CMD_VERSION,
    TN_CMD_HELP,
    TN_N_COMMANDS
};

struct tn_command_row {
    const char *name;
    const char *arguments;   /* "[MODEL] [TEXT]" */
    const char *summary;     /* at most 42 characters, for the list of commands */
    const char *example;     /* at most 34, without "tern", for the same list */
    const char *text;        /* further text of `help COMMAND`; lines of at most 80 characters */
    uint32_t max_positional; /* maximum number of arguments that are not flags */
};
extern const struct tn_command_row tn_command_rows[TN_N_COMMANDS];

enum tn_mode { TN_MODE_DEFAULT, TN_MODE_CHAT, TN_MODE_RAW };
enum tn_stats { TN_STATS_NONE, TN_STATS_TEXT, TN_STATS_JSON };

/* Values of a flag that may be given several times. */
#define TN_MAX_LIST 32
struct tn_text_list {
    const char *items[TN_MAX_LIST];
    size_t n;
};

/* The parsed command line; defaults come from the table.  Texts are borrowed from argv and valid
 * UTF-8. */
struct tn_options {
    enum tn_command command;
    bool is_command_given; /* false: `tern --prompt Hi` */
    char **positional; /* [n_positional], a part of argv */
    uint32_t n_positional;
    bool help;
    bool version;

    const char *model;
    const char *prompt;
    const char *file;
    const char *system;
    const char *template_name; /* name, or a file */
    const char *date;          /* YYYY-MM-DD; NULL: today */
    const char *session;       /* a saved conversation, kept up to date */
    bool session_cache;        /* keys and values beside it */
    const char *prefix_cache;  /* keys and values of the prompt */
    const char *schema;        /* a file: restricts the answer to JSON */
    const char *grammar;       /* a file: restricts the answer to its texts */
    const char *history;       /* a file of earlier input */
    bool jsonl;                /* a conversation as JSON, one object per line */
    bool plain;                /* on a terminal: no wrapping and no styles */
    struct tn_text_list stop;
    int64_t mode;  /* enum tn_mode */
    int64_t level; /* -1 quiet, 0, 1 verbose */
    int64_t stats; /* enum tn_stats */

    uint64_t max_tokens; /* 0: not given */
    double temperature;
    uint64_t top_k;
    double top_p;
    double min_p;
    double repeat_penalty;
    double presence_penalty;
    double frequency_penalty;
    uint64_t penalty_last;
    uint64_t seed;
    bool ignore_eos;

    uint64_t ctx;     /* 0: not given */
    int64_t kv;       /* enum tern_kv, -1: planned */
    int64_t inputs;   /* enum tern_inputs_as */
    int64_t draft;    /* maximum drafted ids */
    uint64_t draft_wrong; /* every n-th draft of a recorded answer is wrong; 0: none */
    uint64_t threads; /* 0: not given */
    const char *cpu;
    uint64_t ram;     /* bytes; 0: not given */
    bool eco;
    int64_t caps;     /* enum tern_caps */

    const char *source; /* --convert DIR */
    const char *output;
    const char *name;
    int64_t head;        /* enum tern_head_type */
    int64_t activations; /* enum tern_activations */
    int64_t i2s_layout;  /* enum tern_i2s_layout */
    int64_t pack;        /* enum tern_pack */
    const char *pre;
    bool no_tokenizer;
    bool no_convert; /* run, chat, serve: refuse sources that have not been converted */
    bool force;

    const char *probe_root; /* a recorded machine instead of this one */
    const char *record;     /* directory for a recording of this machine */

    bool keep; /* pull: keep the download, too */
    bool json;
    bool tensors;
    bool special;
    bool no_bos;
    bool pieces;
    bool as_chat;
    bool as_text;
    bool no_generation_prompt;

    const char *search; /* embed */
    const char *task;
    uint64_t n_top;
    uint64_t n_dim;  /* 0: not given */
    int64_t pooling; /* enum tern_pooling; TERN_POOLING_NONE: the model's */
    bool by_line;
    bool raw_floats;

    const char *ids;
    uint64_t n_greedy;
    uint64_t batch;  /* 0: not given */
    uint64_t stride; /* 0: not given */

    const char *host; /* serve */
    uint64_t port;
    uint64_t parallel; /* 0: not given */
    const char *api_key_file;
    struct tn_text_list origins;
    struct tn_text_list hosts;
    const char *log_file;
    bool opens_page;
    bool no_sandbox;
    bool no_page;

    const char *prompt_list; /* bench */
    uint64_t n_new;
    uint64_t repeats;
    const char *thread_list;
    const char *depth_list;
    const char *parallel_list;

    uint64_t given[2]; /* bit i: row i of the table was on the command line */
};

/* The first argument that is not a flag; NULL: none. */
static inline const char *tn_first_argument(const struct tn_options *o)
{
    return o->n_positional ? o->positional[0] : NULL;
}

enum tn_option_kind {
    TN_OPT_FLAG,   /* bool = true */
    TN_OPT_SET,    /* int64_t = low */
    TN_OPT_ZERO,   /* double = 0 */
    TN_OPT_TEXT,   /* const char * */
    TN_OPT_PATH,   /* const char *; not empty */
    TN_OPT_LIST,   /* appended to a struct tn_text_list; not empty */
    TN_OPT_COUNT,  /* uint64_t in [low, high] */
    TN_OPT_REAL,   /* double in [real_low, real_high]; above real_low if `open` */
    TN_OPT_CHOICE, /* int64_t: index in `choices` */
    TN_OPT_SIZE,   /* uint64_t bytes: "900M", "1.5g" (powers of 1024); a number without unit is
                    * bytes and at least a MiB, so that "4" is an error */
    TN_OPT_STATS,  /* --stats or --stats=json */
};

struct tn_option_row {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum tn_option_kind kind;
    size_t slot;          /* offset in struct tn_options */
    uint32_t commands;    /* bits of enum tn_command */
    const char *value;    /* "N": the value's name in the help; NULL for flags */
    const char *initial;  /* default as it would be typed; NULL: none */
    const char *otherwise; /* a default that is not a constant, in words: "the model's" */
    const char *choices;  /* "f32|f16|q8" */
    uint64_t low, high;
    double real_low, real_high;
    bool open;
    bool hidden;      /* an alias of a row, or an old spelling; not in the help */
    const char *help; /* a few words; range and default are appended */
};
extern const struct tn_option_row tn_option_rows[];
extern const uint32_t tn_n_option_rows;

/* The row of a flag by its name without dashes; NULL: the command has none. */
const struct tn_option_row *tn_option_find(enum tn_command command, const char *name);
/* "0 to 2", "above 0, at most 1", "one of f32, f16, q8"; "" if there is no limit. */
void tn_option_range_text(const struct tn_option_row *row, char *out, size_t n_out);

/* Whether the flag with this member was given. */
bool tn_options_given_slot(const struct tn_options *options, size_t slot);
/* Is the answer restricted by --schema or --grammar? */
static inline bool tn_options_has_format(const struct tn_options *options)
{
    return options->schema || options->grammar;
}
#define tn_options_given(options, member)                                                          \
    tn_options_given_slot((options), offsetof(struct tn_options, member))

#endif
