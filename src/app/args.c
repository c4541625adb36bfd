/* SPDX-License-Identifier: MIT
 *
 * The parser of the command line, driven by the table of options.c.  Errors suggest the nearest
 * valid name.
 */
#include "args.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"
#include "hints.h"
#include "nearest.h"
#include "plat/plat.h"

struct parser {
    struct tn_options *o;
    char **argv;
    int argc;
    int i; /* index of the next argument */
    bool only_positional;
    struct tern_error *err;
};

/* ---- values ---- */

static tern_status bad_value(struct parser *p, const struct tn_option_row *row, const char *value)
{
    char range[128];
    tn_option_range_text(row, range, sizeof range);
    return tn_fail(p->err, TERN_USAGE, "%s%s \"%s\": must be %s%s", p->argv ? "--" : "", row->name,
                   value, row->kind == TN_OPT_CHOICE ? "one of " : "", range);
}

static bool parse_count(const char *text, uint64_t *out)
{
    if (!*text)
        return false;
    uint64_t n = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (unsigned)(*text - '0'), &n))
            return false;
    }
    *out = n;
    return true;
}

/* Plain decimal numbers only: strtod would also accept " 1", "0x1", "inf" and "nan".  The program
 * never calls setlocale, so the decimal point is always '.'. */
static bool parse_real(const char *text, double *out)
{
    char *end;
    if (strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return end != text && !*end;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* "M", "m", "MB", "mib": the factor, a power of 1024; "": 1; anything else: 0. */
static double unit_factor(const char *text)
{
    static const char units[] = "kmgt";
    const char *unit = *text ? strchr(units, lower(*text)) : NULL;
    double factor = 1.0;
    if (!unit)
        return *text ? 0.0 : 1.0;
    for (const char *u = units; u <= unit; u++)
        factor *= 1024.0;
    text++;
    if (lower(text[0]) == 'i' && text[1])
        text++;
    if (lower(*text) == 'b')
        text++;
    return *text ? 0.0 : factor;
}

/* A smaller number without a unit has probably lost its unit. */
#define MIN_BARE_SIZE ((double)(1u << 20))

/* "900M", "1.5g", "7.4 GiB", "1073741824": bytes. */
static tern_status parse_size(struct parser *p, const struct tn_option_row *row, const char *value)
{
    char number[32];
    size_t n = strspn(value, "0123456789.");
    double x;
    if (n == 0 || n >= sizeof number)
        return bad_value(p, row, value);
    memcpy(number, value, n);
    number[n] = '\0';
    if (!parse_real(number, &x))
        return bad_value(p, row, value);
    const char *unit = value + n + (value[n] == ' ' && value[n + 1]);
    if (!*unit && x >= 1.0 && x < MIN_BARE_SIZE)
        return tn_fail(p->err, TERN_USAGE,
                       "--%s %s: that would be bytes; say the unit, such as %s%s", row->name, value,
                       value, x < 64.0 ? "G" : "M");
    x *= unit_factor(unit);
    if (x < 1.0 || x > 0x1p62)
        return bad_value(p, row, value);
    *(uint64_t *)((char *)p->o + row->slot) = (uint64_t)x;
    return TERN_OK;
}

static bool parse_choice(const char *choices, const char *text, int64_t *out)
{
    size_t n = strlen(text);
    for (int64_t i = 0;; i++) {
        size_t n_choice = strcspn(choices, "|");
        if (n == n_choice && memcmp(choices, text, n) == 0) {
            *out = i;
            return true;
        }
        if (!choices[n_choice])
            return false;
        choices += n_choice + 1;
    }
}

static tern_status refuse_empty(struct parser *p, const struct tn_option_row *row)
{
    return tn_fail(p->err, TERN_USAGE, "--%s \"\": must not be empty", row->name);
}

/* Stores a value; `value` is NULL for flags that take none. */
static tern_status set_value(struct parser *p, const struct tn_option_row *row, const char *value)
{
    char *slot = (char *)p->o + row->slot;
    bool good = true;
    switch (row->kind) {
    case TN_OPT_FLAG:
        *(bool *)slot = true;
        break;
    case TN_OPT_SET:
        *(int64_t *)slot = (int64_t)row->low;
        break;
    case TN_OPT_ZERO:
        *(double *)slot = 0.0;
        break;
    case TN_OPT_PATH:
        if (!*value)
            return refuse_empty(p, row);
        *(const char **)slot = value;
        break;
    case TN_OPT_TEXT:
        *(const char **)slot = value;
        break;
    case TN_OPT_LIST: {
        struct tn_text_list *list = (struct tn_text_list *)(void *)slot;
        if (!*value)
            return refuse_empty(p, row);
        if (list->n == TN_MAX_LIST)
            return tn_fail(p->err, TERN_USAGE, "--%s \"%s\": may be given %d times", row->name,
                           value, TN_MAX_LIST);
        list->items[list->n++] = value;
        break;
    }
    case TN_OPT_COUNT: {
        uint64_t n;
        good = parse_count(value, &n) && n >= row->low && n <= row->high;
        if (good)
            *(uint64_t *)slot = n;
        break;
    }
    case TN_OPT_REAL: {
        double x;
        good = parse_real(value, &x) && x >= row->real_low && x <= row->real_high &&
               !(row->open && x <= row->real_low);
        if (good)
            *(double *)slot = x;
        break;
    }
    case TN_OPT_SIZE:
        return parse_size(p, row, value);
    case TN_OPT_CHOICE:
        good = parse_choice(row->choices, value, (int64_t *)slot);
        break;
    case TN_OPT_STATS:
        good = !value || strcmp(value, "json") == 0;
        if (!good)
            return tn_fail(p->err, TERN_USAGE, "--stats=%s: must be --stats or --stats=json",
                           value);
        *(int64_t *)slot = value ? TN_STATS_JSON : TN_STATS_TEXT;
        break;
    }
    return good ? TERN_OK : bad_value(p, row, value);
}

static void set_defaults(struct parser *p)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++) {
        const struct tn_option_row *row = &tn_option_rows[i];
        if (row->initial && row->commands >> p->o->command & 1)
            (void)set_value(p, row, row->initial);
    }
}

