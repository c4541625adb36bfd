/* SPDX-License-Identifier: MIT
 *
 * Every kernel implementation: TN_KERN(operation, isa, needs), for each
 * operation from worst to best; the last row whose needs the CPU meets wins.
 * A row brings the declaration (kern.h), the selection (kern.c), the kernel
 * test (tests/kern) and the benchmark row (bench/bench_kern).
 *
 * No include guard: it is expanded several times.
 */
/* clang-format off */

/* ternary products */
TN_KERN(lut_t2,         ref, 0)
TN_KERN(gemv_t2_i8,     ref, 0)
TN_KERN(prep_r2,        ref, 0)
TN_KERN(gemv_r2_i8,     ref, 0)
TN_KERN(gemv_c2_i8,     ref, 0)
TN_KERN(gemm_t2_i8,     ref, 0)
TN_KERN(gemm_r2_i8,     ref, 0)
TN_KERN(gemm_c2_i8,     ref, 0)
#if TN_ARCH_X86_64
TN_KERN(lut_t2,         ssse3,  TN_CPU_SSSE3)
TN_KERN(lut_t2,         avx2,   TN_CPU_AVX2)
TN_KERN(lut_t2,         avx512, TN_CPU_AVX512)
TN_KERN(gemv_t2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemv_t2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemv_t2_i8,     avx512, TN_CPU_AVX512)
TN_KERN(prep_r2,        ssse3,  TN_CPU_SSSE3)
TN_KERN(prep_r2,        avx2,   TN_CPU_AVX2)
TN_KERN(prep_r2,        avx512, TN_CPU_AVX512)
TN_KERN(gemv_r2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemv_r2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemv_r2_i8,     avx512, TN_CPU_AVX512)
TN_KERN(gemv_c2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemv_c2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemv_c2_i8,     avx512, TN_CPU_AVX512)
TN_KERN(gemm_t2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemm_t2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemm_t2_i8,     avxvnni, TN_CPU_AVX2 | TN_CPU_AVXVNNI)
TN_KERN(gemm_t2_i8,     avx512, TN_CPU_AVX512)
TN_KERN(gemm_r2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemm_r2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemm_r2_i8,     avxvnni, TN_CPU_AVX2 | TN_CPU_AVXVNNI)
TN_KERN(gemm_r2_i8,     avx512, TN_CPU_AVX512)
TN_KERN(gemm_c2_i8,     ssse3,  TN_CPU_SSSE3)
TN_KERN(gemm_c2_i8,     avx2,   TN_CPU_AVX2)
TN_KERN(gemm_c2_i8,     avxvnni, TN_CPU_AVX2 | TN_CPU_AVXVNNI)
TN_KERN(gemm_c2_i8,     avx512, TN_CPU_AVX512)
#elif TN_ARCH_AARCH64
TN_KERN(lut_t2,         neon, TN_CPU_NEON)
TN_KERN(gemv_t2_i8,     neon, TN_CPU_NEON)
TN_KERN(prep_r2,        neon, TN_CPU_NEON)
TN_KERN(gemv_r2_i8,     neon, TN_CPU_NEON)
TN_KERN(gemv_c2_i8,     neon, TN_CPU_NEON)
TN_KERN(gemm_t2_i8,     neon, TN_CPU_NEON)
TN_KERN(gemm_t2_i8,     dotprod, TN_CPU_NEON | TN_CPU_DOTPROD)
TN_KERN(gemm_t2_i8,     i8mm, TN_CPU_NEON | TN_CPU_DOTPROD | TN_CPU_I8MM)
TN_KERN(gemm_r2_i8,     neon, TN_CPU_NEON)
TN_KERN(gemm_r2_i8,     dotprod, TN_CPU_NEON | TN_CPU_DOTPROD)
TN_KERN(gemm_r2_i8,     i8mm, TN_CPU_NEON | TN_CPU_DOTPROD | TN_CPU_I8MM)
TN_KERN(gemm_c2_i8,     neon, TN_CPU_NEON)
TN_KERN(gemm_c2_i8,     dotprod, TN_CPU_NEON | TN_CPU_DOTPROD)
TN_KERN(gemm_c2_i8,     i8mm, TN_CPU_NEON | TN_CPU_DOTPROD | TN_CPU_I8MM)
#endif

