/* SPDX-License-Identifier: MIT
 *
 * process.json of a recording: the facts that come from system calls, not from files (limits, page
 * size, affinity). Written with a recording, and read when a recorded machine is replayed.
 */
#include "sysinfo_private.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_load.h"

enum { MAX_PROCESS_JSON_BYTES = 64 << 10 };

/* A number of bytes, or null for "no limit". */
static uint64_t read_size(const json_t *object, const char *key, uint32_t *unreadable)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TERN_UNKNOWN;
    if (json_is_integer(value) && json_integer_value(value) > 0)
        return (uint64_t)json_integer_value(value);
    *unreadable |= TERN_FACT_PROCESS;
    return TERN_UNKNOWN;
}

static uint32_t feature_bit(const char *name)
{
    for (uint32_t i = 0; i < 32; i++) {
        const char *text = tern_cpu_feature_text(i);
        if (text && strcmp(text, name) == 0)
            return 1u << i;
    }
    return 0; /* a feature that tern does not use */
}

static void read_object(struct tn_process_facts *out, const json_t *object, uint32_t *unreadable)
{
    out->rlimit_as = read_size(object, "rlimit_as", unreadable);
    out->rlimit_data = read_size(object, "rlimit_data", unreadable);
    out->vm_size = read_size(object, "vm_size", unreadable);
    out->page_bytes = read_size(object, "page_size", unreadable);
    const char *affinity = json_string_value(json_object_get(object, "affinity"));
    if (affinity) {
        snprintf(out->affinity, sizeof out->affinity, "%s", affinity);
        out->has_affinity = true;
    }
    const json_t *features = json_object_get(object, "cpu_features");
    for (size_t i = 0; i < json_array_size(features); i++) {
        const char *name = json_string_value(json_array_get(features, i));
        if (name)
            out->cpu_features |= feature_bit(name);
    }
}

/* Without process.json the mask is in /proc/self/status. */
static void affinity_from_status(struct tn_process_facts *out, const char *root)
{
    static const char key[] = "Cpus_allowed_list:";
    char text[TN_STATUS_BYTES];
    if (out->has_affinity || tn_fact_read(root, "/proc/self/status", text, sizeof text) < 0)
        return;
    const char *p = strstr(text, key);
    if (!p)
        return;
    p += sizeof key - 1;
    p += strspn(p, " \t");
    size_t n = strcspn(p, "\r\n");
    if (n < sizeof out->affinity) {
        memcpy(out->affinity, p, n);
        out->affinity[n] = '\0';
        out->has_affinity = true;
    }
}

void tn_process_json_read(struct tn_process_facts *out, const char *root, uint32_t *unreadable)
{
    memset(out, 0, sizeof *out);
    out->rlimit_as = out->rlimit_data = out->vm_size = out->page_bytes = TERN_UNKNOWN;
    char *text = tn_alloc(MAX_PROCESS_JSON_BYTES);
    if (!text)
        return;
    long n = tn_fact_read(root, "/process.json", text, MAX_PROCESS_JSON_BYTES);
    if (n >= 0) {
        json_t *object;
        (void)tn_json_load(&object, "process.json", text, (size_t)n, 0, NULL);
        if (json_is_object(object))
            read_object(out, object, unreadable);
        else
            *unreadable |= TERN_FACT_PROCESS;
        json_decref(object);
    }
    tn_free(text);
    affinity_from_status(out, root);
}