/* ---- names ---- */

static bool is_name_of(const struct tn_option_row *row, const char *name, size_t n)
{
    if (n == 2 && name[0] == '-' && name[1] != '-')
        return row->letter == name[1];
    return n > 2 && name[0] == '-' && name[1] == '-' && strlen(row->name) == n - 2 &&
           memcmp(row->name, name + 2, n - 2) == 0;
}

/* The row of a name for this command; if there is none, for any command.  NULL: unknown. */
static const struct tn_option_row *find_row(enum tn_command command, const char *name, size_t n)
{
    const struct tn_option_row *other = NULL;
    for (uint32_t i = 0; i < tn_n_option_rows; i++) {
        if (!is_name_of(&tn_option_rows[i], name, n))
            continue;
        if (tn_option_rows[i].commands >> command & 1)
            return &tn_option_rows[i];
        other = other ? other : &tn_option_rows[i];
    }
    return other;
}

static size_t name_length(const char *argument)
{
    return strcspn(argument, "=");
}

static bool is_flag(const struct parser *p, const char *argument)
{
    return strcmp(argument, "--") == 0 ||
           find_row(p->o->command, argument, name_length(argument)) != NULL;
}

/* "-n5" where -n takes a value. */
static bool has_glued_value(const struct parser *p, const char *name, size_t n)
{
    const struct tn_option_row *row = n > 2 && name[1] != '-' ? find_row(p->o->command, name, 2)
                                                              : NULL;
    return row && row->value && name[2] >= '0' && name[2] <= '9';
}

static tern_status unknown_flag(struct parser *p, const char *name, size_t n)
{
    struct tn_nearest nearest;
    const char *hint = tn_hint_for_flag(p->o->command, name, n);
    if (hint)
        return tn_fail(p->err, TERN_USAGE, "unknown flag \"%.*s\"; %s", (int)n, name, hint);
    if (has_glued_value(p, name, n))
        return tn_fail(p->err, TERN_USAGE, "unknown flag \"%.*s\"; separate the value: %.2s %.*s",
                       (int)n, name, name, (int)n - 2, name + 2);
    tn_nearest_init(&nearest, name, n);
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].commands >> p->o->command & 1)
            tn_nearest_try(&nearest, "--", tn_option_rows[i].name);
    if (nearest.best)
        return tn_fail(p->err, TERN_USAGE, "unknown flag \"%.*s\"; did you mean --%s?", (int)n,
                       name, nearest.best);
    return tn_fail(p->err, TERN_USAGE, "unknown flag \"%.*s\"; see tern help %s", (int)n, name,
                   tn_command_rows[p->o->command].name);
}

