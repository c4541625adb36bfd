/* SPDX-License-Identifier: MIT
 *
 * Commands with files: saved conversations, texts for a question, another model.  Also --session,
 * which is saved after each turn.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "chat.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

/* ---- saved conversations ---- */

static struct tern_saved describe(const struct tn_chat_state *chat, const char *settings)
{
    struct tern_model_info info;
    tern_model_get_info(chat->opened.model, &info);
    return (struct tern_saved){info.name, tern_model_hash(chat->opened.model), settings};
}

static struct tn_file_stamp stamp_of(const char *path)
{
    struct tn_file *file;
    struct tn_file_stamp stamp = {0};
    if (tn_path_kind(path) == TN_PATH_FILE && tn_file_open_read(&file, path, NULL) == TERN_OK) {
        stamp = (struct tn_file_stamp){tn_file_size(file), tn_file_modified_ns(file)};
        tn_file_close(file);
    }
    return stamp;
}

static bool is_session(const struct tn_chat_state *chat, const char *path)
{
    return chat->o.session && tn_path_same(path, chat->o.session);
}

/* The conversation and the file agree; for --session, this process owns the file again. */
static void note_agreement(struct tn_chat_state *chat, const char *path)
{
    if (is_session(chat, path))
        chat->kept = stamp_of(path);
}

static tern_status save(struct tn_chat_state *chat, const char *path, struct tern_error *err)
{
    struct tn_buf settings = {0};
    tn_chat_write_settings(&settings, chat);
    const struct tern_saved saved = describe(chat, tn_buf_text(&settings));
    tern_status status = settings.failed
                             ? tn_fail(err, TERN_MEMORY, "no memory to save the conversation")
                             : tern_conversation_save(chat->c, path, &saved, err);
    tn_buf_fini(&settings);
    if (status == TERN_OK)
        note_agreement(chat, path);
    return status;
}

/* Before "think" was saved separately, "think off" was saved only as these variables. */
static bool has_old_off(const struct tn_chat_state *chat)
{
    static const char off[] = TN_CHAT_THINK_OFF;
    const struct tern_text variables = tern_conversation_variables(chat->c);
    return chat->think == TN_THINK_OFF && variables.bytes && variables.n == sizeof off - 1 &&
           memcmp(variables.bytes, off, variables.n) == 0;
}

/* All or nothing: the file's conversation replaces the current one once its settings are in force.
 * Thinking keeps its state if the settings do not mention it. */
static tern_status replace(struct tn_chat_state *chat, struct tern_conversation **loaded,
                           const char *settings, const struct tn_options *keep,
                           struct tern_error *err)
{
    const struct tn_chat_state before = *chat;
    tern_status status = settings ? tn_chat_check_settings(chat, settings, keep, err) : TERN_OK;
    if (status != TERN_OK)
        return status;
    chat->c = *loaded;
    chat->has_old_off = false;
    status = tn_chat_set_think(chat, chat->think, err);
    if (status == TERN_OK && settings)
        status = tn_chat_read_settings(chat, settings, keep, err);
    chat->has_old_off = status == TERN_OK ? has_old_off(chat) : before.has_old_off;
    if (status != TERN_OK) { /* out of memory for the settings */
        chat->c = before.c;
        chat->think = before.think;
        return status;
    }
    *loaded = before.c;
    return TERN_OK;
}

static tern_status load(struct tn_chat_state *chat, const char *path, const struct tn_options *keep,
                        struct tern_error *err)
{
    char *settings = NULL;
    struct tern_conversation *loaded;
    const struct tern_saved expected = describe(chat, NULL);
    tern_status status = tern_conversation_create(&loaded, err);
    if (status != TERN_OK)
        return status;
    tern_conversation_set_template(loaded, tern_model_tokenizer(chat->opened.model),
                                   chat->template.t, &chat->template.params);
    status = tern_conversation_load(loaded, path, &expected, &settings, err);
    if (status == TERN_OK)
        status = replace(chat, &loaded, settings, keep, err);
    if (status == TERN_OK) {
        note_agreement(chat, path);
        chat->last = (struct tern_answer_result){0};
    }
    tern_text_free(settings);
    tern_conversation_free(loaded);
    return status;
}

