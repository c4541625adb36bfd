/* SPDX-License-Identifier: MIT
 *
 * topology.xml of a recording: the part of hwloc's XML format (version 2) that describes cores.
 *
 *   <topology> <object type="Machine" allowed_cpuset="0x3"> <object type="L3Cache" ...>
 *     <object type="Core"> <object type="PU" os_index="0"/> ... </topology>
 *   <cpukind cpuset="0x1"> <info name="CoreType" value="IntelCore"/> </cpukind>
 *
 * hwloc reads the format too, but trusts it; recordings are untrusted.
 */
#include "topo.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text_match.h"

enum { MAX_XML_BYTES = 2 << 20, MAX_DEPTH = 64 };

/* The facts from the enclosing elements. */
struct context {
    bool in_core, has_l3, in_kind;
    uint32_t core;
};

struct reader {
    struct tn_topo *topo;
    const char *p; /* NUL-terminated */
    uint32_t depth;
    struct context stack[MAX_DEPTH];
    bool has_allowed;
    struct tn_cpu_set seen, allowed;
    struct tn_cpu_set kinds[TN_MAX_RAW_KINDS];
};

/* ---- attributes ---- */

/* The text between a tag's name and its end. */
struct tag {
    const char *name, *attributes, *end;
    size_t n_name;
    bool is_end, is_empty;
};

/* Copies the value of an attribute; false if it is absent or too long. */
static bool attribute(const struct tag *tag, const char *name, char *value, size_t capacity)
{
    size_t n_name = strlen(name);
    for (const char *p = tag->attributes; p < tag->end;) {
        p += strspn(p, " \t\r\n");
        const char *equals = p + strcspn(p, "=\">");
        if (equals + 1 >= tag->end || equals[0] != '=' || equals[1] != '"')
            return false;
        const char *start = equals + 2;
        const char *stop = start < tag->end ? memchr(start, '"', (size_t)(tag->end - start)) : NULL;
        if (!stop)
            return false;
        if ((size_t)(equals - p) == n_name && memcmp(p, name, n_name) == 0) {
            size_t n = (size_t)(stop - start);
            if (n >= capacity)
                return false;
            memcpy(value, start, n);
            value[n] = '\0';
            return true;
        }
        p = stop + 1;
    }
    return false;
}

static bool number(const struct tag *tag, const char *name, uint64_t *out)
{
    char value[32];
    return attribute(tag, name, value, sizeof value) && tn_fact_whole_u64(value, out);
}

/* One word of 32 CPUs, "0x0000000f" or nothing; `shift` is the number of its lowest CPU. */
static bool parse_word(const char *text, size_t n, uint32_t shift, struct tn_cpu_set *set)
{
    uint32_t word = 0;
    if (n == 0)
        return true;
    if (n < 3 || n > 10 || text[0] != '0' || text[1] != 'x')
        return false;
    for (size_t i = 2; i < n; i++) {
        int digit = tn_hex_digit(text[i]);
        if (digit < 0)
            return false;
        word = word << 4 | (uint32_t)digit;
    }
    for (uint32_t bit = 0; bit < 32; bit++)
        if (word >> bit & 1)
            tn_cpu_set_add(set, shift + bit);
    return true;
}

/* hwloc's masks: words from the highest to the lowest, "0x00000001,,0xffffffff"; a leading
 * "0xf...f" means that all higher CPUs belong to it. */
static bool parse_mask(const char *text, struct tn_cpu_set *set)
{
    static const char all[] = "0xf...f";
    bool infinite = strncmp(text, all, sizeof all - 1) == 0;
    memset(set, 0, sizeof *set);
    if (infinite)
        text += sizeof all - 1 + (text[sizeof all - 1] == ',');
    uint32_t n_words = *text != '\0';
    for (const char *p = text; *p; p++)
        n_words += *p == ',';
    if (n_words > (TN_MAX_CPU_INDEX + 1) / 32)
        return false;
    for (uint32_t cpu = n_words * 32; infinite && cpu <= TN_MAX_CPU_INDEX; cpu++)
        tn_cpu_set_add(set, cpu);
    for (uint32_t i = n_words; i-- > 0; text += *text == ',') {
        size_t n = strcspn(text, ",");
        if (!parse_word(text, n, i * 32, set))
            return false;
        text += n;
    }
    return true;
}

static bool mask(const struct tag *tag, const char *name, struct tn_cpu_set *set)
{
    char text[16384];
    return attribute(tag, name, text, sizeof text) && parse_mask(text, set);
}

/* ---- elements ---- */

static bool open_pu(struct reader *r, const struct tag *tag, const struct context *c)
{
    uint64_t os_index;
    if (!number(tag, "os_index", &os_index) || os_index > TN_MAX_CPU_INDEX ||
        tn_cpu_set_has(&r->seen, (uint32_t)os_index))
        return false;
    tn_cpu_set_add(&r->seen, (uint32_t)os_index);
    return tn_topo_add_pu(r->topo, (uint32_t)os_index, c->in_core ? c->core : r->topo->n_cores,
                          c->has_l3);
}

