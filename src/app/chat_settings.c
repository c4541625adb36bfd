/* SPDX-License-Identifier: MIT
 *
 * The settings of /set: the flags that choose tokens, by their names and with their ranges, and
 * those of the display.  Saved conversations contain them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "args.h"
#include "chat.h"
#include "json_io.h"
#include "output.h"

const char *const tn_chat_think_names[] = {"on", "off", "hide", NULL};

/* Flags that a conversation may change while it runs. */
static const char *const flags[] = {"temp",
                                    "top-k",
                                    "top-p",
                                    "min-p",
                                    "repeat-penalty",
                                    "presence-penalty",
                                    "frequency-penalty",
                                    "penalty-last",
                                    "seed",
                                    "max-tokens"};
/* Settings that are not flags. */
static const char *const others[] = {"stats", "think"};

const char *tn_chat_setting_name(size_t i)
{
    const size_t n_flags = TN_COUNT_OF(flags);
    return i < n_flags ? flags[i] : i < n_flags + TN_COUNT_OF(others) ? others[i - n_flags] : NULL;
}

static const struct tn_option_row *find_flag(const char *name)
{
    const struct tn_option_row *row = tn_option_find(TN_CMD_CHAT, name);
    return row && row->value ? row : NULL; /* --stats is not the setting of that name */
}

