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
    "                than UTF-8, terminals get escapes for what is not ASCII\n" \
    HOME_VARIABLES
#endif

static const struct {
    const char *name, *text;
} topics[] = {
    {"exit-codes",
     "Results go to standard output, everything else to standard error.\n"
     "\n"
     "    0  success, also when a limit, the context or a stop string ended the text,\n"
     "       and when the reader of a pipe left\n"
     "    1  internal error; tern bench: runs of the same depth gave different tokens\n"
     "    2  unknown command or flag, bad value, no prompt, arguments that are not\n"
     "       UTF-8, an id beyond the vocabulary, a conversation that the chat template\n"
     "       cannot express\n"
     "    3  not enough memory; more tokens than the context or a limit allows\n"
     "    4  disk full, write error, the output cannot be created\n"
     "    5  input missing, unreadable or corrupt\n"
     "    6  model, file version or CPU level not supported; weights of a type that\n"
     "       tern does not have\n"
     "    7  network: tern pull could not fetch a file, or what came is not what was\n"
     "       promised\n"
     "   74  the model file was truncated or written to, or its drive removed, while\n"
     "       in use\n"
     "  130  interrupted\n"},
    {"memory",
     "Before it allocates anything large, tern looks at what is really free: limits of\n"
     "control groups, jobs and the process count, the page cache counts as free. The\n"
     "least of them, or --ram if that is less, decides how long an answer may be:\n"
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
     "allocated, with the need, what is there, and the smallest thing that would work.\n"
     "\n"
     "tern probe MODEL shows every input, every limit, and which one binds.\n"},
    {"jsonl",
     "Every line of standard input is a JSON object, and so is every line of standard\n"
     "output. A line asks for one thing and is answered before the next one; an \"id\"\n"
     "in it comes back in its replies. More members may be added to replies.\n"
     "\n"
     "  in   {\"role\":\"user\",\"content\":\"Hi\"}    a message; \"user\" and \"tool\" are\n"
     "       answered, \"assistant\" is added, \"system\" replaces the system message\n"
     "       {\"messages\":[...]}     a conversation instead of the one so far\n"
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
     "       {\"error\":{\"message\":\"...\",\"code\":2}}     and the conversation goes on\n"
     "\n"
     "\"stop\" is eos, stop, length, cap, context, memory or interrupt: cancelled. With\n"
     "reasoning there is \"reasoning_content\". \"forgotten\" counts messages that the\n"
     "model no longer sees, because the context was full. \"code\" is an exit code; a\n"
     "message whose answer fails is taken back, also one that is cancelled before its\n"
     "first token. What came before it stays. An \"error\" beside \"content\" or \"ok\" says\n"
     "that the line was done, but --session could not be saved; saving is tried again\n"
     "after each line and at the end. Tool calls nest at most 61 levels deep, \"tools\"\n"
     "and \"variables\" 63. {\"cancel\":true} is written just so, blanks aside. A seed of\n"
     "2^63 and more is a string.\n"},
    {"keys",
     "  Enter              sends; a line that ends in \\ continues, and so do all lines\n"
     "                     from \"\"\" to \"\"\"; Alt-Enter begins a line, too\n"
     "  Tab                completes commands, settings, files and models\n"
     "  Up  Down           other lines, then earlier and later messages\n"
     "  Ctrl-R  Ctrl-S     search earlier messages, again: further; Esc takes what is\n"
     "                     found, to change it, Ctrl-G goes back\n"
     "  Home  End          start and end of the line, also Ctrl-A and Ctrl-E\n"
     "  Ctrl-Left, -Right  by words, also Alt-B and Alt-F\n"
     "  Ctrl-W  Ctrl-U     delete the word before, all before in the line\n"
     "  Alt-D   Ctrl-K     delete the word behind, all behind\n"
     "  Ctrl-Y  Alt-Y      put back what these deleted; then: what was deleted before\n"
     "  Ctrl-_  Alt-_      undo, redo\n"
     "  Ctrl-T  Ctrl-L     exchange two characters; clear the screen\n"
     "  Ctrl-X Ctrl-E      edit the text in $VISUAL or $EDITOR\n"
     "  Ctrl-C             stops an answer or /edit, empties the line, leaves (twice)\n"
     "  Ctrl-D  Ctrl-Z     leaves on an empty line; " WHAT_CTRL_Z_DOES "\n"
     "\n"
     "A paste is one insertion, whatever it holds; Enter sends it. A terminal that\n"
     "does not say what is pasted sends an Enter for every line end. What is typed\n"
     "while an answer runs is kept for the next prompt. With TERM=dumb lines are read\n"
     "as they come, without these keys.\n"},
    {"environment",
     "  TERN_MODEL    the model where none is named\n"
     "  TERN_MODELS   a folder of models that can be called by name (tern list)\n"
     "  TERN_CACHE    off: keep nothing between runs\n"
     "  TERN_API_KEY  the key of tern serve where no --api-key-file names one\n"
     "  HF_ENDPOINT   where tern pull fetches models; else Hugging Face\n"
     "  HF_TOKEN      the token for models whose licence must be accepted; goes to the\n"
     "                host of HF_ENDPOINT alone, and over https alone\n"
     "  http_proxy, https_proxy, all_proxy, no_proxy  as curl takes them\n"
     "  NO_COLOR      when not empty: nothing is dimmed on a terminal\n"
     "  VISUAL, EDITOR  the editor of /editor in tern chat, with its arguments\n"
     FOLDER_VARIABLES
     "\n"
     "The first tokens of a run are also decoded with fewer threads, to see what is\n"
     "fastest here. When that was the planned number, a line in tern/threads in the\n"
     "user's cache folder says so, and the next run need not try. The folder tern is\n"
     "made there when it is missing. Fetched and converted models are in tern/models\n"
     "of the data folder, unfinished downloads, and those of tern pull --keep, in\n"
     "tern/downloads; what is unfinished is removed after a week. Nothing else is\n"
     "kept but in files that flags or commands name.\n"},
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
