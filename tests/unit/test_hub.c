/* SPDX-License-Identifier: MIT
 *
 * How tern pull treats texts from outside: addresses, heads of responses, names, lists of files;
 * and the options that it passes to curl.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "hub/curl.h"
#include "hub/listing.h"
#include "hub/repository_names.h"
#include "hub/response_head.h"
#include "hub/url.h"

static struct tern_error err;

/* ---- addresses ---- */

static void addresses_that_are_fetched(void **state)
{
    (void)state;
    static const char *const good[] = {
        "https://huggingface.co", "HTTPS://example.com/a?b=c%20d&e=~f", "https://example.com:444/",
        "http://127.0.0.1:8080/x", "http://localhost", "http://LOCALHOST:1/", "http://[::1]:80/",
        "http://127.1.2.3",
    };
    static const char *const bad[] = {
        "", "huggingface.co", "ftp://example.com/", "file:///etc/passwd", "https://", "https:///x",
        "http://example.com", "http://127.evil.example/", "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/", "http://[::2]/", "https://" "user@example.com/",
        "https://" "u:p@example.com/", "https://example.com/a b", "https://example.com/\"",
        "https://example.com/\\", "https://example.com/\n", "https://example.com/#x",
        "https://a.example/\xc3\xa4", "http://localhost@evil.example/", "-o/x",
    };
    struct tn_url url;
    for (size_t i = 0; i < TN_COUNT_OF(good); i++)
        assert_int_equal(tn_url_parse(&url, good[i], &err), TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        assert_int_equal(tn_url_parse(&url, bad[i], &err), TERN_NETWORK);
        assert_true(err.detail[0] != '\0');
    }
    char longest[TN_URL_MAX_BYTES + 2] = "https://example.com/";
    memset(longest + 20, 'a', TN_URL_MAX_BYTES - 20);
    assert_int_equal(tn_url_parse(&url, longest, &err), TERN_OK);
    longest[TN_URL_MAX_BYTES] = 'a';
    assert_int_equal(tn_url_parse(&url, longest, &err), TERN_NETWORK);
}

static void origins(void **state)
{
    (void)state;
    struct tn_url a, b;
    assert_int_equal(tn_url_parse(&a, "https://Example.com/x", &err), TERN_OK);
    assert_int_equal(tn_url_parse(&b, "https://example.COM/y?z", &err), TERN_OK);
    assert_true(tn_url_is_same_origin(&a, &b));
    static const char *const others[] = {"https://example.com:444/", "https://example.com.evil.example/",
                                         "https://x.example.com.example/", "https://example.org/"};
    for (size_t i = 0; i < TN_COUNT_OF(others); i++) {
        assert_int_equal(tn_url_parse(&b, others[i], &err), TERN_OK);
        assert_false(tn_url_is_same_origin(&a, &b));
    }
}

static void redirects_lead(void **state)
{
    (void)state;
    static const struct {
        const char *base, *location, *result; /* NULL: refused */
    } cases[] = {
        {"https://a.example/b/c?d", "https://e.example/f", "https://e.example/f"},
        {"https://a.example/b/c?d", "//e.example/f", "https://e.example/f"},
        {"https://a.example/b/c?d/e", "/f?g=http://e.example", "https://a.example/f?g=http://e.example"},
        {"https://a.example/b/c?d/e", "f", "https://a.example/b/f"},
        {"https://a.example", "f", "https://a.example/f"},
        {"http://localhost:1/b", "https://e.example/f", "https://e.example/f"},
        {"http://localhost:1/b", "http://127.0.0.1:2/", "http://127.0.0.1:2/"},
        {"https://a.example/", "http://localhost/", NULL},
        {"https://a.example/", "http://e.example/", NULL},
        {"https://a.example/", "ftp://e.example/", NULL},
        {"https://a.example/", "", NULL},
        {"https://a.example/", "https://" "u@e.example/", NULL},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tn_url base, url;
        assert_int_equal(tn_url_parse(&base, cases[i].base, &err), TERN_OK);
        const tern_status status = tn_url_follow(&url, &base, cases[i].location, &err);
        assert_int_equal(status, cases[i].result ? TERN_OK : TERN_NETWORK);
        if (cases[i].result)
            assert_string_equal(url.text, cases[i].result);
    }
}