static tern_status foreign_flag(struct parser *p, const struct tn_option_row *row,
                                const char *name, size_t n)
{
    uint32_t other = 0;
    while (!(row->commands >> other & 1))
        other++;
    return tn_fail(p->err, TERN_USAGE, "%.*s is a flag of tern %s, not of tern %s", (int)n, name,
                   tn_command_rows[other].name, tn_command_rows[p->o->command].name);
}

/* ---- arguments ---- */

static bool takes_value(const struct tn_option_row *row)
{
    return row->kind == TN_OPT_TEXT || row->kind == TN_OPT_PATH || row->kind == TN_OPT_LIST ||
           row->kind == TN_OPT_COUNT || row->kind == TN_OPT_REAL || row->kind == TN_OPT_CHOICE ||
           row->kind == TN_OPT_SIZE;
}

static void note_given(struct tn_options *o, const struct tn_option_row *row, bool is_given)
{
    const size_t i = (size_t)(row - tn_option_rows);
    const uint64_t bit = (uint64_t)1 << i % 64;
    o->given[i / 64] = is_given ? o->given[i / 64] | bit : o->given[i / 64] & ~bit;
}

static tern_status parse_flag(struct parser *p, const char *argument)
{
    size_t n = name_length(argument);
    const struct tn_option_row *row = find_row(p->o->command, argument, n);
    if (!row)
        return unknown_flag(p, argument, n);
    if (!(row->commands >> p->o->command & 1))
        return foreign_flag(p, row, argument, n);
    const char *value = argument[n] == '=' ? argument + n + 1 : NULL;
    if (takes_value(row) && !value) {
        if (p->i == p->argc || is_flag(p, p->argv[p->i]))
            return tn_fail(p->err, TERN_USAGE, "%.*s needs a value: %.*s %s", (int)n, argument,
                           (int)n, argument, row->value);
        value = p->argv[p->i++];
    } else if (value && !takes_value(row) && row->kind != TN_OPT_STATS) {
        return tn_fail(p->err, TERN_USAGE, "%.*s takes no value, but \"%s\" was given", (int)n,
                       argument, value);
    }
    note_given(p->o, row, true);
    return set_value(p, row, value);
}

tern_status tn_args_set(struct tn_options *out, const struct tn_option_row *row, const char *value,
                        struct tern_error *err)
{
    struct parser p = {.o = out, .err = err};
    tern_status status = set_value(&p, row, value ? value : row->initial);
    if (status == TERN_OK)
        note_given(out, row, value != NULL);
    return status;
}

static tern_status parse_positional(struct parser *p, char *argument)
{
    struct tn_options *o = p->o;
    if (o->n_positional < tn_command_rows[o->command].max_positional) {
        /* Entries of argv before the next argument are no longer needed. */
        o->positional[o->n_positional++] = argument;
        return TERN_OK;
    }
    return tn_fail(p->err, TERN_USAGE, "unexpected argument \"%s\"%s", argument,
                   o->command == TN_CMD_RUN ? "; put the prompt in quotes: tern run MODEL \"TEXT\""
                                            : "");
}

/* tern run MODEL TEXT: the first argument is always the model. */
static tern_status take_prompt(struct parser *p)
{
    struct tn_options *o = p->o;
    if (o->command != TN_CMD_RUN || o->n_positional < 2)
        return TERN_OK;
    if (o->prompt)
        return tn_fail(p->err, TERN_USAGE, "two prompts are given: \"%s\" and -p \"%s\"",
                       o->positional[1], o->prompt);
    o->prompt = o->positional[1];
    o->n_positional = 1;
    return TERN_OK;
}

/* tern run MODEL on a terminal is a conversation, unless a flag applies only to a single answer. */
static void choose_conversation(struct tn_options *o)
{
    const bool is_one_answer = o->prompt || o->file || tn_options_has_format(o) ||
                               o->prefix_cache || o->special || o->mode == TN_MODE_RAW;
    if (o->command == TN_CMD_RUN && o->is_command_given && !is_one_answer &&
        tn_is_terminal(TN_STDIN) && tn_is_terminal(TN_STDOUT))
        o->command = TN_CMD_CHAT;
}

