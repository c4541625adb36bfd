/* SPDX-License-Identifier: MIT
 *
 * FAMILY(name): tn_family_name in families/name.c.  SCHEME(name): tn_scheme_name there.
 *
 * No include guard: this file is expanded several times.
 */
FAMILY(llama)
FAMILY(bitnet)
FAMILY(qwen2)
FAMILY(qwen3)
FAMILY(maple)
FAMILY(gemma2)
FAMILY(gemma3)
FAMILY(minicpm)
FAMILY(phi3)
FAMILY(mistral)
FAMILY(granite)
FAMILY(granite_dense)
FAMILY(qwen3_moe)
FAMILY(smollm3)
FAMILY(olmo2)
FAMILY(starcoder2)
FAMILY(gpt2)
FAMILY(gpt_bigcode)
FAMILY(gpt_neox)
FAMILY(opt)
FAMILY(codegen)
FAMILY(qwen35)
FAMILY(qwen35_moe)
FAMILY(qwen3_next)
SCHEME(onebitllm)
SCHEME(trilm)
SCHEME(bitnet_embedding)
SCHEME(deepgrove)