/* ---- heads of responses ---- */

static size_t parse(struct tn_response_head *head, const char *text)
{
    tern_status status;
    const size_t n = tn_response_head_parse(head, text, strlen(text), &status, &err);
    assert_int_equal(status, TERN_OK);
    return n;
}

static void heads_are_read(void **state)
{
    (void)state;
    struct tn_response_head head;
    static const char plain[] = "HTTP/1.1 206 Partial Content\r\nContent-Length:  12 \r\n"
                                "CONTENT-RANGE: bytes 5-16/17\r\nLocation: x\r\nRetry-After: 9\r\n"
                                "Link: <https://a.example/>; rel=\"next\"\r\n\r\nbody";
    assert_int_equal(parse(&head, plain), sizeof plain - 5);
    assert_int_equal(head.status, 206);
    assert_int_equal(head.content_bytes, 12);
    assert_int_equal(head.range_first, 5);
    assert_string_equal(head.location, "x");
    assert_int_equal(head.retry_after_s, 9);
    assert_true(head.has_next_page);
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\n\n";
    assert_int_equal(parse(&head, interim), sizeof interim - 1);
    assert_int_equal(head.status, 200);
    assert_true(head.content_bytes == TN_LENGTH_UNKNOWN);
    for (size_t n = 0; n < sizeof plain - 5; n++) { /* truncated anywhere */
        tern_status status;
        assert_int_equal(tn_response_head_parse(&head, plain, n, &status, &err), 0);
    }
}

static void long_redirects_are_refused(void **state)
{
    (void)state;
    static char text[2 * TN_URL_MAX_BYTES];
    struct tn_response_head head;
    struct tn_url base, url;
    assert_int_equal(tn_url_parse(&base, "https://a.example/b", &err), TERN_OK);
    for (uint32_t n = TN_URL_MAX_BYTES - 1; n <= TN_URL_MAX_BYTES + 2; n++) {
        const int n_text =
            snprintf(text, sizeof text, "HTTP/1.1 302 Found\r\nLocation: https://a.example/");
        memset(text + n_text, 'x', sizeof text - (size_t)n_text);
        strcpy(strstr(text, "https") + n, "\r\n\r\n");
        assert_int_not_equal(parse(&head, text), 0);
        const bool fits = n <= TN_URL_MAX_BYTES;
        assert_int_equal(tn_url_follow(&url, &base, head.location, &err),
                         fits ? TERN_OK : TERN_NETWORK);
        assert_true(fits || strstr(err.detail, "more than 4096 bytes"));
    }
}

static void heads_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"\r\n\r\n", "SSH-2.0-x\r\n", "HTTP/1.1\r\n\r\n",
                                      "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 999 x\r\n\r\n",
                                      "HTTP/1.1 99999999999999999999 x\r\n\r\n"};
    struct tn_response_head head;
    tern_status status;
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        assert_int_equal(tn_response_head_parse(&head, bad[i], strlen(bad[i]), &status, &err), 0);
        assert_int_equal(status, TERN_NETWORK);
    }
    static char longest[TN_RESPONSE_HEAD_MAX_BYTES];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "HTTP/1.1 200 OK\r\n", 17);
    assert_int_equal(tn_response_head_parse(&head, longest, sizeof longest, &status, &err), 0);
    assert_int_equal(status, TERN_NETWORK);
}

/* ---- curl ---- */

static void options_of_curl(void **state)
{
    (void)state;
    struct tn_url url;
    struct tn_buf config = {0};
    struct tn_request request = {.url = &url, .token = "hf_abc", .first_byte = 12};
    assert_int_equal(tn_url_parse(&url, "https://example.com/x", &err), TERN_OK);
    assert_int_equal(tn_curl_config(&config, &request, &err), TERN_OK);
    const char *text = tn_buf_text(&config);
    assert_non_null(strstr(text, "url = \"https://example.com/x\"\n"));
    assert_non_null(strstr(text, "proto = \"=https\"\n"));
    assert_non_null(strstr(text, "range = \"12-\"\n"));
    assert_non_null(strstr(text, "header = \"Authorization: Bearer hf_abc\"\n"));
    assert_null(strstr(text, "location"));
    assert_null(strstr(text, "noproxy"));
    tn_buf_clear(&config);
    assert_int_equal(tn_url_parse(&url, "http://localhost/x", &err), TERN_OK);
    assert_int_equal(tn_curl_config(&config, &request, &err), TERN_OK);
    assert_non_null(strstr(tn_buf_text(&config), "proto = \"=http\"\nnoproxy = \"*\"\n"));
    tn_buf_clear(&config);
    request.token = "a\"\noutput = \"/tmp/x";
    assert_int_equal(tn_curl_config(&config, &request, &err), TERN_USAGE);
    assert_null(strstr(err.detail, "output"));
    tn_buf_fini(&config);
}

