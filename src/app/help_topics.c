/* SPDX-License-Identifier: MIT
 *
 * The texts of `tern help TOPIC`, for things that belong to no single command.  The numbers in
 * `memory` come from engine/plan.c, the codes from tern/status.h; tests/robust/test_cli.py compares
 * them.
 */
#include "help.h"

#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "output.h"

#if defined(_WIN32)
#define WHAT_CTRL_Z_DOES "the same"
#else
#define WHAT_CTRL_Z_DOES "stops until fg"
#endif

#if defined(_WIN32)
#define FOLDER_VARIABLES \
    "  USERPROFILE   the user's home, ~ in paths\n" \
    "  LOCALAPPDATA  the user's data and cache folder\n"
#else
#if defined(__APPLE__)
#define HOME_VARIABLES \
    "  HOME          the user's home, ~ in paths; Library/Application Support and\n" \
    "                Library/Caches in it are the data folder and the cache folder\n"
#else
#define HOME_VARIABLES \
    "  HOME          the user's home, ~ in paths\n" \
    "  XDG_DATA_HOME, XDG_CACHE_HOME  the user's data folder and cache folder; else\n" \
    "                .local/share and .cache in HOME\n"
#endif
#define FOLDER_VARIABLES \
    "  TERM          dumb or empty: nothing is dimmed, tern chat has no line editor\n" \
    "  LC_ALL, LC_CTYPE, LANG  the first that is set: where it names another encoding\n" \
    "                than UTF-8, terminals get escapes for non-ASCII text\n" \
    HOME_VARIABLES
#endif

