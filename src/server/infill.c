/* SPDX-License-Identifier: MIT
 *
 * Builds prompts for filling in the middle of a text, in llama.cpp's order.
 *
 * Unlike there, a BOS comes first, and the beginning of a long text is cut off in steps: an editor
 * sends the same text with one more character, and what precedes the character is cached.
 */
#include "server/infill.h"

#include <string.h>

#include "base/compiler.h"

#define NEAR_IDS 2048u  /* of the texts around the gap */
#define MARKER_IDS 8u   /* BOS, PREFIX, SUFFIX, MIDDLE, and some to spare */
#define CUT_STEPS 8u    /* the beginning is cut off by multiples of 1/8 of the limit */

/* What llama.cpp's server calls the project and the file of the gap. */
#define PROJECT "myproject\n"
#define FILE_NAME "filename\n"
/* Between files, in vocabularies without an id for it. */
#define SNIPPET "\n\n--- snippet ---\n\n"

struct parts {
    struct tern_fim_ids fim;
    struct tern_ids bos, extra, before, typed, after;
    size_t n_head; /* ids of the repository, at the beginning of `extra` */
};

bool tn_infill_check(const struct tn_task *task, int status, struct tn_refusal *r)
{
    struct tern_fim_ids fim;
    return tern_tokenizer_fim_ids(tn_task_tokenizer(task), &fim) ||
           tn_refuse(r, status, NULL,
                     "model \"%s\" cannot fill in: its vocabulary has no tokens for "
                     "fill-in-the-middle",
                     task->model->id);
}

/* ---- ids ---- */

/* Does nothing without an id. */
static bool add_id(struct tern_ids *to, uint32_t id, struct tn_refusal *r)
{
    return id == TERN_NO_ID || tn_task_add_ids(to, &id, 1, r);
}

/* Special tokens are not parsed: the texts are files. */
static bool add_text(const struct tn_task *task, struct tern_ids *to, const char *text, size_t n,
                     struct tn_refusal *r)
{
    return tn_task_encode(task, to, text, n, TERN_ENCODE_CONTINUE, r);
}

/* Puts the tokenizer's BOS, if any, into bos. */
static bool add_bos(const struct tn_task *task, struct parts *p, struct tn_refusal *r)
{
    size_t n_prefix = 0;
    if (tern_tokenizer_add_special(tn_task_tokenizer(task), &p->bos, 0, &n_prefix, NULL) !=
        TERN_OK)
        return tn_refuse_memory(r);
    p->bos.n = n_prefix; /* without an EOS */
    return true;
}

/* ---- other files ---- */

static bool add_file(const struct tn_task *task, struct parts *p, const json_t *file,
                     struct tn_refusal *r)
{
    const char *name = "tmp", *text = NULL;
    size_t n_name = strlen(name), n = 0;
    if (!json_is_object(file))
        return tn_refuse(r, 400, "input_extra",
                         "\"input_extra\" must be an array of {\"filename\", \"text\"}");
    if (!tn_json_get_text(file, "filename", &name, &n_name, r) ||
        !tn_json_get_text(file, "text", &text, &n, r))
        return false;
    if (!text)
        return tn_refuse(r, 400, "input_extra", "\"input_extra\": an entry has no \"text\"");
    const bool has_id = p->fim.file != TERN_NO_ID;
    const bool is_begun =
        has_id ? add_id(&p->extra, p->fim.file, r) && add_text(task, &p->extra, name, n_name, r) &&
                     add_text(task, &p->extra, "\n", 1, r)
               : add_text(task, &p->extra, SNIPPET, strlen(SNIPPET), r);
    return is_begun && add_text(task, &p->extra, text, n, r);
}

static bool add_extra(const struct tn_task *task, struct parts *p, const json_t *files,
                      struct tn_refusal *r)
{
    const bool has_repository = p->fim.repository != TERN_NO_ID;
    if (files && !json_is_array(files))
        return tn_refuse(r, 400, "input_extra",
                         "\"input_extra\" must be an array of {\"filename\", \"text\"}");
    if (has_repository && (!add_id(&p->extra, p->fim.repository, r) ||
                           !add_text(task, &p->extra, PROJECT, strlen(PROJECT), r)))
        return false;
    p->n_head = p->extra.n;
    for (size_t i = 0; i < json_array_size(files); i++)
        if (!add_file(task, p, json_array_get(files, i), r))
            return false;
    if (p->fim.file == TERN_NO_ID || p->extra.n == 0)
        return true;
    return add_id(&p->extra, p->fim.file, r) &&
           add_text(task, &p->extra, FILE_NAME, strlen(FILE_NAME), r);
}

/* ---- lengths ---- */

/* Cuts off ids after the first n_head until at most `limit` are left. */
static void cut_beginning(struct tern_ids *ids, size_t n_head, size_t limit)
{
    if (ids->n <= limit)
        return;
    const size_t step = limit / CUT_STEPS + 1;
    size_t n_cut = (ids->n - limit + step - 1) / step * step;
    if (n_cut > ids->n - n_head) {
        ids->n = 0;
        return;
    }
    memmove(ids->ids + n_head, ids->ids + n_head + n_cut,
            (ids->n - n_head - n_cut) * sizeof *ids->ids);
    ids->n -= n_cut;
}

