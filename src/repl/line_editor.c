/* SPDX-License-Identifier: MIT
 *
 * The event loop of the line editor: reads terminal bytes, feeds keys to the editor, writes its
 * output.
 *
 * It draws only when no more input is pending, so a burst of keys causes one redraw.
 */
#include "repl/line_editor.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/terminal.h"
#include "repl/editor.h"
#include "repl/keys.h"

#define ESCAPE_MS 50  /* an ESC is a key if nothing follows for this long */
#define PASTE_MS 5000 /* an unterminated paste ends after this time */
#define CTRL_C 3

struct line_editor {
    struct tn_keys keys;
    struct tn_editor editor;
    uint64_t sent_ns; /* when the last message was sent */
    tn_edit_text_fn *edit_text; /* NULL: no external editor */
};

static void flush(struct line_editor *le)
{
    struct tn_buf *out = &le->editor.out;
    if (out->n_bytes > 0)
        (void)tn_write_stream(TN_STDERR, out->data, out->n_bytes);
    tn_buf_clear(out);
}

static void leave(struct line_editor *le)
{
    tn_editor_leave(&le->editor, "");
    flush(le);
}

/* ---- events ---- */

/* Runs the user's editor on the text.  Keys typed meanwhile belong to that editor. */
static void edit_externally(struct line_editor *le)
{
    struct tn_edit *e = &le->editor.edit;
    struct tn_buf text = {0};
    if (!le->edit_text || !tn_buf_append(&text, e->text.data, e->text.n_bytes))
        return;
    leave(le);
    (void)tn_terminal_set_mode(TN_TERMINAL_PLAIN);
    const bool is_edited = le->edit_text(&text);
    (void)tn_terminal_set_mode(TN_TERMINAL_KEYS);
    if (is_edited)
        (void)tn_edit_replace(e, 0, e->text.n_bytes, text.data, text.n_bytes);
    tn_buf_fini(&text);
    tn_editor_begin_anew(&le->editor, tn_terminal_size());
}

/* Handles the pending keys, up to one that ends the message. */
static enum tn_editor_step handle_keys(struct line_editor *le, bool is_final)
{
    enum tn_editor_step step = TN_EDITOR_ON;
    struct tn_key key;
    while (step == TN_EDITOR_ON && tn_keys_next(&le->keys, is_final, &key)) {
        step = tn_editor_key(&le->editor, &key);
        if (step == TN_EDITOR_SUSPEND) {
            leave(le);
            tn_terminal_suspend();
            step = TN_EDITOR_ON;
        } else if (step == TN_EDITOR_QUIT) {
            tn_terminal_quit();
            step = TN_EDITOR_ON;
        } else if (step == TN_EDITOR_EXTERNAL) {
            edit_externally(le);
            step = TN_EDITOR_ON;
        }
    }
    return step;
}

/* Handles Ctrl-C as a signal, or a request to terminate the process. */
static enum tn_editor_step handle_interrupt(struct line_editor *le)
{
    if (tn_terminate_requested())
        return TN_EDITOR_INTERRUPT;
    enum tn_editor_step step = tn_editor_interrupt(&le->editor);
    if (step == TN_EDITOR_ON)
        tn_interrupt_clear();
    return step;
}

static uint32_t timeout(const struct line_editor *le)
{
    if (le->editor.needs_draw)
        return 0;
    if (le->keys.in_paste)
        return PASTE_MS;
    return tn_keys_is_partial(&le->keys) ? ESCAPE_MS : TN_TERMINAL_FOR_EVER;
}

static enum tn_editor_step handle_event(struct line_editor *le, enum tn_terminal_event event)
{
    switch (event) {
    case TN_TERMINAL_INTERRUPT:
        return handle_interrupt(le);
    case TN_TERMINAL_RESIZED:
        tn_editor_resize(&le->editor, tn_terminal_size());
        break;
    case TN_TERMINAL_RESUMED:
        tn_editor_begin_anew(&le->editor, tn_terminal_size());
        break;
    case TN_TERMINAL_TIMEOUT:
        if (!le->editor.needs_draw)
            return handle_keys(le, true);
        tn_editor_draw(&le->editor);
        flush(le);
        break;
    case TN_TERMINAL_BYTES:
        return handle_keys(le, false);
    case TN_TERMINAL_END:
    case TN_TERMINAL_FAILED:
        return TN_EDITOR_END;
    }
    return TN_EDITOR_ON;
}

static enum tn_editor_step edit_message(struct line_editor *le, tern_status *status,
                                        struct tern_error *err)
{
    char bytes[16384];
    size_t n = 0;
    enum tn_editor_step step = handle_keys(le, false);
    while (step == TN_EDITOR_ON) {
        enum tn_terminal_event event =
            tn_terminal_read(bytes, sizeof bytes, timeout(le), &n, err);
        if (event == TN_TERMINAL_FAILED) {
            *status = err->status;
        } else if (event == TN_TERMINAL_BYTES && !tn_keys_feed(&le->keys, bytes, n)) {
            *status = tn_fail(err, TERN_MEMORY, "no memory for the typed text");
            return TN_EDITOR_END;
        }
        step = handle_event(le, event);
    }
    return step;
}