static void note_cache(struct reader *r, const struct tag *tag, uint32_t level)
{
    uint64_t bytes;
    if (number(tag, "cache_size", &bytes) && bytes != TERN_UNKNOWN)
        r->topo->cache_bytes[level] = TN_MAX(r->topo->cache_bytes[level], bytes);
}

static bool open_object(struct reader *r, const struct tag *tag, struct context *c)
{
    char type[16];
    if (!attribute(tag, "type", type, sizeof type))
        return false;
    if (strcmp(type, "PU") == 0)
        return open_pu(r, tag, c);
    if (strcmp(type, "Core") == 0) {
        c->core = r->topo->n_cores;
        c->in_core = true;
    } else if (strcmp(type, "Package") == 0) {
        r->topo->n_packages++;
    } else if (strcmp(type, "NUMANode") == 0) {
        r->topo->n_numa++;
    } else if (strcmp(type, "Machine") == 0) {
        r->has_allowed = mask(tag, "allowed_cpuset", &r->allowed);
    } else if (type[0] == 'L' && type[1] >= '1' && type[1] <= '3' &&
               strcmp(type + 2, "Cache") == 0) {
        note_cache(r, tag, (uint32_t)(type[1] - '1'));
        c->has_l3 = c->has_l3 || type[1] == '3';
    }
    return true;
}

static bool open_kind(struct reader *r, const struct tag *tag, struct context *c)
{
    uint64_t rank;
    if (r->topo->n_kinds == TN_MAX_RAW_KINDS)
        return true;
    if (!mask(tag, "cpuset", &r->kinds[r->topo->n_kinds]))
        return false;
    struct tn_topo_kind *kind = &r->topo->kinds[r->topo->n_kinds++];
    kind->rank = number(tag, "forced_efficiency", &rank) && rank < 1000 ? (int32_t)rank : -1;
    c->in_kind = true;
    return true;
}

static void read_info(struct reader *r, const struct tag *tag, const struct context *c)
{
    char name[32], value[64];
    if (c->in_kind && attribute(tag, "name", name, sizeof name) &&
        attribute(tag, "value", value, sizeof value))
        tn_topo_set_kind_info(&r->topo->kinds[r->topo->n_kinds - 1], name, value);
}

static bool is(const struct tag *tag, const char *name)
{
    return tag->n_name == strlen(name) && memcmp(tag->name, name, tag->n_name) == 0;
}

static bool open_element(struct reader *r, const struct tag *tag)
{
    struct context c = r->depth ? r->stack[r->depth - 1] : (struct context){0};
    bool ok = true;
    if (is(tag, "object"))
        ok = open_object(r, tag, &c);
    else if (is(tag, "cpukind"))
        ok = open_kind(r, tag, &c);
    else if (is(tag, "info"))
        read_info(r, tag, &c);
    if (!ok || tag->is_empty)
        return ok;
    if (r->depth == MAX_DEPTH)
        return false;
    r->stack[r->depth++] = c;
    return true;
}

/* The next tag; false at the end of the text or if it is truncated. */
static bool next_tag(struct reader *r, struct tag *tag)
{
    do {
        r->p = strchr(r->p, '<');
        if (!r->p)
            return false;
        tag->name = r->p + 1;
        tag->end = strchr(r->p, '>');
        if (!tag->end)
            return false;
        r->p = tag->end + 1;
    } while (*tag->name == '?' || *tag->name == '!');
    tag->is_end = *tag->name == '/';
    tag->is_empty = tag->end[-1] == '/';
    tag->n_name = strcspn(tag->name, " \t\r\n/>");
    tag->attributes = tag->name + tag->n_name;
    return true;
}

static bool read_elements(struct reader *r)
{
    struct tag tag;
    while (next_tag(r, &tag)) {
        if (tag.is_end) {
            if (r->depth == 0)
                return false;
            if (--r->depth == 0)
                return true; /* </topology> */
        } else if (!open_element(r, &tag)) {
            return false;
        }
    }
    return false;
}

static void apply_sets(const struct reader *r)
{
    struct tn_topo *topo = r->topo;
    for (uint32_t i = 0; i < topo->n_pus; i++) {
        struct tn_topo_pu *pu = &topo->pus[i];
        pu->allowed = !r->has_allowed || tn_cpu_set_has(&r->allowed, pu->os_index);
        for (uint32_t k = topo->n_kinds; k-- > 0;)
            if (tn_cpu_set_has(&r->kinds[k], pu->os_index))
                pu->kind = k;
    }
}

bool tn_topo_from_xml(struct tn_topo *topo, const char *root)
{
    struct reader *r = tn_alloc_zeroed(1, sizeof *r);
    char *text = tn_alloc(MAX_XML_BYTES);
    bool ok = false;
    if (r && text) {
        long n = tn_fact_read(root, "/topology.xml", text, MAX_XML_BYTES);
        r->topo = topo;
        r->p = text;
        ok = n > 0 && n < MAX_XML_BYTES - 1 && read_elements(r);
        if (ok)
            apply_sets(r);
    }
    tn_free(text);
    tn_free(r);
    return ok;
}
