/* SPDX-License-Identifier: MIT
 *
 * Reads normaliser, pre-tokenizer, post-processor, decoder and model options of a tokenizer.json.
 * Chains of pre-tokenizers are recognised as a whole: a splitter (text/pretok.h) is one of them.
 */
#include "convert/tokens/tok_components.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "text/normalize.h"

#define MAX_STEPS 8
#define STEP_BYTES 1024

static bool is_true_or_absent(const json_t *value)
{
    return !value || json_is_true(value);
}

static bool is_true(const json_t *object, const char *member)
{
    return json_is_true(json_object_get(object, member));
}

/* A member's string, "" if it is not a string. */
static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

static bool has_type(const json_t *component, const char *type)
{
    return strcmp(text_of(component, "type"), type) == 0;
}

static tern_status unsupported(struct tern_error *err, const char *what, const json_t *component)
{
    const char *type = text_of(component, "type");
    return tn_fail(err, TERN_UNSUPPORTED, TN_TOK_FILE ": %s %s is not supported", what,
                   *type ? type : "without a type");
}

/* Item i of a component that is a Sequence with this list, or the component itself. */
static const json_t *sequence_item(const json_t *component, const char *list, size_t i, size_t *n)
{
    if (!has_type(component, "Sequence")) {
        *n = 1;
        return component;
    }
    *n = json_array_size(json_object_get(component, list));
    return json_array_get(json_object_get(component, list), i);
}

/* ---- added tokens ---- */

uint32_t tn_tok_added_flags(const json_t *token)
{
    static const struct {
        const char *member;
        uint32_t flag;
    } flags[] = {
        {"special", TERN_ADDED_SPECIAL},         {"lstrip", TERN_ADDED_LSTRIP},
        {"rstrip", TERN_ADDED_RSTRIP},           {"single_word", TERN_ADDED_SINGLE_WORD},
        {"normalized", TERN_ADDED_NORMALIZED},
    };
    uint32_t set = 0;
    for (size_t i = 0; i < TN_COUNT_OF(flags); i++)
        if (is_true(token, flags[i].member))
            set |= flags[i].flag;
    return set;
}

/* ---- normaliser ---- */

static bool is_replace(const json_t *component, const char *from, const char *to)
{
    return has_type(component, "Replace") &&
           strcmp(text_of(json_object_get(component, "pattern"), "String"), from) == 0 &&
           strcmp(text_of(component, "content"), to) == 0;
}

/* truncation and padding are ignored: they describe the last batch, and transformers does not apply
 * them to prompts either. */
static tern_status read_normalizer(const json_t *root, uint32_t *flags, struct tern_error *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    size_t n = tn_json_is_absent(normalizer) ? 0 : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *step = sequence_item(normalizer, "normalizers", i, &n);
        if (i == n)
            break;
        if (has_type(step, "NFC"))
            *flags |= TERN_TOK_NFC;
        else if (has_type(step, "Prepend") &&
                 strcmp(text_of(step, "prepend"), TN_SPACE_MARK) == 0)
            *flags |= TERN_TOK_PREPEND;
        else if (is_replace(step, " ", TN_SPACE_MARK))
            *flags |= TERN_TOK_SPACE_MARKS;
        else
            return unsupported(err, has_type(step, "Replace") || has_type(step, "Prepend")
                                        ? "normalizer with other texts than a space mark,"
                                        : "normalizer",
                               step);
    }
    if (*flags & TERN_TOK_PREPEND && !(*flags & TERN_TOK_SPACE_MARKS))
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": normalizer Prepend without Replace is not supported");
    return TERN_OK;
}

/* ---- pre-tokenizers ---- */

/* The letters of DeepSeek-LLM's expression. */
#define CASED_LETTERS \
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF" \
    "\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-" \
    "\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-" \
    "\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-" \
    "\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC" \
    "\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-" \
    "\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-" \
    "\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-" \
    "\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-" \
    "\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-" \
    "\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-" \
    "\U000118DF\U0001E900-\U0001E943"

