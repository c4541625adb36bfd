/* SPDX-License-Identifier: MIT
 *
 * The lists of families and schemes, made from families/list.h, and the look-ups in them: by
 * model_type, by architecture, by evidence, by names of keys and tensors.
 */
#include "arch/family.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

#define FAMILY(name) &tn_family_##name,
#define SCHEME(name)
const struct tn_family *const tn_families[] = {
#include "arch/families/list.h"
    NULL};
#undef FAMILY
#undef SCHEME

#define FAMILY(name)
#define SCHEME(name) &tn_scheme_##name,
static const struct tn_scheme *const schemes[] = {
#include "arch/families/list.h"
    NULL};
#undef FAMILY
#undef SCHEME

const struct tn_family *tn_family_of_model_type(const char *model_type)
{
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (const char *const *type = (*f)->model_types; *type; type++)
            if (strcmp(*type, model_type) == 0)
                return *f;
    return NULL;
}

const struct tn_family *tn_family_of_gguf(const char *arch, const struct tn_gguf_arch **row)
{
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (*row = (*f)->gguf; (*row)->name; ++*row)
            if (strcmp((*row)->name, arch) == 0)
                return *f;
    return NULL;
}

const struct tn_scheme *tn_scheme_find(const struct tn_values *values)
{
    for (const struct tn_scheme *const *s = schemes; *s; s++)
        if ((*s)->is_evident(values))
            return *s;
    return NULL;
}

const struct tn_scheme *tn_scheme_of_vocabulary(const char *first, const char *second)
{
    for (const struct tn_scheme *const *s = schemes; *s; s++)
        if ((*s)->vocabulary[0] && strcmp((*s)->vocabulary[0], first) == 0 &&
            strcmp((*s)->vocabulary[1], second) == 0)
            return *s;
    return NULL;
}

const char *tn_family_prefix(const struct tn_family *family, size_t i)
{
    static const char *const usual[] = {"model.", ""};
    return i < TN_COUNT_OF(usual) ? usual[i] : family->prefixes[i - TN_COUNT_OF(usual)];
}

const char *tn_name_begins(const char *const *beginnings, const char *name)
{
    for (const char *const *s = beginnings; *s; s++)
        if (strncmp(name, *s, strlen(*s)) == 0)
            return *s;
    return NULL;
}

const char *tn_name_ends(const char *const *endings, const char *name)
{
    const size_t n = strlen(name);
    for (const char *const *s = endings; *s; s++)
        if (n >= strlen(*s) && strcmp(name + n - strlen(*s), *s) == 0)
            return *s;
    return NULL;
}

static const struct tn_family_name *find_name(const struct tn_family *family, uint32_t role)
{
    const struct tn_family_name *name = family->names;
    while (name && name->role && name->role != role)
        name++;
    return name && name->role ? name : NULL;
}

const char *tn_family_key(const struct tn_family *family, const char *usual)
{
    const struct tn_family_key *key = family->keys;
    while (key && key->usual && strcmp(key->usual, usual) != 0)
        key++;
    return key && key->usual ? key->own : usual;
}

const char *tn_family_hf_name(const struct tn_family *family, const struct tn_slot *slot)
{
    const struct tn_family_name *name = find_name(family, slot->role);
    return name && name->hf ? name->hf : slot->hf;
}

const char *tn_family_gguf_name(const struct tn_family *family, const struct tn_slot *slot)
{
    const struct tn_family_name *name = find_name(family, slot->role);
    return name && name->gguf ? name->gguf : slot->gguf;
}