/* ---- names ---- */

static void repositories(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/b..c",
                                      ".a/b", "-a/b", "a b/c", "a/b:", "a/b:x", "a/b:../x.gguf",
                                      "a/b:x/y.gguf", "a\\b/c", "a/b?c", "a/b:con.gguf"};
    struct tn_repository_name name;
    char local[TN_MAX_REPOSITORY_BYTES + 1];
    assert_int_equal(tn_repository_name_parse(&name, "a-b/C.d_e-GGUF:f-1.gguf", &err), TERN_OK);
    assert_string_equal(name.repository, "a-b/C.d_e-GGUF");
    assert_string_equal(name.file, "f-1.gguf");
    tn_repository_local_name(local, name.repository);
    assert_string_equal(local, "C.d_e");
    tn_repository_local_name(local, "a/gguf");
    assert_string_equal(local, "gguf");
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++)
        assert_int_equal(tn_repository_name_parse(&name, bad[i], &err), TERN_USAGE);
}

static void file_names(void **state)
{
    (void)state;
    static const char *const good[] = {"config.json", "a", ".hidden", "\xc3\xa4.gguf", "a b", "com",
                                       "console.json", "com10"};
    static const char *const bad[] = {"", ".", "..", "a..b", "a/b", "a\\b", "c:", "a\n", "a\x7f",
                                      "a.", "a ", " a", "con", "Con.txt", "AUX.gguf", "com1", "LPT9.x",
                                      "conin$", "a*", "a?", "a|b", "<a", "a\"", "\xff", "a\xc2\x85"};
    for (size_t i = 0; i < TN_COUNT_OF(good); i++)
        assert_true(tn_file_name_is_harmless(good[i]));
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++)
        assert_false(tn_file_name_is_harmless(bad[i]));
}

static void kinds_of_files(void **state)
{
    (void)state;
    uint32_t n_parts;
    assert_int_equal(tn_hub_file_kind("config.json"), TN_HUB_CONFIG);
    assert_int_equal(tn_hub_file_kind("tokenizer.json"), TN_HUB_SMALL);
    assert_int_equal(tn_hub_file_kind("vocab.json"), TN_HUB_VOCABULARY);
    assert_int_equal(tn_hub_file_kind("merges.txt"), TN_HUB_VOCABULARY);
    assert_int_equal(tn_hub_file_kind("model.safetensors"), TN_HUB_SAFETENSORS);
    assert_int_equal(tn_hub_file_kind("model-00001-of-00002.safetensors"), TN_HUB_SAFETENSORS);
    assert_int_equal(tn_hub_file_kind("x.gguf"), TN_HUB_GGUF);
    static const char *const others[] = {"Config.json", "model-1-of-2.safetensors", "pytorch_model.bin",
                                         "mmproj-x.gguf", "model.safetensors.exe", "x.GGUF",
                                         "model-00003-of-00002.safetensors", "adapter.safetensors"};
    for (size_t i = 0; i < TN_COUNT_OF(others); i++)
        assert_int_equal(tn_hub_file_kind(others[i]), TN_HUB_OTHER);
    assert_int_equal(tn_gguf_part("x-00002-of-00003.gguf", &n_parts), 2);
    assert_int_equal(n_parts, 3);
    assert_int_equal(tn_gguf_part("x-+0002-of-00003.gguf", &n_parts), 0);
    assert_true(tn_gguf_is_same_model("x-00002-of-00003.gguf", "x-00001-of-00003.gguf"));
    assert_false(tn_gguf_is_same_model("x-00002-of-00003.gguf", "y-00001-of-00003.gguf"));
    assert_false(tn_gguf_is_same_model("x-00002-of-00003.gguf", "x-00001-of-00004.gguf"));
}

