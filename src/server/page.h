/* SPDX-License-Identifier: MIT
 *
 * The page for browsers: its files lie in the program, put there by page/embed.cmake.
 *
 *   GET /            index.html to who accepts text/html, else the line that Ollama has there
 *   GET /page/NAME   the other files
 *   GET /page.json   what the page has to know of the models
 *   POST /checksum   of a saved conversation
 *
 * The files hold nothing private and need no key: the page asks for it.  What they may do is told
 * to the browser in a policy: nothing but talking to this server.
 */
#ifndef TN_PAGE_H
#define TN_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct tn_page_file {
    const char *name; /* "index.html"; NULL: the end of the list */
    const char *type; /* "text/html; charset=utf-8" */
    const char *tag;  /* with its quotes; changes with the bytes */
    const char *data;
    size_t n_bytes;
};

extern const struct tn_page_file tn_page_files[];

#endif