static const struct {
    const char *name, *text;
} topics[] = {
    {"exit-codes",
     "Results go to standard output, everything else to standard error.\n"
     "\n"
     "    0  success, also when a limit, the context or a stop string ended the text,\n"
     "       and when the reader closed the pipe\n"
     "    1  internal error; tern bench: runs of the same depth gave different tokens\n"
     "    2  unknown command or flag, bad value, no prompt, arguments that are not\n"
     "       UTF-8, an id beyond the vocabulary, a conversation that the chat template\n"
     "       cannot express\n"
     "    3  not enough memory; more tokens than the context or a limit allows\n"
     "    4  disk full, write error, the output cannot be created\n"
     "    5  input missing, unreadable or corrupt\n"
     "    6  model, file version or CPU level not supported; weights of an\n"
     "       unknown type\n"
     "    7  network: tern pull could not fetch a file, or its size or hash is wrong\n"
     "   74  the model file was truncated or written to, or its drive removed, while\n"
     "       in use\n"
     "  130  interrupted\n"},
    {"memory",
     "Before it allocates anything large, tern measures the available memory: limits\n"
     "of control groups, jobs and the process apply, the page cache counts as free.\n"
     "The smallest value, or --ram if that is less, limits the length of an answer:\n"
     "\n"
     "  available memory   new tokens by default   at most\n"
     "  below 4 GiB                  256              512\n"
     "  4 to 8 GiB                   512             1024\n"
     "  8 to 12 GiB                 1024             2048\n"
     "  12 GiB and more             2048             8192\n"
     "\n"
     "-n above the limit is cut, and a note says so. --caps memory replaces the limit\n"
     "by the context that the cache has memory for, --caps off by the model's context.\n"
     "\n"
     "The context is the model's, or what memory allows; the cache grows with use.\n"
     "Its type is q8 whatever the memory, because answers depend on it, or f16 where\n"
     "the file says so (tern info): conversion measured that q8 would cost that model\n"
     "too much. --ctx and --kv set both. What cannot fit is refused before it is\n"
     "allocated; the message has the need, the available memory, and what would work.\n"
     "\n"
     "tern probe MODEL shows every input, every limit, and which one binds.\n"},
    {"jsonl",
     "Every line of standard input is a JSON object, and so is every line of standard\n"
     "output. A line makes one request and is answered before the next one; an \"id\"\n"
     "in it is repeated in its replies. More members may be added to replies.\n"
     "\n"
     "  in   {\"role\":\"user\",\"content\":\"Hi\"}    a message; \"user\" and \"tool\" are\n"
     "       answered, \"assistant\" is added, \"system\" replaces the system message\n"
     "       {\"messages\":[...]}     replaces the conversation\n"
     "       {\"set\":{\"temp\":0.3,\"max_tokens\":64,\"seed\":1}}     flags of tern chat\n"
     "       {\"tools\":[...]}  {\"variables\":{...}}     for the template; null removes\n"
     "       {\"regen\":true}  {\"continue\":true}  {\"undo\":true}  {\"clear\":true}\n"
     "       {\"cancel\":true}     ends the answers to all lines before it, at once\n"
     "       With --session, \"messages\" and \"clear\" need \"replace\":true beside them.\n"
     "\n"
     "  out  {\"delta\":\"He\"}  {\"reasoning_delta\":\"Well\"}     text as it comes\n"
     "       {\"content\":\"Hello!\",\"stop\":\"eos\",\"usage\":{\"prompt_tokens\":12,\n"
     "        \"cached_tokens\":0,\"completion_tokens\":3,\"prompt_s\":0.01,\n"
     "        \"decode_s\":0.02},\"forgotten\":0}     the whole answer\n"
     "       {\"ok\":true}     there was nothing to answer\n"
     "       {\"error\":{\"message\":\"...\",\"code\":2}}     and the conversation continues\n"
     "\n"
     "\"stop\" is eos, stop, length, cap, context, memory or interrupt: cancelled. With\n"
     "reasoning there is \"reasoning_content\". \"forgotten\" counts messages that the\n"
     "model no longer sees, because the context was full. \"code\" is an exit code; a\n"
     "message whose answer fails is removed, also one that is cancelled before its\n"
     "first token. Earlier messages stay. An \"error\" beside \"content\" or \"ok\" means\n"
     "that the line was done, but --session could not be saved; saving is tried again\n"
     "after each line and at the end. Tool calls nest at most 61 levels deep, \"tools\"\n"
     "and \"variables\" 63. {\"cancel\":true} has no other members. A seed of 2^63\n"
     "and more is a string.\n"},
    {"keys",
     "  Enter              sends; a line that ends in \\ continues, and so do all lines\n"
     "                     from \"\"\" to \"\"\"; Alt-Enter begins a line, too\n"
     "  Tab                completes commands, settings, files and models\n"
     "  Up  Down           other lines, then earlier and later messages\n"
     "  Ctrl-R  Ctrl-S     search earlier messages, again: further; Esc takes the\n"
     "                     result, to change it, Ctrl-G cancels\n"
     "  Home  End          start and end of the line, also Ctrl-A and Ctrl-E\n"
     "  Ctrl-Left, -Right  by words, also Alt-B and Alt-F\n"
     "  Ctrl-W  Ctrl-U     delete the word before, or all before in the line\n"
     "  Alt-D   Ctrl-K     delete the word after, or all after\n"
     "  Ctrl-Y  Alt-Y      insert the deleted text; then: earlier deleted text\n"
     "  Ctrl-_  Alt-_      undo, redo\n"
     "  Ctrl-T  Ctrl-L     exchange two characters; clear the screen\n"
     "  Ctrl-X Ctrl-E      edit the text in $VISUAL or $EDITOR\n"
     "  Ctrl-C             stops an answer or /edit, empties the line, leaves (twice)\n"
     "  Ctrl-D  Ctrl-Z     leaves on an empty line; " WHAT_CTRL_Z_DOES "\n"
     "\n"
     "A paste is one insertion, even of several lines; Enter sends it. A terminal that\n"
     "does not mark pastes sends an Enter for every line ending. Input typed while an\n"
     "answer runs is kept for the next prompt. With TERM=dumb lines are read without\n"
     "these keys.\n"},
    {"environment",
     "  TERN_MODEL    the model, if none is named\n"
     "  TERN_MODELS   a folder of models that can be used by name (tern list)\n"
     "  TERN_CACHE    off: keep nothing between runs\n"
     "  TERN_API_KEY  the key of tern serve, unless --api-key-file is given\n"
     "  HF_ENDPOINT   the address of tern pull's hub; else Hugging Face\n"
     "  HF_TOKEN      the token for models whose licence must be accepted; sent only\n"
     "                to the host of HF_ENDPOINT, and only over https\n"
     "  https_proxy, all_proxy, no_proxy  as curl uses them, for tern pull\n"
     "  NO_COLOR      when not empty: nothing is dimmed on a terminal\n"
     "  VISUAL, EDITOR  the editor of /editor in tern chat, with its arguments\n"
     FOLDER_VARIABLES
     "\n"
     "The first tokens of a run are also decoded with fewer threads, to find the\n"
     "fastest number. If that is the planned one, a line in tern/threads in the user's\n"
     "cache folder records it, and the next run need not try. The folder tern is\n"
     "created there if it is missing. Fetched and converted models are in tern/models\n"
     "of the data folder, unfinished downloads, and those of tern pull --keep, in\n"
     "tern/downloads; unfinished ones are removed after a week. Nothing else is\n"
     "stored, except in files that flags or commands name.\n"},
};

const char *tn_help_topic_text(const char *name)
{
    for (size_t i = 0; i < TN_COUNT_OF(topics); i++)
        if (strcmp(topics[i].name, name) == 0)
            return topics[i].text;
    return NULL;
}

bool tn_help_topic(const char *name)
{
    const char *text = tn_help_topic_text(name);
    if (text)
        tn_out_text(text);
    return text != NULL;
}

void tn_help_append_topics(struct tn_buf *out)
{
    for (size_t i = 0; i < TN_COUNT_OF(topics); i++)
        tn_buf_printf(out, "%s%s", topics[i].name, i + 1 < TN_COUNT_OF(topics) ? ", " : "\n");
}