/* The words of GPT-4o's and Tekken's expressions. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(tail) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail

/* Known chains of steps, as texts made by describe_step. */
static const struct {
    uint32_t splitter;
    const char *steps[MAX_STEPS];
} chains[] = {
    {TERN_SPLIT_LLAMA3,
     {"Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_QWEN2,
     {"Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_QWEN35,
     {"Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
      "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_SEED_CODER,
     {"Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
      "| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_MINICPM5,
     {"Split \\p{N}{1,3}",
      "Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_GPT4O,
     {"Split " CASED_WORDS("(?i:'s|'t|'re|'ve|'m|'ll|'d)?") "|\\p{N}{1,3}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_TEKKEN,
     {"Split " CASED_WORDS("") "|\\p{N}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_GPT2, {"ByteLevel with its regex"}},
    {TERN_SPLIT_GPT2,
     {"Split 's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
      "|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
    {TERN_SPLIT_STARCODER, {"Digits one by one", "ByteLevel with its regex"}},
    {TERN_SPLIT_FALCON,
     {"Punctuation Contiguous", "ByteLevel with its regex", "Digits", "Split [0-9][0-9][0-9]"}},
    {TERN_SPLIT_DEEPSEEK_CODER,
     {"Split [\r\n]", "Split \\s?\\p{L}+", "Split \\s?\\p{P}+",
      "Split [\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", "Digits one by one", "ByteLevel"}},
    {TERN_SPLIT_DEEPSEEK_LLM,
     {"Split [\r\n]", "Split \\s?[" CASED_LETTERS "]+",
      "Split \\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+", "Split \\s+$",
      "Split [\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", "Digits one by one", "ByteLevel"}},
    {TERN_SPLIT_DEEPSEEK_V3,
     {"Split \\p{N}{1,3}", "Split [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
      "Split [!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
      "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
      "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
      "ByteLevel"}},
};

/* The text of a Split that keeps the matches and removes the rest. */
#define REMOVES_REST "Split without the rest "

static tern_status describe_split(const json_t *step, char *out, struct tern_error *err)
{
    const char *regex = text_of(json_object_get(step, "pattern"), "Regex");
    const char *behavior = text_of(step, "behavior");
    const bool invert = is_true(step, "invert");
    if (!*regex)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": pre-tokenizer Split without a Regex is not supported");
    if (strcmp(behavior, invert ? "Removed" : "Isolated") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": pre-tokenizer Split with behavior %s%s is not supported",
                       *behavior ? behavior : "(none)", invert ? " and invert" : "");
    snprintf(out, STEP_BYTES, "%s%s", invert ? REMOVES_REST : "Split ", regex);
    return TERN_OK;
}

static tern_status describe_step(const json_t *step, char *out, struct tern_error *err)
{
    if (has_type(step, "Split"))
        return describe_split(step, out, err);
    if (has_type(step, "ByteLevel")) {
        if (!json_is_false(json_object_get(step, "add_prefix_space")))
            return tn_fail(err, TERN_UNSUPPORTED,
                           TN_TOK_FILE ": pre-tokenizer ByteLevel without add_prefix_space: false "
                                       "is not supported");
        bool regex = is_true_or_absent(json_object_get(step, "use_regex"));
        snprintf(out, STEP_BYTES, regex ? "ByteLevel with its regex" : "ByteLevel");
    } else if (has_type(step, "Digits")) {
        bool alone = is_true(step, "individual_digits");
        snprintf(out, STEP_BYTES, alone ? "Digits one by one" : "Digits");
    } else if (has_type(step, "Punctuation")) {
        snprintf(out, STEP_BYTES, "Punctuation %s", text_of(step, "behavior"));
    } else {
        return unsupported(err, "pre-tokenizer", step);
    }
    return TERN_OK;
}

/* If the matches cover the whole text, removing the rest equals isolating them.  They do in the
 * expressions that name all white space: other characters are in a letter, a number or [^\s...]. */
static bool is_step(const char *known, const char *step)
{
    const size_t n = strlen(REMOVES_REST);
    if (strncmp(step, REMOVES_REST, n) != 0)
        return strcmp(known, step) == 0;
    return strncmp(known, "Split ", 6) == 0 && strcmp(known + 6, step + n) == 0 &&
           strstr(known, "[^\\s") && strstr(known, "|\\s+(?!\\S)|\\s+");
}

static bool is_chain(const char *const *chain, char steps[][STEP_BYTES], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!chain[i] || !is_step(chain[i], steps[i]))
            return false;
    return n == MAX_STEPS || !chain[n];
}

static bool is_known_step(const char *step)
{
    for (size_t i = 0; i < TN_COUNT_OF(chains); i++)
        for (size_t k = 0; k < MAX_STEPS && chains[i].steps[k]; k++)
            if (is_step(chains[i].steps[k], step))
                return true;
    return false;
}

static tern_status read_chain(const json_t *pre, uint32_t *splitter, struct tern_error *err)
{
    char steps[MAX_STEPS][STEP_BYTES];
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *step = sequence_item(pre, "pretokenizers", i, &n);
        if (n == 0 || n > MAX_STEPS)
            return tn_fail(err, TERN_UNSUPPORTED,
                           TN_TOK_FILE ": a sequence of %zu pre-tokenizers is not supported", n);
        tern_status status = describe_step(step, steps[i], err);
        if (status != TERN_OK)
            return status;
    }
    for (size_t i = 0; i < TN_COUNT_OF(chains); i++) {
        if (is_chain(chains[i].steps, steps, n)) {
            *splitter = chains[i].splitter;
            return TERN_OK;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!is_known_step(steps[i]))
            return tn_fail(err, TERN_UNSUPPORTED,
                           TN_TOK_FILE ": pre-tokenizer \"%.160s\" is not supported", steps[i]);
    return tn_fail(err, TERN_UNSUPPORTED,
                   TN_TOK_FILE ": %zu pre-tokenizers, beginning with \"%.120s\", are not supported "
                               "together",
                   n, steps[0]);
}

static tern_status read_metaspace(const json_t *pre, struct tern_file_tokenizer *head,
                                  struct tern_error *err)
{
    const char *scheme = text_of(pre, "prepend_scheme");
    if (strcmp(text_of(pre, "replacement"), TN_SPACE_MARK) != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": pre-tokenizer Metaspace with replacement \"%s\" is not "
                                   "supported",
                       text_of(pre, "replacement"));
    if (!*scheme) /* old files */
        scheme = is_true_or_absent(json_object_get(pre, "add_prefix_space")) ? "always" : "never";
    if (strcmp(scheme, "always") == 0)
        head->flags |= TERN_TOK_META_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        head->flags |= TERN_TOK_META_FIRST;
    else if (strcmp(scheme, "never") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": pre-tokenizer Metaspace with prepend_scheme %s is not "
                                   "supported",
                       scheme);
    head->flags |= TERN_TOK_SPACE_MARKS | TERN_TOK_META;
    bool split = is_true_or_absent(json_object_get(pre, "split"));
    head->splitter = split ? TERN_SPLIT_SPACE : TERN_SPLIT_NONE;
    return TERN_OK;
}

/* Gemma's files split at spaces after the normaliser has replaced them all. */
static bool cuts_nothing(const json_t *pre)
{
    return has_type(pre, "Split") &&
           strcmp(text_of(json_object_get(pre, "pattern"), "String"), " ") == 0;
}

static tern_status read_pre_tokenizer(const json_t *root, struct tern_file_tokenizer *head,
                                      struct tern_error *err)
{
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    bool marks = head->flags & TERN_TOK_SPACE_MARKS;
    if (tn_json_is_absent(pre) && !marks)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": a tokenizer without pre_tokenizer is not supported");
    if (marks || has_type(pre, "Metaspace")) {
        head->kind = TERN_TOKENIZER_CHAR_BPE;
        head->splitter = TERN_SPLIT_NONE;
        if (tn_json_is_absent(pre) || (marks && cuts_nothing(pre)))
            return TERN_OK;
        if (marks)
            return unsupported(err, "a normalizer that makes space marks with pre-tokenizer", pre);
        return read_metaspace(pre, head, err);
    }
    head->kind = TERN_TOKENIZER_BYTE_BPE;
    return read_chain(pre, &head->splitter, err);
}

/* ---- post-processor ---- */

/* Appends the ids of one special token of a template. */
static tern_status read_template_token(const json_t *processor, const json_t *token, uint32_t *ids,
                                       uint32_t *n, struct tern_error *err)
{
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *known = json_object_get(processor, "special_tokens");
    const json_t *list = json_object_get(name ? json_object_get(known, name) : NULL, "ids");
    if (json_array_size(list) == 0)
        return tn_fail(err, TERN_INPUT, TN_TOK_FILE ": post-processor: special token %s has no ids",
                       name ? name : "(none)");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t id = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || id < 0 || id >= TERN_MAX_VOCAB)
            return tn_fail(err, TERN_INPUT,
                           TN_TOK_FILE ": post-processor: special token %s has a bad id", name);
        if (*n == 4)
            return tn_fail(err, TERN_UNSUPPORTED,
                           TN_TOK_FILE ": post-processor that adds more than 4 ids on one side is "
                                     "not supported");
        ids[(*n)++] = (uint32_t)id;
    }
    return TERN_OK;
}

/* TemplateProcessing: the tokens that "single" puts before and after the text A. */
static tern_status read_template(const json_t *processor, struct tern_file_tokenizer *head,
                                 struct tern_error *err)
{
    const json_t *single = json_object_get(processor, "single");
    size_t n_texts = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *item = json_array_get(single, i);
        const json_t *token = json_object_get(item, "SpecialToken");
        const char *sequence =
            json_string_value(json_object_get(json_object_get(item, "Sequence"), "id"));
        tern_status status = TERN_OK;
        if (token && n_texts == 0)
            status = read_template_token(processor, token, head->prefix_ids, &head->n_prefix, err);
        else if (token)
            status = read_template_token(processor, token, head->suffix_ids, &head->n_suffix, err);
        else if (sequence && strcmp(sequence, "A") == 0)
            n_texts++;
        else
            return tn_fail(err, TERN_UNSUPPORTED,
                           TN_TOK_FILE ": post-processor template with an unknown item %zu is not "
                                     "supported",
                           i);
        if (status != TERN_OK)
            return status;
    }
    if (n_texts != 1)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": post-processor template with %zu texts is not supported",
                       n_texts);
    return TERN_OK;
}

static tern_status read_post_processor(const json_t *root, struct tern_file_tokenizer *head,
                                       struct tern_error *err)
{
    const json_t *post = json_object_get(root, "post_processor");
    if (tn_json_is_absent(post))
        return TERN_OK;
    const json_t *list = json_object_get(post, "processors");
    bool is_sequence = has_type(post, "Sequence");
    if (is_sequence && !json_is_array(list))
        return unsupported(err, "post-processor without a list of processors,", post);
    size_t n = is_sequence ? json_array_size(list) : 1, n_templates = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *processor = is_sequence ? json_array_get(list, i) : post;
        if (has_type(processor, "ByteLevel")) /* changes offsets only */
            continue;
        if (!has_type(processor, "TemplateProcessing") || n_templates++ > 0)
            return unsupported(err, "post-processor", processor);
        tern_status status = read_template(processor, head, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- decoder ---- */

static bool is_strip(const json_t *step)
{
    return has_type(step, "Strip") && strcmp(text_of(step, "content"), " ") == 0 &&
           json_integer_value(json_object_get(step, "start")) == 1 &&
           json_integer_value(json_object_get(step, "stop")) == 0;
}

/* Marks become spaces, byte tokens bytes, and optionally one space at the start is removed. */
static tern_status read_mark_decoder(const json_t *decoder, struct tern_file_tokenizer *head,
                                     bool byte_fallback, struct tern_error *err)
{
    bool has_replace = false, has_bytes = false, has_fuse = false;
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *step = sequence_item(decoder, "decoders", i, &n);
        if (i == 0 && is_replace(step, TN_SPACE_MARK, " "))
            has_replace = true;
        else if (has_replace && !has_fuse && has_type(step, "ByteFallback"))
            has_bytes = true;
        else if (has_replace && has_type(step, "Fuse"))
            has_fuse = true;
        else if (has_fuse && i + 1 == n && is_strip(step))
            head->flags |= TERN_TOK_STRIP;
        else
            return unsupported(err, "decoder", step);
    }
    if (!has_replace || has_bytes != byte_fallback)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": decoder with%s ByteFallback for a model with%s byte_fallback "
                                   "is not supported",
                       has_bytes ? "" : "out", byte_fallback ? "" : "out");
    return TERN_OK;
}

static tern_status read_decoder(const json_t *root, struct tern_file_tokenizer *head,
                                bool byte_fallback, struct tern_error *err)
{
    const json_t *decoder = json_object_get(root, "decoder");
    if (head->kind == TERN_TOKENIZER_CHAR_BPE)
        return read_mark_decoder(decoder, head, byte_fallback, err);
    return has_type(decoder, "ByteLevel") ? TERN_OK : unsupported(err, "decoder", decoder);
}

/* ---- model ---- */

static tern_status read_model_options(const json_t *model, struct tern_file_tokenizer *head,
                                      bool *byte_fallback, struct tern_error *err)
{
    if (!has_type(model, "BPE"))
        return unsupported(err, "model", model);
    const json_t *dropout = json_object_get(model, "dropout");
    if (!tn_json_is_absent(dropout) && json_number_value(dropout) != 0.0)
        return tn_fail(err, TERN_UNSUPPORTED, TN_TOK_FILE ": dropout is not supported");
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < TN_COUNT_OF(affixes); i++)
        if (*text_of(model, affixes[i]))
            return tn_fail(err, TERN_UNSUPPORTED, TN_TOK_FILE ": %s is not supported", affixes[i]);
    *byte_fallback = is_true(model, "byte_fallback");
    if (*byte_fallback && head->kind == TERN_TOKENIZER_BYTE_BPE)
        return tn_fail(err, TERN_UNSUPPORTED,
                       TN_TOK_FILE ": byte_fallback with ByteLevel is not supported");
    if (is_true(model, "fuse_unk"))
        head->flags |= TERN_TOK_FUSE_UNK;
    if (is_true(model, "ignore_merges"))
        head->flags |= TERN_TOK_IGNORE_MERGES;
    return TERN_OK;
}

tern_status tn_tok_read_components(const json_t *root, struct tern_file_tokenizer *head,
                                   bool *byte_fallback, struct tern_error *err)
{
    tern_status status = read_normalizer(root, &head->flags, err);
    if (status == TERN_OK)
        status = read_pre_tokenizer(root, head, err);
    if (status == TERN_OK)
        status = read_post_processor(root, head, err);
    if (status == TERN_OK)
        status = read_model_options(json_object_get(root, "model"), head, byte_fallback, err);
    return status == TERN_OK ? read_decoder(root, head, *byte_fallback, err) : status;
}