/* Shows where a conversation was left: its last question and everything after it. */
static void show_last_turn(const struct tn_chat_state *chat)
{
    struct tern_turn turn;
    const size_t n = tern_conversation_n_turns(chat->c);
    size_t i = n;
    while (i > 0) {
        tern_conversation_get(chat->c, --i, &turn);
        if (tn_chat_is_role(&turn, "user"))
            break;
    }
    if (!chat->on_terminal || !tn_is_terminal(TN_STDOUT))
        return;
    for (; i < n; i++) {
        tern_conversation_get(chat->c, i, &turn);
        if (tn_chat_is_role(&turn, "user"))
            tn_chat_say("> %.*s", (int)turn.content.n, turn.content.bytes);
        else if (turn.content.n > 0)
            tn_out_answer(turn.content.bytes, turn.content.n);
        tn_out_end_line();
    }
}

void tn_chat_cmd_save(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    if (save(chat, argument, &err) != TERN_OK)
        tn_chat_fail(chat, &err);
    else
        tn_chat_say("%zu messages are saved in %s.", tern_conversation_n_turns(chat->c), argument);
}

void tn_chat_cmd_load(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    if (!is_session(chat, argument) && !tn_chat_may_replace(chat, false))
        return;
    if (load(chat, argument, NULL, &err) != TERN_OK) {
        tn_chat_fail(chat, &err);
        return;
    }
    chat->is_changed = true;
    tn_chat_say("%zu messages are loaded from %s.", tern_conversation_n_turns(chat->c), argument);
    show_last_turn(chat);
}

/* ---- --session ---- */

/* Asks a yes-or-no question until the answer is one of them.  Ctrl-C and the end of input mean
 * no. */
static bool ask_yes_or_no(struct tn_chat_state *chat, const char *question)
{
    struct tern_error err;
    struct tn_buf answer = {0};
    enum tn_line kind;
    char first;
    do {
        tn_buf_clear(&answer);
        kind = chat->reader.read(chat->reader.state, question, ". ", &answer, &err);
        first = answer.n_bytes > 0 ? answer.data[0] : '\0';
    } while (kind == TN_LINE_TEXT && !(first && strchr("yYnN", first)));
    tn_buf_fini(&answer);
    if (kind == TN_LINE_INTERRUPT && !tn_terminate_requested())
        tn_interrupt_clear();
    return kind == TN_LINE_TEXT && (first == 'y' || first == 'Y');
}

bool tn_chat_may_replace(struct tn_chat_state *chat, bool keeps_system)
{
    const size_t n = tern_conversation_n_turns(chat->c);
    const bool has_system = tern_conversation_system(chat->c).bytes != NULL;
    if (!chat->o.session || !chat->on_terminal || (n == 0 && (keeps_system || !has_system)))
        return true;
    tn_chat_say("This replaces the %zu messages in %s; /save FILE keeps them elsewhere.", n,
                chat->o.session);
    if (ask_yes_or_no(chat, "Replace it (y or n)? "))
        return true;
    tn_chat_say("Nothing is replaced.");
    return false;
}

static tern_status cache_path(struct tn_buf *out, const struct tn_chat_state *chat,
                              struct tern_error *err)
{
    tn_buf_printf(out, "%s.cache", chat->o.session);
    return out->failed ? tn_fail(err, TERN_MEMORY, "no memory for a path") : TERN_OK;
}

uint32_t tn_chat_n_computed(const struct tn_chat_state *chat, const struct tern_ids *ids)
{
    const uint32_t *past = tern_session_ids(chat->g.session);
    uint32_t n = 0, n_past = tern_session_n_past(chat->g.session);
    while (n < n_past && n < ids->n && past[n] == ids->ids[n])
        n++;
    return n;
}

/* Notes if most of the conversation has to be computed again. */
static void check_cache(const struct tn_chat_state *chat, const char *path)
{
    struct tern_ids ids = {0};
    if (tern_session_n_past(chat->g.session) > 0 && tern_conversation_n_turns(chat->c) > 0 &&
        tern_conversation_encode(chat->c, &ids, NULL) == TERN_OK) {
        const uint32_t n = tn_chat_n_computed(chat, &ids);
        if (n < ids.n / 2)
            tn_note_say("%s: holds %u of the %zu tokens of the conversation; the rest is computed "
                        "again",
                        path, n, ids.n);
    }
    tern_ids_free(&ids);
}

static tern_status load_cache(struct tn_chat_state *chat, struct tern_error *err)
{
    struct tn_buf path = {0};
    tern_status status = cache_path(&path, chat, err);
    if (status == TERN_OK) {
        tn_generator_load_cache(&chat->g, tn_buf_text(&path));
        check_cache(chat, tn_buf_text(&path));
    }
    tn_buf_fini(&path);
    return status;
}

