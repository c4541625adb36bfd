/* SPDX-License-Identifier: MIT
 *
 * The page for browsers; page/embed.cmake compiles its files into the program.
 *
 *   GET /            index.html for clients that accept text/html, else the line that Ollama has
 *   GET /page/NAME   the other files
 *   GET /page.json   models and defaults
 *   POST /checksum   of a saved conversation
 *
 * The files are public and need no key: the page asks the user for it.
 */
#ifndef TN_PAGE_H
#define TN_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct tn_page_file {
    const char *name; /* "index.html"; NULL: end of the list */
    const char *type; /* "text/html; charset=utf-8" */
    const char *tag;  /* in quotes; a hash of the bytes */
    const char *data;
    size_t n_bytes;
};

extern const struct tn_page_file tn_page_files[];

#endif
