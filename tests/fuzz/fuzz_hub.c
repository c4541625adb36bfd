/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: responses of a hub.
 *
 *   u8 kind | 0: a list of files, 1: the head of a response, 2: a redirect, from a fixed address
 *
 * Files of an accepted list have harmless, unique names; a head ends within its bytes; a redirect
 * leads to https or stays on this computer, and the address can be quoted.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "hub/listing.h"
#include "hub/response_head.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void read_list(const char *text, size_t n)
{
    struct tn_listing l = {{0}, NULL, 0};
    struct tern_error err = {TERN_OK, ""};
    const tern_status status = tn_listing_parse(&l, text, n, "a/b", "", &err);
    check(status == TERN_OK ? l.n > 0 && l.n <= TN_MAX_MODEL_FILES
                            : err.status == status && err.detail[0] != '\0');
    for (uint32_t i = 0; i < l.n && status == TERN_OK; i++) {
        check(tn_file_name_is_harmless(l.files[i].name));
        check(tn_hub_file_kind(l.files[i].name) != TN_HUB_OTHER);
        check(i == 0 || strcmp(l.files[i - 1].name, l.files[i].name) != 0);
    }
    tn_listing_fini(&l);
}

static void read_head(const char *text, size_t n)
{
    struct tn_response_head head;
    tern_status status;
    const size_t n_head = tn_response_head_parse(&head, text, n, &status, NULL);
    check(n_head <= n && (n_head == 0 || status == TERN_OK));
    check(n_head == 0 || (head.status >= 200 && head.status <= 599));
}

static void follow(const char *text, size_t n)
{
    char location[TN_URL_MAX_BYTES + 64];
    struct tn_url base, url;
    if (n >= sizeof location)
        return;
    memcpy(location, text, n);
    location[n] = '\0';
    check(tn_url_parse(&base, "https://example.com/a/b?c", NULL) == TERN_OK);
    if (tn_url_follow(&url, &base, location, NULL) != TERN_OK)
        return;
    check(url.is_https && url.n_origin > 8 && url.n_origin <= strlen(url.text));
    check(strpbrk(url.text, "\"\\\n\r \t@#") == NULL || strchr(url.text, '@'));
    check(memchr(url.text, '@', url.n_origin) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const targets[])(const char *text, size_t n) = {read_list, read_head, follow};
    if (n > 0)
        targets[data[0] % TN_COUNT_OF(targets)]((const char *)data + 1, n - 1);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const seeds[] = {
        "\x00[{\"type\":\"file\",\"path\":\"x-00001-of-00002.gguf\",\"size\":1},{\"type\":\"file\","
        "\"path\":\"x-00002-of-00002.gguf\",\"size\":9,\"lfs\":{\"oid\":\"0123456789abcdef01234567"
        "89abcdef0123456789abcdef0123456789abcdef\",\"size\":9}}]",
        "\x00[{\"type\":\"file\",\"path\":\"config.json\",\"size\":1},{\"type\":\"directory\","
        "\"path\":\"d\"},{\"type\":\"file\",\"path\":\"model.safetensors\",\"size\":1}]",
        "\x01HTTP/1.1 100 Continue\r\n\r\nHTTP/2 206\r\nContent-Range: bytes 5-9/10\r\n"
        "Content-Length: 5\r\nLocation: /x\r\nRetry-After: 3\r\nLink: <x>; rel=\"next\"\r\n\r\nabc",
        "\x02/api/x?y=z",
        "\x02//example.org:444/%20",
        "\x02https://example.org/x",
        "\x02http://localhost/x",
    };
    if (i >= TN_COUNT_OF(seeds))
        return 0;
    const size_t n = 1 + strlen(seeds[i] + 1);
    check(n <= capacity);
    memcpy(dst, seeds[i], n);
    return n;
}