void tn_chat_keep_cache(struct tn_chat_state *chat)
{
    struct tern_error err;
    struct tn_buf path = {0};
    if (!chat->o.session_cache || !chat->g.session || chat->last.n_ids == 0 ||
        tern_session_n_past(chat->g.session) == 0)
        return; /* nothing was computed */
    tern_status status = cache_path(&path, chat, &err);
    if (status == TERN_OK)
        status = tn_generator_save_cache(&chat->g, tn_buf_text(&path),
                                         tern_session_n_past(chat->g.session), &err);
    if (status != TERN_OK)
        tn_chat_fail(chat, &err);
    tn_buf_fini(&path);
}

tern_status tn_chat_open_session(struct tn_chat_state *chat, struct tern_error *err)
{
    const struct tn_options given = chat->o;
    const char *path = given.session;
    if (!path || tn_path_kind(path) == TN_PATH_ABSENT)
        return TERN_OK;
    tern_status status = load(chat, path, &given, err);
    if (status == TERN_OK && tn_is_terminal(TN_STDERR)) {
        tn_info_say("%s: %zu messages", path, tern_conversation_n_turns(chat->c));
        show_last_turn(chat);
    }
    return status == TERN_OK && given.session_cache ? load_cache(chat, err) : status;
}

/* Two programs with one file would each lose the other's changes. */
static tern_status check_owner(const struct tn_chat_state *chat, struct tern_error *err)
{
    const char *path = chat->o.session;
    const struct tn_file_stamp now = stamp_of(path);
    if (now.n_bytes == 0 ||
        (now.n_bytes == chat->kept.n_bytes && now.modified_ns == chat->kept.modified_ns))
        return TERN_OK;
    return tn_fail(err, TERN_OUTPUT,
                   "%s: not replaced: another program has written it; /save to another file "
                   "keeps this conversation, /load takes that one",
                   path);
}

static tern_status save_session(struct tn_chat_state *chat, struct tern_error *err)
{
    tern_status status = check_owner(chat, err);
    if (status != TERN_OK)
        return status;
    status = save(chat, chat->o.session, err);
    const struct tn_file_stamp now = stamp_of(chat->o.session);
    if (status != TERN_OK && now.n_bytes > 0)
        chat->kept = now; /* the new file may exist, and only its folder was not synced */
    return status;
}

void tn_chat_keep_session(struct tn_chat_state *chat)
{
    struct tern_error err = {0};
    if (!chat->o.session || !chat->is_changed)
        return;
    const bool was_unsaved = chat->unsaved.status != TERN_OK;
    const tern_status status = save_session(chat, &err);
    if (status == TERN_OK && was_unsaved)
        tn_note_say("%s: saved now", chat->o.session);
    else if (status != TERN_OK && strcmp(err.detail, chat->unsaved.detail) != 0)
        tn_error_print(&err);
    chat->is_changed = status != TERN_OK;
    chat->unsaved = status != TERN_OK ? err : (struct tern_error){0};
}

/* ---- texts ---- */

static tern_status check_text(const struct tn_chat_state *chat, const char *path, const char *text,
                              size_t n, size_t *n_tokens, struct tern_error *err)
{
    struct tern_ids ids = {0};
    const uint32_t n_ctx = tern_session_n_ctx(chat->g.session);
    *n_tokens = 0;
    tern_status status = tn_prompt_check_text(text, n, path, err);
    if (status == TERN_OK && memchr(text, '\0', n))
        return tn_fail(err, TERN_INPUT, "\"%s\" is not text: it contains NUL bytes", path);
    if (status == TERN_OK)
        status =
            tern_tokenizer_encode(tern_model_tokenizer(chat->opened.model), text, n, 0, &ids, err);
    *n_tokens = ids.n;
    tern_ids_free(&ids);
    if (status == TERN_OK && *n_tokens >= n_ctx)
        return tn_fail(err, TERN_LIMIT, "\"%s\" has %zu tokens, the context %u", path, *n_tokens,
                       n_ctx);
    return status;
}

