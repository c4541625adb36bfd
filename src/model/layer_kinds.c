/* SPDX-License-Identifier: MIT
 *
 * The tables of mixers and feed-forwards, by number.  A layer has one of each; a new one is a line
 * here.
 */
#include "model/ffn.h"
#include "model/mixer.h"

const struct tn_mixer *const tn_mixers[TERN_MIXER_END] = {
    [TERN_MIXER_ATTENTION] = &tn_mixer_attention,
    [TERN_MIXER_GATED_DELTA] = &tn_mixer_gated_delta,
};

const struct tn_ffn *const tn_ffns[TERN_FFN_END] = {
    [TERN_FFN_GATED] = &tn_ffn_gated,
    [TERN_FFN_EXPERTS] = &tn_ffn_experts,
    [TERN_FFN_PLAIN] = &tn_ffn_plain,
};