/* Three quarters of the ids near the gap precede it; other files take the rest of the context. */
static void cut(const struct tn_task *task, struct parts *p)
{
    const size_t n_ctx = task->model->n_ctx;
    const size_t n_taken = TN_MIN(task->gen.max_tokens, n_ctx / 4) + MARKER_IDS;
    const size_t room = n_ctx - TN_MIN(n_taken, n_ctx);
    const size_t quarter = TN_MIN(NEAR_IDS, room - room / 4) / 4;
    cut_beginning(&p->typed, 0, quarter);
    cut_beginning(&p->before, 0, 3 * quarter);
    p->after.n = TN_MIN(p->after.n, quarter - TN_MIN(quarter, p->typed.n + 2));
    cut_beginning(&p->extra, p->n_head, room - 4 * quarter);
}

/* ---- the prompt ---- */

static bool encode_parts(const struct tn_task *task, const struct tn_infill_gap *gap,
                         struct parts *p, struct tn_refusal *r)
{
    return add_bos(task, p, r) && add_extra(task, p, gap->extra, r) &&
           tn_task_encode(task, &p->before, gap->before.text, gap->before.n, 0, r) &&
           add_text(task, &p->typed, gap->typed.text, gap->typed.n, r) &&
           add_text(task, &p->after, gap->after.text, gap->after.n, r);
}

static bool add_part(struct tn_task *task, uint32_t id, const struct tern_ids *part,
                     struct tn_refusal *r)
{
    return add_id(&task->ids, id, r) && tn_task_add_ids(&task->ids, part->ids, part->n, r);
}

static bool join(struct tn_task *task, const struct parts *p, struct tn_refusal *r)
{
    const struct tern_fim_ids *fim = &p->fim;
    if (!add_part(task, TERN_NO_ID, &p->bos, r) || !add_part(task, TERN_NO_ID, &p->extra, r))
        return false;
    task->marks.n_system = (uint32_t)task->ids.n;
    if (fim->is_suffix_first && !add_part(task, fim->suffix, &p->after, r))
        return false;
    if (!add_part(task, fim->prefix, &p->before, r))
        return false;
    task->marks.n_turn = (uint32_t)task->ids.n;
    return add_part(task, TERN_NO_ID, &p->typed, r) &&
           (fim->is_suffix_first || add_part(task, fim->suffix, &p->after, r)) &&
           add_id(&task->ids, fim->middle, r);
}

bool tn_infill_encode(struct tn_task *task, const struct tn_infill_gap *gap, struct tn_refusal *r)
{
    struct parts p = {0};
    (void)tern_tokenizer_fim_ids(tn_task_tokenizer(task), &p.fim);
    bool is_good = encode_parts(task, gap, &p, r);
    if (is_good) {
        cut(task, &p);
        is_good = join(task, &p, r);
    }
    struct tern_ids *const lists[] = {&p.bos, &p.extra, &p.before, &p.typed, &p.after};
    for (size_t i = 0; i < TN_COUNT_OF(lists); i++)
        tern_ids_free(lists[i]);
    return is_good;
}

/* ---- "suffix" ---- */

bool tn_infill_read_suffix(struct tn_task *task, struct tn_refusal *r)
{
    const char *suffix;
    size_t n = 0;
    if (!tn_json_get_text(task->body, "suffix", &suffix, &n, r))
        return false;
    task->gen.fills_in = n > 0;
    return n == 0 || tn_infill_check(task, 400, r);
}

bool tn_infill_prepare(struct tn_task *task, struct tn_refusal *r)
{
    struct tn_infill_gap gap = {.typed = {"", 0}};
    if (!json_is_string(tn_json_member(task->body, "prompt")))
        return tn_refuse(r, 400, "prompt", "with \"suffix\", \"prompt\" must be a string");
    return tn_json_get_text(task->body, "prompt", &gap.before.text, &gap.before.n, r) &&
           tn_json_get_text(task->body, "suffix", &gap.after.text, &gap.after.n, r) &&
           tn_infill_encode(task, &gap, r);
}

/* ---- the answer ---- */

uint32_t tn_infill_end_ids(const struct tn_task *task, const struct tern_ids *prompt,
                           uint32_t out[TN_TASK_MAX_END_IDS])
{
    struct tern_fim_ids fim;
    uint32_t n = 0;
    size_t i = 0;
    if (!tern_tokenizer_fim_ids(tn_task_tokenizer(task), &fim))
        return 0;
    while (i < prompt->n && prompt->ids[i] != fim.suffix)
        i++;
    if (i == prompt->n)
        return 0;
    const uint32_t ids[] = {fim.prefix, fim.suffix,     fim.middle, fim.pad,
                            fim.end,    fim.repository, fim.file};
    static_assert(TN_COUNT_OF(ids) <= TN_TASK_MAX_END_IDS, "room for all");
    for (i = 0; i < TN_COUNT_OF(ids); i++)
        if (ids[i] != TERN_NO_ID)
            out[n++] = ids[i];
    return n;
}
