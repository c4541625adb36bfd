/* SPDX-License-Identifier: MIT
 *
 * The table of words from other programs (hints.h): commands and flags, each with the name or the
 * explanation that a user of tern needs.
 */
#include "hints.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "plat/plat.h"

/* Texts complete a sentence that begins with `unknown command "pull"; `.  A word is removed from
 * this table when it becomes a command; the test of the command line checks that. */
static const struct {
    const char *word, *text;
} commands[] = {
    {"push", "tern uploads nothing: a model is one file, copy it"},
    {"models", "did you mean tern list?"},
    {"ps", "tern runs nothing in the background; tern probe shows the free memory"},
    {"cp", "a model is one file; copy it like any other"},
    {"create", "tern convert DIR makes a model file"},
    {"import", "tern convert DIR makes a model file"},
    {"quantize", "tern convert DIR makes a 2-bit file; its --head sets the type of the embedding "
                 "table"},
    {"quantise", "tern convert DIR makes a 2-bit file; its --head sets the type of the embedding "
                 "table"},
    {"server", "did you mean tern serve?"},
    {"start", "did you mean tern serve?"},
    {"cli", "tern chat holds a conversation, tern run answers once"},
    {"generate", "tern run -p TEXT answers once"},
    {"complete", "tern run --raw -p TEXT continues a text"},
    {"ask", "tern run -p TEXT answers once"},
    {"benchmark", "did you mean tern bench?"},
    {"check", "tern verify FILE checks a model file and the kernels"},
    {"test", "tern verify FILE checks a model file and the kernels"},
    {"encode", "did you mean tern tokenize?"},
    {"decode", "did you mean tern detokenize?"},
    {"update", "tern does not update itself; tern version shows what this is"},
};

enum tn_command tn_command_alias(const char *word)
{
    static const struct {
        const char *word;
        enum tn_command command;
    } aliases[] = {{"ls", TN_CMD_LIST}, {"rm", TN_CMD_REMOVE}, {"show", TN_CMD_INFO}};
    for (size_t i = 0; i < TN_COUNT_OF(aliases); i++)
        if (strcmp(aliases[i].word, word) == 0)
            return aliases[i].command;
    return TN_N_COMMANDS;
}

const char *tn_hint_for_command(const char *word)
{
    for (size_t i = 0; i < TN_COUNT_OF(commands); i++)
        if (strcmp(commands[i].word, word) == 0)
            return commands[i].text;
    return NULL;
}

/* `needs`: the flag that the text recommends; a command without that flag gets another hint, or
 * none. */
static const struct {
    const char *name, *needs, *text;
} flags[] = {
    {"-t", "threads", "threads are set by --threads N, randomness by --temp T"},
    {"-tb", "threads", "did you mean --threads?"},
    {"--threads-batch", "threads", "did you mean --threads?"},
    {"--temperature", "temp", "did you mean --temp?"},
    {"-c", "ctx", "did you mean --ctx?"},
    {"--ctx-size", "ctx", "did you mean --ctx?"},
    {"--num-ctx", "ctx", "did you mean --ctx?"},
    {"--context", "ctx", "did you mean --ctx?"},
    {"--context-length", "ctx", "did you mean --ctx?"},
    {"--predict", "max-tokens", "did you mean --max-tokens?"},
    {"--n-predict", "max-tokens", "did you mean --max-tokens?"},
    {"--num-predict", "max-tokens", "did you mean --max-tokens?"},
    {"--max-new-tokens", "max-tokens", "did you mean --max-tokens?"},
    {"--max-length", "max-tokens", "did you mean --max-tokens?"},
    {"-ctk", "kv", "did you mean --kv?"},
    {"-ctv", "kv", "did you mean --kv?"},
    {"--cache-type-k", "kv", "did you mean --kv?"},
    {"--cache-type-v", "kv", "did you mean --kv?"},
    {"--repeat-last-n", "penalty-last", "did you mean --penalty-last?"},
    {"--repetition-penalty", "repeat-penalty", "did you mean --repeat-penalty?"},
    {"-sys", "system", "did you mean --system?"},
    {"--system-prompt", "system", "did you mean --system?"},
    {"--chat-template", "template", "did you mean --template?"},
    {"-r", "stop", "did you mean --stop?"},
    {"--reverse-prompt", "stop", "did you mean --stop?"},
    {"-i", "prompt", "tern chat starts a conversation"},
    {"--interactive", "prompt", "tern chat starts a conversation"},
    {"-cnv", "prompt", "tern chat starts a conversation"},
    {"--conversation", "prompt", "tern chat starts a conversation"},
    {"-ngl", NULL, "tern computes on the CPU only"},
    {"--n-gpu-layers", NULL, "tern computes on the CPU only"},
    {"--gpu-layers", NULL, "tern computes on the CPU only"},
    {"--gpu", NULL, "tern computes on the CPU only"},
    {"--device", NULL, "tern computes on the CPU only"},
    {"--log-disable", "quiet", "did you mean --quiet?"},
    {"--verbose-prompt", "verbose", "did you mean --verbose?"},
    {"-V", "version", "did you mean --version?"},
};

static bool is_same(const char *name, const char *typed, size_t n)
{
    if (strlen(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] != (typed[i] == '_' ? '-' : typed[i]))
            return false;
    return true;
}

const char *tn_hint_for_flag(enum tn_command command, const char *name, size_t n)
{
    for (size_t i = 0; i < TN_COUNT_OF(flags); i++)
        if (is_same(flags[i].name, name, n) &&
            (!flags[i].needs || tn_option_find(command, flags[i].needs)))
            return flags[i].text;
    return NULL;
}

const char *tn_typed_quote(const char *text)
{
    return strchr(text, ' ') ? "\"" : "";
}

static const char *program = "tern";

void tn_typed_program_set(const char *started_as)
{
    if (started_as && tn_path_name(started_as) != started_as)
        program = started_as;
}

const char *tn_typed_program(void)
{
    return program;
}
