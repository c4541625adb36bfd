/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the command line of every command.
 *
 * Input: arguments, each terminated by a line feed; accepted values must be within their limits.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "src/app/args.h"

enum { MAX_ARGUMENTS = 64 };

/* Splits `text` (NUL-terminated) into arguments after the program's name. */
static int split(char **argv, char *text)
{
    static char name[] = "tern";
    int n = 1;
    argv[0] = name;
    while (*text && n < MAX_ARGUMENTS) {
        char *end = strchr(text, '\n');
        argv[n++] = text;
        if (!end)
            break;
        *end = '\0';
        text = end + 1;
    }
    argv[n] = NULL;
    return n;
}

/* A value that the parser accepted is within the limits of its row. */
static void check_row(const struct tn_options *o, const struct tn_option_row *row)
{
    const char *slot = (const char *)o + row->slot;
    uint64_t n;
    double x;
    int64_t i;
    switch (row->kind) {
    case TN_OPT_COUNT:
        memcpy(&n, slot, sizeof n);
        assert(n >= row->low && n <= row->high);
        break;
    case TN_OPT_SIZE:
        memcpy(&n, slot, sizeof n);
        assert(n >= 1 && n <= (uint64_t)1 << 62);
        break;
    case TN_OPT_REAL:
        memcpy(&x, slot, sizeof x);
        assert(x >= row->real_low && x <= row->real_high);
        break;
    case TN_OPT_CHOICE:
        memcpy(&i, slot, sizeof i);
        assert(i >= 0 && i < (int64_t)strlen(row->choices));
        break;
    case TN_OPT_LIST: {
        const struct tn_text_list *list = (const void *)slot;
        assert(list->n >= 1 && list->n <= TN_MAX_LIST);
        for (size_t k = 0; k < list->n; k++)
            assert(list->items[k][0]);
        break;
    }
    default:
        break;
    }
}

static void check(const struct tn_options *o)
{
    assert(o->command < TN_N_COMMANDS);
    assert(o->n_positional <= tn_command_rows[o->command].max_positional);
    assert(o->n_positional <= MAX_ARGUMENTS);
    for (uint32_t i = 0; i < o->n_positional; i++)
        assert(o->positional[i]);
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (o->given[i / 64] >> i % 64 & 1)
            check_row(o, &tn_option_rows[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tn_options options;
    struct tern_error err = {0};
    char *argv[MAX_ARGUMENTS + 1];
    char *text = tn_alloc(n + 1);
    assert(text);
    if (n)
        memcpy(text, data, n);
    text[n] = '\0';
    int argc = split(argv, text);
    tern_status status = tn_args_parse(&options, argc, argv, &err);
    assert(status == TERN_OK || status == TERN_USAGE);
    if (status == TERN_OK)
        check(&options);
    else
        assert(err.status == status && err.detail[0]);
    tn_free(text);
    return 0;
}

/* Every flag once with its command; libFuzzer mixes them. */
size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const lines[] = {
        "run\ndemo.tern\n-p\nOnce upon a time\n-n\n16\n--temp=0.7\n--stop\n.\n--stop=!\n",
        "chat\n--system\nBe kind.\n--greedy\n--ctx=512\n--kv\nq8\n--ram\n1.5GiB\n--eco\n",
        "convert\n/models/x\n-o\nx.tern\n--head=q6\n--no-tokenizer\n-q\n",
        "bench\n--threads\n1,2\n-r=3\n--json\n",
        "--prompt=Hi\n--stats=json\n--\n-file-\n",
        "rnu\n", "--hlep\n", "info\n--tesnors\n",
    };
    size_t n_lines = TN_COUNT_OF(lines);
    if (i >= n_lines + tn_n_option_rows)
        return 0;
    if (i < n_lines)
        return (size_t)snprintf((char *)dst, capacity, "%s", lines[i]);
    const struct tn_option_row *row = &tn_option_rows[i - n_lines];
    uint32_t command = 0;
    while (!(row->commands >> command & 1))
        command++;
    return (size_t)snprintf((char *)dst, capacity, "%s\n--%s\n%s\n", tn_command_rows[command].name,
                            row->name, row->initial ? row->initial : "1");
}