/* ---- messages ---- */

/* A Ctrl-C typed right after the message, before the terminal turned it into a signal, counts as an
 * interrupt; input before it is discarded, as a terminal does. */
static void look_for_interrupt(struct line_editor *le)
{
    char bytes[4096];
    size_t n;
    while (tn_terminal_read(bytes, sizeof bytes, 0, &n, NULL) == TN_TERMINAL_BYTES &&
           tn_keys_feed(&le->keys, bytes, n))
        ;
    const char *pending = tn_keys_pending(&le->keys, &n);
    size_t i = 0;
    while (i < n && pending[i] != CTRL_C &&
           !(n - i >= 6 && memcmp(pending + i, "\x1b[200~", 6) == 0))
        i++;
    if (i == n || pending[i] != CTRL_C) /* not before a paste */
        return;
    tn_keys_drop(&le->keys, i + 1);
    tn_terminal_note_interrupt();
}

/* Stopping an answer also discards typed-ahead input. */
static void drop_stopped(struct line_editor *le)
{
    size_t n;
    (void)tn_keys_pending(&le->keys, &n);
    if (le->sent_ns > 0 && tn_interrupt_last_ns() > le->sent_ns)
        tn_keys_drop(&le->keys, n);
}

static enum tn_line send(struct line_editor *le, struct tn_buf *message, struct tern_error *err)
{
    (void)tn_terminal_set_mode(TN_TERMINAL_BUSY);
    leave(le);
    le->sent_ns = tn_now_ns();
    if (!tn_editor_take(&le->editor, message)) {
        tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes",
                le->editor.edit.text.n_bytes);
        return TN_LINE_FAILED;
    }
    look_for_interrupt(le);
    return TN_LINE_TEXT;
}

static enum tn_line read_message(void *state, const char *prompt, const char *more,
                                 struct tn_buf *message, struct tern_error *err)
{
    struct line_editor *le = state;
    tern_status status = TERN_OK;
    tn_ok(err);
    if (!tn_terminal_set_mode(TN_TERMINAL_KEYS)) {
        tn_fail(err, TERN_INPUT, "the terminal cannot be set up");
        return TN_LINE_FAILED;
    }
    drop_stopped(le);
    tn_editor_start(&le->editor, &(struct tn_prompts){prompt, more}, tn_terminal_size());
    tn_editor_draw(&le->editor);
    flush(le);
    /* Save the history while nobody waits for a prompt; a failure is not worth reporting. */
    (void)tn_history_save(&le->editor.history, NULL);
    enum tn_editor_step step = edit_message(le, &status, err);
    if (step == TN_EDITOR_SEND)
        return send(le, message, err);
    leave(le);
    (void)tn_terminal_set_mode(TN_TERMINAL_BUSY);
    if (status)
        return TN_LINE_FAILED;
    return step == TN_EDITOR_INTERRUPT ? TN_LINE_INTERRUPT : TN_LINE_END;
}

/* ---- opening and closing ---- */

static void preset_text(void *state, const char *text, size_t n)
{
    struct line_editor *le = state;
    tn_buf_clear(&le->editor.preset);
    (void)tn_buf_append(&le->editor.preset, text, n);
}

static tern_status save_history(void *state, struct tern_error *err)
{
    struct line_editor *le = state;
    return tn_history_save(&le->editor.history, err);
}

static void close_editor(void *state)
{
    struct line_editor *le = state;
    (void)tn_terminal_set_mode(TN_TERMINAL_PLAIN);
    (void)tn_history_save(&le->editor.history, NULL);
    tn_keys_fini(&le->keys);
    tn_editor_fini(&le->editor);
    tn_free(le);
}

tern_status tn_line_editor_open(struct tn_line_reader *out, const struct tn_completer *completer,
                                const char *history_path, struct tern_error *err)
{
    *out = (struct tn_line_reader){0};
    if (!tn_terminal_can_edit())
        return tn_fail(err, TERN_UNSUPPORTED, "no terminal to edit lines on");
    struct line_editor *le = tn_alloc_zeroed(1, sizeof *le);
    if (!le)
        return tn_fail(err, TERN_MEMORY, "no memory for the line editor");
    const char *no_color = getenv("NO_COLOR");
    le->editor.dim = no_color && no_color[0] ? "" : "\x1b[2m";
    if (completer)
        le->editor.completer = *completer;
    tern_status status = TERN_OK;
    if (history_path)
        status = tn_history_open(&le->editor.history, history_path, err);
    if (!status && !tn_terminal_set_mode(TN_TERMINAL_BUSY))
        status = tn_fail(err, TERN_UNSUPPORTED, "the terminal cannot be set up");
    if (status) {
        close_editor(le);
        return status;
    }
    *out = (struct tn_line_reader){
        .state = le, .read = read_message, .preset = preset_text, .save = save_history,
        .close = close_editor};
    return tn_ok(err);
}

void tn_line_editor_use(struct tn_line_reader *reader, tn_edit_text_fn *edit_text)
{
    struct line_editor *le = reader->state;
    le->edit_text = edit_text;
}