/* ---- lists of files ---- */

#define ROW(name, size) "{\"type\":\"file\",\"path\":\"" name "\",\"size\":" size "}"

static tern_status list(struct tn_listing *out, const char *json, const char *file)
{
    *out = (struct tn_listing){{0}, NULL, 0};
    return tn_listing_parse(out, json, strlen(json), "a/b", file, &err);
}

static void lists_of_files(void **state)
{
    (void)state;
    struct tn_listing l;
    assert_int_equal(list(&l, "[" ROW("x-00002-of-00002.gguf", "2") ",{\"type\":\"directory\","
                              "\"path\":\"d\"}," ROW("x-00001-of-00002.gguf", "1") ","
                              ROW("config.json", "3") "]", ""), TERN_OK);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.files[0].name, "x-00001-of-00002.gguf");
    assert_true(tn_listing_is_gguf(&l));
    assert_int_equal(tn_listing_bytes(&l), 3);
    tn_listing_fini(&l);
    assert_int_equal(list(&l, "[" ROW("model.safetensors", "9") "," ROW("tokenizer.json", "2") ","
                              ROW("config.json", "3") "]", ""), TERN_OK);
    assert_int_equal(l.n, 3);
    assert_string_equal(l.files[2].name, "model.safetensors"); /* small files first */
    assert_false(tn_listing_is_gguf(&l));
    tn_listing_fini(&l);
    assert_int_equal(list(&l, "[" ROW("vocab.json", "2") "," ROW("merges.txt", "2") ","
                              ROW("model.safetensors", "9") "," ROW("config.json", "3") "]", ""),
                     TERN_OK);
    assert_int_equal(l.n, 4);
    tn_listing_fini(&l);
    assert_int_equal(list(&l, "[" ROW("vocab.json", "2") "," ROW("merges.txt", "2") ","
                              ROW("config.json", "1") "," ROW("model.safetensors", "9") ","
                              ROW("tokenizer.json", "3") "]", ""),
                     TERN_OK);
    assert_int_equal(l.n, 3); /* tokenizer.json replaces the vocabulary */
    tn_listing_fini(&l);
}

static void lists_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *file;
        tern_status status;
    } cases[] = {
        {"", "", TERN_NETWORK},
        {"{}", "", TERN_NETWORK},
        {"[1]", "", TERN_NETWORK},
        {"[" ROW("../x", "1") "]", "", TERN_NETWORK},
        {"[" ROW("a\\u0000b", "1") "]", "", TERN_NETWORK},
        {"[" ROW("x.gguf", "-1") "]", "", TERN_NETWORK},
        {"[" ROW("x.gguf", "1.5") "]", "", TERN_NETWORK},
        {"[" ROW("x.gguf", "99999999999999999999") "]", "", TERN_NETWORK},
        {"[" ROW("x.gguf", "1") "," ROW("x.gguf", "1") "]", "x.gguf", TERN_INPUT},
        {"[" ROW("x.gguf", "1") "," ROW("y.gguf", "1") "]", "", TERN_INPUT},
        {"[" ROW("x.gguf", "1") "]", "y.gguf", TERN_INPUT},
        {"[" ROW("x-00001-of-00002.gguf", "1") "]", "", TERN_INPUT},
        {"[" ROW("config.json", "1") "]", "", TERN_INPUT},
        {"[" ROW("config.json", "1") "," ROW("config.json", "1") ","
         ROW("model.safetensors", "1") "]", "", TERN_NETWORK},
        {"[]", "", TERN_INPUT},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tn_listing l;
        assert_int_equal(list(&l, cases[i].json, cases[i].file), cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_true(err.detail[0] != '\0');
        tn_listing_fini(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_that_are_fetched),
        cmocka_unit_test(origins),
        cmocka_unit_test(redirects_lead),
        cmocka_unit_test(heads_are_read),
        cmocka_unit_test(long_redirects_are_refused),
        cmocka_unit_test(heads_that_are_none),
        cmocka_unit_test(options_of_curl),
        cmocka_unit_test(repositories),
        cmocka_unit_test(file_names),
        cmocka_unit_test(kinds_of_files),
        cmocka_unit_test(lists_of_files),
        cmocka_unit_test(lists_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
