/* SPDX-License-Identifier: MIT
 *
 * Look-up in the catalogue (catalogue.h): a model by the name or the repository that a user typed.
 */
#include "hub/catalogue.h"

#include <ctype.h>
#include <stddef.h>

static bool is_same_text(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

const struct tn_catalogue_model *tn_catalogue_find(const char *typed)
{
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *model = &tn_catalogue_models[i];
        if (is_same_text(typed, model->name) || is_same_text(typed, model->repository))
            return model;
    }
    return NULL;
}

const char *tn_catalogue_licence_page(const struct tn_catalogue_model *model)
{
    return model->licence_page ? model->licence_page : model->repository;
}

uint64_t tn_catalogue_download_bytes(const struct tn_catalogue_model *model)
{
    return model->file_bytes ? model->file_bytes : model->about_bytes;
}