/* activations */
TN_KERN(quant_i8,       ref, 0)
TN_KERN(rms_norm_f32,   ref, 0)
TN_KERN(rms_norm_quant, ref, 0)
TN_KERN(scale_i32_f32,  ref, 0)
TN_KERN(add_i32_f32,    ref, 0)
TN_KERN(relu2_mul_f32,  ref, 0)
TN_KERN(rope_f32,       ref, 0)
#if TN_ARCH_X86_64
TN_KERN(quant_i8,       avx2, TN_CPU_AVX2)
TN_KERN(rms_norm_f32,   avx2, TN_CPU_AVX2)
TN_KERN(rms_norm_quant, avx2, TN_CPU_AVX2)
TN_KERN(scale_i32_f32,  avx2, TN_CPU_AVX2)
TN_KERN(add_i32_f32,    avx2, TN_CPU_AVX2)
TN_KERN(relu2_mul_f32,  avx2, TN_CPU_AVX2)
TN_KERN(rope_f32,       avx2, TN_CPU_AVX2)
TN_KERN(quant_i8,       avx512, TN_CPU_AVX512)
TN_KERN(rms_norm_f32,   avx512, TN_CPU_AVX512)
TN_KERN(rms_norm_quant, avx512, TN_CPU_AVX512)
TN_KERN(scale_i32_f32,  avx512, TN_CPU_AVX512)
TN_KERN(add_i32_f32,    avx512, TN_CPU_AVX512)
TN_KERN(relu2_mul_f32,  avx512, TN_CPU_AVX512)
TN_KERN(rope_f32,       avx512, TN_CPU_AVX512)
#endif

/* head */
TN_KERN(gemv_q8_f32,    ref, 0)
TN_KERN(gemv_f16_f32,   ref, 0)
TN_KERN(gemv_bf16_f32,  ref, 0)
#if TN_ARCH_X86_64
TN_KERN(gemv_q8_f32,    avx2, TN_CPU_AVX2)
TN_KERN(gemv_f16_f32,   avx2, TN_CPU_AVX2)
TN_KERN(gemv_bf16_f32,  avx2, TN_CPU_AVX2)
TN_KERN(gemv_q8_f32,    avx512, TN_CPU_AVX512)
TN_KERN(gemv_f16_f32,   avx512, TN_CPU_AVX512)
TN_KERN(gemv_bf16_f32,  avx512, TN_CPU_AVX512)
#endif

/* attention */
TN_KERN(attn_qk_f32,    ref, 0)
TN_KERN(attn_qk_f16,    ref, 0)
TN_KERN(attn_qk_q8,     ref, 0)
TN_KERN(attn_pv_f32,    ref, 0)
TN_KERN(attn_pv_f16,    ref, 0)
TN_KERN(attn_pv_q8,     ref, 0)
TN_KERN(max_f32,        ref, 0)
TN_KERN(exp_sum_f32,    ref, 0)
TN_KERN(kv_store_f32,   ref, 0)
TN_KERN(kv_store_f16,   ref, 0)
TN_KERN(kv_store_q8,    ref, 0)
#if TN_ARCH_X86_64
TN_KERN(attn_qk_f32,    avx2, TN_CPU_AVX2)
TN_KERN(attn_qk_f16,    avx2, TN_CPU_AVX2)
TN_KERN(attn_qk_q8,     avx2, TN_CPU_AVX2)
TN_KERN(attn_pv_f32,    avx2, TN_CPU_AVX2)
TN_KERN(attn_pv_f16,    avx2, TN_CPU_AVX2)
TN_KERN(attn_pv_q8,     avx2, TN_CPU_AVX2)
TN_KERN(max_f32,        avx2, TN_CPU_AVX2)
TN_KERN(exp_sum_f32,    avx2, TN_CPU_AVX2)
TN_KERN(kv_store_f16,   avx2, TN_CPU_AVX2)
TN_KERN(kv_store_q8,    avx2, TN_CPU_AVX2)
TN_KERN(attn_qk_f32,    avx512, TN_CPU_AVX512)
TN_KERN(attn_qk_f16,    avx512, TN_CPU_AVX512)
TN_KERN(attn_qk_q8,     avx512, TN_CPU_AVX512)
TN_KERN(attn_pv_f32,    avx512, TN_CPU_AVX512)
TN_KERN(attn_pv_f16,    avx512, TN_CPU_AVX512)
TN_KERN(attn_pv_q8,     avx512, TN_CPU_AVX512)
TN_KERN(max_f32,        avx512, TN_CPU_AVX512)
TN_KERN(exp_sum_f32,    avx512, TN_CPU_AVX512)
TN_KERN(kv_store_f16,   avx512, TN_CPU_AVX512)
TN_KERN(kv_store_q8,    avx512, TN_CPU_AVX512)
#endif
/* clang-format on */
