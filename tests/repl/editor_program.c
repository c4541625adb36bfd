/* SPDX-License-Identifier: MIT
 *
 * A program around the line editor, for test_line_editor.py: answers each message with its size, a
 * sum, the time of its arrival (tn_now_ns), and its text in hexadecimal if it is short.
 *
 *   /wait     is busy until Ctrl-C             /preset TEXT   the next line begins with TEXT
 *   /work N   is busy for N ms                 /end N         ends by signal N
 *   /leave    exits
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "repl/line_editor.h"

static const char *const words[] = {"/leave", "/wait", "/preset", "/print", "/file"};

static void complete(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                     void (*add)(void *to, const char *candidate), void *to)
{
    (void)arg;
    *start = 0;
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        if (strncmp(words[i], line, cursor) == 0)
            add(to, words[i]);
    if (strncmp(line, "/file ", 6) == 0) {
        *start = 6;
        *wants_file = true;
    }
}

static void print_message(const struct tn_buf *message)
{
    uint32_t sum = 0;
    const uint64_t now = tn_now_ns();
    for (size_t i = 0; i < message->n_bytes; i++)
        sum = sum * 31 + (unsigned char)message->data[i];
    printf("got %zu %" PRIu32 " %" PRIu64 " ", message->n_bytes, sum, now);
    for (size_t i = 0; i < message->n_bytes && message->n_bytes <= 400; i++)
        printf("%02x", (unsigned char)message->data[i]);
    printf(" .\n");
    fflush(stdout);
}

static void be_busy(double seconds)
{
    _Atomic uint32_t word = 0;
    const uint64_t start = tn_now_ns();
    printf("busy\n");
    fflush(stdout);
    while (tn_interrupt_count() == 0 && !tn_terminate_requested() &&
           tn_seconds_since(start) < seconds)
        tn_wait_on(&word, 0, 1000000);
    printf(tn_interrupt_count() > 0 ? "stopped\n" : "done\n");
    fflush(stdout);
    tn_interrupt_clear();
}

/* false: exit. */
static bool handle(const struct tn_line_reader *reader, struct tn_buf *message)
{
    const char *text = tn_buf_text(message);
    if (strncmp(text, "/leave", 6) == 0)
        return false;
    if (strncmp(text, "/wait", 5) == 0)
        be_busy(1e9);
    else if (strncmp(text, "/work ", 6) == 0)
        be_busy(atoi(text + 6) * 1e-3);
    else if (strncmp(text, "/preset ", 8) == 0)
        reader->preset(reader->state, text + 8, strlen(text + 8));
    else if (strncmp(text, "/end ", 5) == 0)
        raise(atoi(text + 5));
    else
        print_message(message);
    return true;
}

int main(int argc, char **argv)
{
    struct tern_error err;
    struct tn_line_reader reader;
    struct tn_buf message = {0};
    const struct tn_completer completer = {NULL, complete};
    tn_process_init(&argc, &argv);
    tn_interrupt_install();
    if (tn_line_editor_open(&reader, &completer, argc > 1 ? argv[1] : NULL, &err) != TERN_OK) {
        printf("refused: %s\n", err.detail);
        return 6;
    }
    enum tn_line line = TN_LINE_TEXT;
    bool goes_on = true;
    while (goes_on && !tn_terminate_requested()) {
        tn_buf_clear(&message);
        line = reader.read(reader.state, "> ", ". ", &message, &err);
        if (line == TN_LINE_INTERRUPT && !tn_terminate_requested()) {
            printf("interrupt\n");
            fflush(stdout);
            tn_interrupt_clear();
            continue;
        }
        goes_on = line == TN_LINE_TEXT && handle(&reader, &message);
    }
    reader.close(reader.state);
    tn_buf_fini(&message);
    if (tn_terminate_requested())
        tn_exit_by_signal(tn_terminate_requested());
    printf("%s\n", line == TN_LINE_END ? "end" : line == TN_LINE_FAILED ? err.detail : "left");
    return 0;
}