static bool is_setting(const char *name)
{
    const char *known;
    for (size_t i = 0; (known = tn_chat_setting_name(i)) != NULL; i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

/* ---- values ---- */

struct value_text {
    char text[32];
};

static bool has_switch(const struct tn_chat_state *chat)
{
    struct tern_chat_reasoning known;
    return tern_chat_reasoning(&known, chat->template.t, &chat->template.params, NULL) ==
               TERN_OK &&
           known.has_switch;
}

/* Penalties have defaults that greedy answers ignore (tn_penalty_in_force). */
static bool is_penalty(const char *name)
{
    return strstr(name, "-penalty") != NULL;
}

/* The value as it would be typed. */
static struct value_text value_of(const struct tn_chat_state *chat, const char *name)
{
    struct value_text v;
    const struct tn_option_row *row = find_flag(name);
    const char *slot = row ? (const char *)&chat->o + row->slot : NULL;
    if (strcmp(name, "seed") == 0)
        snprintf(v.text, sizeof v.text, "%" PRIu64, chat->g.seed);
    else if (strcmp(name, "max-tokens") == 0)
        snprintf(v.text, sizeof v.text, "%u", tn_generator_max_tokens(&chat->g));
    else if (strcmp(name, "stats") == 0)
        snprintf(v.text, sizeof v.text, "%s", chat->hides_stats ? "off" : "on");
    else if (!row)
        snprintf(v.text, sizeof v.text, "%s", tn_chat_think_names[chat->think]);
    else if (is_penalty(name))
        snprintf(v.text, sizeof v.text, "%.15g", tn_penalty_in_force(&chat->o, row->slot));
    else if (row->kind == TN_OPT_REAL)
        snprintf(v.text, sizeof v.text, "%.15g", *(const double *)slot);
    else
        snprintf(v.text, sizeof v.text, "%" PRIu64, *(const uint64_t *)slot);
    return v;
}

void tn_chat_say_settings(const struct tn_chat_state *chat)
{
    struct tn_buf list = {0};
    char range[128];
    const char *name;
    for (size_t i = 0; (name = tn_chat_setting_name(i)) != NULL; i++) {
        const struct tn_option_row *row = find_flag(name);
        snprintf(range, sizeof range, "%s",
                 strcmp(name, "stats") == 0 ? "on, off" : "on, off, hide");
        if (row)
            tn_option_range_text(row, range, sizeof range);
        tn_buf_printf(&list, "%s%-18s %-12s (%s)", i ? "\n" : "", name, value_of(chat, name).text,
                      range);
    }
    tn_chat_say("%s", tn_buf_text(&list));
    tn_buf_fini(&list);
}

/* ---- changing ---- */

static tern_status set_flag(struct tn_chat_state *chat, const char *name, const char *value,
                            struct tern_error *err)
{
    const struct tn_options before = chat->o;
    tern_status status = tn_args_set(&chat->o, find_flag(name), value, err);
    if (status == TERN_OK)
        status = tn_generator_renew_sampler(&chat->g, err);
    if (status != TERN_OK)
        chat->o = before;
    return status;
}

/* Whether the template supports it.  One with the switch renders differently with it; one that
 * writes or drops reasoning belongs to a model that thinks anyway.  Switching back is always
 * allowed. */
static tern_status check_think(const struct tn_chat_state *chat, enum tn_think think,
                               struct tern_error *err)
{
    struct tern_chat_reasoning known;
    if (think == TN_THINK_HIDE || (think == TN_THINK_ON && chat->think != TN_THINK_ON))
        return TERN_OK;
    tern_status status =
        tern_chat_reasoning(&known, chat->template.t, &chat->template.params, err);
    if (status != TERN_OK || known.has_switch || (think == TN_THINK_ON && known.is_known))
        return status;
    return tn_fail(err, TERN_USAGE, "this model's template has no switch for thinking%s",
                   think == TN_THINK_OFF ? "; /think hide only hides it" : "");
}

tern_status tn_chat_set_think(struct tn_chat_state *chat, enum tn_think think,
                              struct tern_error *err)
{
    const bool is_off = think == TN_THINK_OFF;
    tern_status status = tern_conversation_set_overrides(chat->c, is_off ? TN_CHAT_THINK_OFF : NULL,
                                                         strlen(TN_CHAT_THINK_OFF), err);
    if (status == TERN_OK && chat->has_old_off && !is_off) {
        chat->has_old_off = false;
        status = tern_conversation_set_variables(chat->c, NULL, 0, err);
    }
    if (status == TERN_OK) {
        chat->think = think;
        chat->keeps_off = false;
    }
    return status;
}

void tn_chat_say_think(const struct tn_chat_state *chat)
{
    const bool is_free = chat->think == TN_THINK_ON && !has_switch(chat);
    tn_chat_say("think %s%s", tn_chat_think_names[chat->think],
                is_free ? " (this model's template has no switch for it)" : "");
}

/* The index of a value of "stats" or "think" in tn_chat_think_names. */
static tern_status read_other(const char *name, const char *value, enum tn_think *out,
                              struct tern_error *err)
{
    const bool is_stats = strcmp(name, "stats") == 0;
    for (int i = 0; i < (is_stats ? 2 : 3); i++) {
        *out = (enum tn_think)i;
        if (strcmp(tn_chat_think_names[i], value) == 0)
            return TERN_OK;
    }
    return tn_fail(err, TERN_USAGE, "%s \"%.40s\": must be on%s", name, value,
                   is_stats ? " or off" : ", off or hide");
}

static tern_status set_other(struct tn_chat_state *chat, const char *name, const char *value,
                             struct tern_error *err)
{
    enum tn_think choice;
    tern_status status = read_other(name, value, &choice, err);
    if (status == TERN_OK && strcmp(name, "stats") == 0)
        chat->hides_stats = choice == TN_THINK_OFF;
    else if (status == TERN_OK)
        status = tn_chat_set_think(chat, choice, err);
    return status;
}

static bool is_think(const char *name)
{
    return strcmp(name, "think") == 0;
}

tern_status tn_chat_check(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err)
{
    struct tn_options o = chat->o;
    enum tn_think choice;
    if (!is_setting(name))
        return tn_fail(err, TERN_USAGE, "unknown setting \"%.40s\"; /set lists them", name);
    if (find_flag(name))
        return tn_args_set(&o, find_flag(name), value, err);
    tern_status status = read_other(name, value, &choice, err);
    return status == TERN_OK && is_think(name) ? check_think(chat, choice, err) : status;
}

tern_status tn_chat_apply(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err)
{
    tern_status status = tn_chat_check(chat, name, value, err);
    if (status != TERN_OK)
        return status;
    return find_flag(name) ? set_flag(chat, name, value, err) : set_other(chat, name, value, err);
}

/* The reason for a limit of new tokens that is lower than requested. */
static const char *why_fewer(const struct tn_chat_state *chat)
{
    const uint32_t n = tn_generator_max_tokens(&chat->g);
    if (n >= chat->o.max_tokens)
        return "";
    return n == tern_session_n_ctx(chat->g.session) ? " (the context)"
                                                    : " (the limit here; --caps off removes it)";
}

bool tn_chat_set(struct tn_chat_state *chat, const char *name, const char *value)
{
    struct tern_error err;
    tern_status status = tn_chat_apply(chat, name, value, &err);
    if (status != TERN_OK) {
        tn_chat_fail(chat, &err);
        return false;
    }
    chat->is_changed = true;
    if (is_think(name))
        tn_chat_say_think(chat);
    else
        tn_chat_say("%s %s%s", name, value_of(chat, name).text,
                    strcmp(name, "max-tokens") == 0 ? why_fewer(chat) : "");
    return true;
}

void tn_chat_cmd_set(struct tn_chat_state *chat, const char *argument)
{
    char name[32];
    size_t n = strcspn(argument, " \t"), n_name = TN_MIN(n, sizeof name - 1);
    const char *value = argument + n + strspn(argument + n, " \t");
    memcpy(name, argument, n_name);
    name[n_name] = '\0';
    if (*value) {
        (void)tn_chat_set(chat, name, value);
    } else if (*argument && is_setting(name)) {
        tn_chat_say("%s %s", name, value_of(chat, name).text);
    } else if (*argument) {
        tn_chat_refuse(chat, TERN_USAGE, "unknown setting \"%s\"; /set lists them", name);
    } else {
        tn_chat_say_settings(chat);
    }
}

void tn_chat_cmd_temp(struct tn_chat_state *chat, const char *argument)
{
    if (*argument)
        (void)tn_chat_set(chat, "temp", argument);
    else
        tn_chat_say("temp %s", value_of(chat, "temp").text);
}

/* ---- in a saved conversation ---- */

/* Saves the requested value, because another machine has another default and limit of new
 * tokens. */
static struct value_text value_to_save(const struct tn_chat_state *chat, const char *name)
{
    struct value_text v;
    if (strcmp(name, "max-tokens") == 0)
        snprintf(v.text, sizeof v.text, "%" PRIu64, chat->o.max_tokens);
    else if (is_think(name) && chat->keeps_off)
        snprintf(v.text, sizeof v.text, "%s", tn_chat_think_names[TN_THINK_OFF]);
    else
        v = value_of(chat, name);
    return v;
}

static bool was_given(const struct tn_options *o, const char *name)
{
    const struct tn_option_row *row = o ? find_flag(name) : NULL;
    return row && tn_options_given_slot(o, row->slot);
}

/* A default penalty is not saved: greedy answers would obey it after loading. */
void tn_chat_write_settings(struct tn_buf *out, const struct tn_chat_state *chat)
{
    const char *name;
    for (size_t i = 0; (name = tn_chat_setting_name(i)) != NULL; i++)
        if ((!is_penalty(name) || was_given(&chat->o, name)) &&
            (strcmp(name, "max-tokens") != 0 || chat->o.max_tokens > 0))
            tn_buf_printf(out, "%s\"%s\": \"%s\"", i ? ", " : "{", name,
                          value_to_save(chat, name).text);
    tn_buf_append_text(out, "}");
}

typedef tern_status setting_fn(struct tn_chat_state *chat, const char *name, const char *value,
                               struct tern_error *err);

/* Passes a penalty that is not in the file as NULL: its default. */
static tern_status each_setting(struct tn_chat_state *chat, const char *json,
                                const struct tn_options *keep, setting_fn *take,
                                struct tern_error *err)
{
    json_t *root;
    const char *name;
    tern_status status = tn_json_io_read(&root, "the settings", json, strlen(json), 0, err);
    if (status != TERN_OK)
        return status;
    for (size_t i = 0; status == TERN_OK && (name = tn_chat_setting_name(i)) != NULL; i++) {
        const char *value = json_string_value(json_object_get(root, name));
        if ((value || is_penalty(name)) && !was_given(keep, name))
            status = take(chat, name, value, err);
    }
    json_decref(root);
    return status;
}

/* Every file has "think", even if the user never set it: only "off" needs the switch. */
static tern_status check_saved(struct tn_chat_state *chat, const char *name, const char *value,
                               struct tern_error *err)
{
    enum tn_think think;
    if (!is_think(name))
        return tn_chat_check(chat, name, value, err);
    tern_status status = read_other(name, value, &think, err);
    return status == TERN_OK && think == TN_THINK_OFF ? check_think(chat, think, err) : status;
}

static tern_status apply_saved(struct tn_chat_state *chat, const char *name, const char *value,
                               struct tern_error *err)
{
    tern_status status = check_saved(chat, name, value, err);
    if (status != TERN_OK)
        return status;
    return is_think(name) ? set_other(chat, name, value, err)
                          : tn_chat_apply(chat, name, value, err);
}

/* --session may be used with another template than the one with which the file was written. */
static bool is_missing_switch(const struct tn_chat_state *chat, const char *name,
                              const char *value, struct tern_error *err)
{
    return is_think(name) && strcmp(value, tn_chat_think_names[TN_THINK_OFF]) == 0 &&
           check_think(chat, TN_THINK_OFF, err) == TERN_USAGE;
}

static tern_status check_lenient(struct tn_chat_state *chat, const char *name, const char *value,
                                 struct tern_error *err)
{
    return is_missing_switch(chat, name, value, err) ? TERN_OK
                                                     : check_saved(chat, name, value, err);
}

static tern_status apply_lenient(struct tn_chat_state *chat, const char *name, const char *value,
                                 struct tern_error *err)
{
    struct tern_error why;
    if (!is_missing_switch(chat, name, value, &why))
        return apply_saved(chat, name, value, err);
    tn_note_say("%s: \"think off\" is left out: %s", chat->o.session, why.detail);
    chat->keeps_off = true;
    return TERN_OK;
}

tern_status tn_chat_check_settings(struct tn_chat_state *chat, const char *json,
                                   const struct tn_options *keep, struct tern_error *err)
{
    return each_setting(chat, json, keep, keep ? check_lenient : check_saved, err);
}

tern_status tn_chat_read_settings(struct tn_chat_state *chat, const char *json,
                                  const struct tn_options *keep, struct tern_error *err)
{
    return each_setting(chat, json, keep, keep ? apply_lenient : apply_saved, err);
}