void tn_chat_cmd_file(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    char *text;
    size_t n, n_tokens = 0, n_before = chat->attached.n_bytes;
    tern_status status = tn_file_read_all(&text, &n, argument, TN_MAX_PROMPT_BYTES, &err);
    if (status == TERN_OK)
        status = check_text(chat, argument, text, n, &n_tokens, &err);
    if (status == TERN_OK) {
        size_t start = tn_prompt_mark(text, n);
        tn_buf_append_text(&chat->attached, "\n\n");
        tn_buf_append(&chat->attached, text + start, n - start);
        if (chat->attached.failed) {
            status = tn_fail(&err, TERN_MEMORY, "\"%s\": no memory for %zu bytes", argument, n);
            chat->attached.n_bytes = n_before;
            chat->attached.failed = false;
        }
    }
    tn_free(text);
    if (status != TERN_OK)
        tn_chat_fail(chat, &err);
    else
        tn_chat_say("%s: %zu bytes, %zu tokens; it goes with the next question.", argument, n,
                    n_tokens);
}

/* ---- models ---- */

static void use_opened(struct tn_chat_state *chat)
{
    tern_conversation_set_template(chat->c, tern_model_tokenizer(chat->opened.model),
                                   chat->template.t, &chat->template.params);
}

/* Whether the new model's template can express the conversation. */
static tern_status try_conversation(struct tn_chat_state *chat, const struct tn_opened *opened,
                                    const struct tn_template *t, struct tern_error *err)
{
    struct tern_ids ids = {0};
    tern_conversation_set_template(chat->c, tern_model_tokenizer(opened->model), t->t, &t->params);
    tern_status status = tern_conversation_n_turns(chat->c) > 0
                             ? tern_conversation_encode(chat->c, &ids, err)
                             : TERN_OK;
    tern_ids_free(&ids);
    use_opened(chat);
    return status;
}

/* Creates a generator for the current model. */
static tern_status begin_again(struct tn_chat_state *chat, uint64_t seed, struct tern_error *err)
{
    tern_status status = tn_generator_init(&chat->g, &chat->o, &chat->opened, 0, NULL, err);
    chat->g.seed = seed;
    return status;
}

/* Frees the memory of one model before the other takes its own.  If that is still too little, the
 * old one comes back; if even that fails, the conversation ends without a generator. */
static tern_status change_model(struct tn_chat_state *chat, struct tn_opened *opened,
                                struct tn_template *t, struct tern_error *err)
{
    struct tn_opened old = chat->opened;
    struct tn_template old_template = chat->template;
    const uint64_t seed = chat->g.seed;
    tn_generator_fini(&chat->g);
    chat->opened = *opened;
    chat->template = *t;
    tern_status status = begin_again(chat, seed, err);
    if (status == TERN_OK) {
        *opened = old;
        *t = old_template;
    } else {
        chat->opened = old;
        chat->template = old_template;
        const tern_status back = begin_again(chat, seed, NULL);
        chat->leave = back != TERN_OK;
        chat->failed = chat->failed != TERN_OK ? chat->failed : back;
    }
    use_opened(chat);
    return status;
}

/* Lists the current model, and those that have a name. */
static void list_models(struct tn_chat_state *chat)
{
    struct tern_error err;
    struct tern_model_info info;
    struct tn_known_models known;
    tern_model_get_info(chat->opened.model, &info);
    tn_chat_say("%s (%s) answers", info.name, tern_model_path(chat->opened.model));
    if (tn_known_models_read(&known, TN_KNOWN_FOLDERS_AND_CURRENT, &err) != TERN_OK) {
        tn_chat_fail(chat, &err);
        return;
    }
    for (size_t i = 0; i < known.n; i++)
        tn_chat_say("/model %-20s %s", known.rows[i].name, known.rows[i].path);
    tn_known_models_fini(&known);
}

void tn_chat_cmd_model(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    struct tn_opened opened;
    struct tn_template template = {0};
    struct tn_options o = chat->o;
    if (!argument[0]) {
        list_models(chat);
        return;
    }
    o.model = NULL;
    tern_status status = tn_open(&opened, &o, argument,
                                 TN_OPEN_MACHINE | TN_OPEN_TOKENIZER | TN_OPEN_CONVERT, &err);
    if (status == TERN_OK)
        status = tn_template_choose(&template, &o, opened.model, &err);
    if (status == TERN_OK)
        status = try_conversation(chat, &opened, &template, &err);
    if (status == TERN_OK)
        status = change_model(chat, &opened, &template, &err);
    if (status == TERN_OK) {
        chat->last = (struct tern_answer_result){0};
        chat->is_changed = true;
        tn_chat_say("%s answers now.", argument);
    } else {
        tn_chat_fail(chat, &err);
    }
    tn_template_fini(&template);
    tn_close(&opened);
}