static tern_status parse_arguments(struct parser *p)
{
    while (p->i < p->argc) {
        char *argument = p->argv[p->i++];
        tern_status status;
        if (!p->only_positional && strcmp(argument, "--") == 0) {
            p->only_positional = true;
            continue;
        }
        if (!p->only_positional && argument[0] == '-' && argument[1])
            status = parse_flag(p, argument);
        else
            status = parse_positional(p, argument);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- the command word ---- */

enum tn_command tn_command_find(const char *name)
{
    uint32_t i = 0;
    while (i < TN_N_COMMANDS && strcmp(tn_command_rows[i].name, name) != 0)
        i++;
    return i < TN_N_COMMANDS ? (enum tn_command)i : tn_command_alias(name);
}

const char *tn_command_nearest(const char *name)
{
    struct tn_nearest nearest;
    tn_nearest_init(&nearest, name, strlen(name));
    for (uint32_t i = 0; i < TN_N_COMMANDS; i++)
        tn_nearest_try(&nearest, "", tn_command_rows[i].name);
    return nearest.best;
}

static bool has_argument(const struct parser *p, const char *name)
{
    for (int i = 1; i < p->argc && strcmp(p->argv[i], "--") != 0; i++)
        if (strlen(name) == name_length(p->argv[i]) &&
            strncmp(p->argv[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* Without a command word: the command that the flags imply, a conversation on a terminal, else one
 * answer. */
static enum tn_command implied_command(const struct parser *p)
{
    if (has_argument(p, "--convert"))
        return TN_CMD_CONVERT;
    if (has_argument(p, "--help") || has_argument(p, "-h"))
        return TN_CMD_HELP;
    if (has_argument(p, "--version"))
        return TN_CMD_VERSION;
    bool has_prompt = has_argument(p, "-p") || has_argument(p, "--prompt") ||
                      has_argument(p, "-f") || has_argument(p, "--file");
    bool on_terminal = tn_is_terminal(TN_STDIN) && tn_is_terminal(TN_STDOUT);
    return on_terminal && !has_prompt ? TN_CMD_CHAT : TN_CMD_RUN;
}

/* Whether the name ends like those of models. */
static bool has_model_suffix(const char *name)
{
    return tn_text_n_stem(name, ".tern") > 0 || tn_text_n_stem(name, ".gguf") > 0;
}

static tern_status unknown_command(struct parser *p, const char *word, enum tn_path_kind kind)
{
    const char *nearest = tn_command_nearest(word);
    const char *hint = tn_hint_for_command(word);
    const char *sign = tn_typed_quote(word);
    if (kind != TN_PATH_ABSENT)
        return tn_fail(p->err, TERN_USAGE, "\"%s\" is a %s, not a command; try: tern run %s%s%s",
                       word, kind == TN_PATH_DIR ? "directory" : "file", sign, word, sign);
    if (hint)
        return tn_fail(p->err, TERN_USAGE, "unknown command \"%s\"; %s", word, hint);
    if (nearest)
        return tn_fail(p->err, TERN_USAGE, "unknown command \"%s\"; did you mean tern %s?", word,
                       nearest);
    return tn_fail(p->err, TERN_USAGE, "unknown command \"%s\"; see tern help", word);
}

/* A model's file as the first argument means tern run FILE. */
static tern_status find_command(struct parser *p)
{
    struct tn_options *o = p->o;
    p->i = 1;
    if (p->argc < 2 || p->argv[1][0] == '-') {
        o->command = implied_command(p);
        return TERN_OK;
    }
    const char *word = p->argv[p->i++];
    o->command = tn_command_find(word);
    o->is_command_given = true;
    if (o->command != TN_N_COMMANDS)
        return TERN_OK;
    const enum tn_path_kind kind = tn_path_kind(word);
    if (kind != TN_PATH_FILE || !has_model_suffix(word))
        return unknown_command(p, word, kind);
    o->command = TN_CMD_RUN;
    p->i = 1;
    return TERN_OK;
}

tern_status tn_args_parse(struct tn_options *out, int argc, char **argv, struct tern_error *err)
{
    *out = (struct tn_options){.command = TN_CMD_HELP, .kv = -1, .positional = argv + 1};
    struct parser p = {.o = out, .argv = argv, .argc = argc, .err = err};
    for (int i = 1; i < argc; i++) {
        size_t bad = tn_utf8_find_invalid(argv[i], strlen(argv[i]));
        if (argv[i][bad])
            return tn_fail(err, TERN_USAGE, "argument %d is not UTF-8 (byte %zu is 0x%02X)", i,
                           bad, (unsigned char)argv[i][bad]);
    }
    tern_status status = find_command(&p);
    if (status != TERN_OK)
        return status;
    set_defaults(&p);
    status = parse_arguments(&p);
    if (status == TERN_OK)
        status = take_prompt(&p);
    if (status == TERN_OK && !out->help)
        choose_conversation(out);
    return status;
}
