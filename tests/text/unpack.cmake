# SPDX-License-Identifier: MIT
#
# cmake -DFROM=<shared>/reference/tokenizers -DTO=<dir> -DGZIP=<gzip> -P unpack.cmake
#
# Unpacks the reference data of the text tests.  Without the data it does nothing, and the tests
# skip themselves; with CI=true in the environment that is an error.
if(NOT EXISTS "${FROM}")
    if("$ENV{CI}" STREQUAL "true")
        message(FATAL_ERROR "the reference data is missing: ${FROM}")
    endif()
    message("no reference data at ${FROM}: the tests that need it are skipped")
    return()
endif()
file(MAKE_DIRECTORY "${TO}")
foreach(item
        llama3/tokenizer.json llama3.tokenizer.json
        gpt-2/tokenizer.json gpt-2.tokenizer.json
        gpt-neox/tokenizer.json gpt-neox.tokenizer.json
        falcon/tokenizer.json falcon.tokenizer.json
        starcoder/tokenizer.json starcoder.tokenizer.json
        deepseek-coder/tokenizer.json deepseek-coder.tokenizer.json
        llama-spm/tokenizer.json llama-spm.tokenizer.json
        phi-3/tokenizer.json phi-3.tokenizer.json
        golden/llama3.jsonl llama3.jsonl
        golden/gpt-2.jsonl gpt-2.jsonl
        golden/gpt-neox.jsonl gpt-neox.jsonl
        golden/falcon.jsonl falcon.jsonl
        golden/starcoder.jsonl starcoder.jsonl
        golden/deepseek-coder.jsonl deepseek-coder.jsonl
        golden/llama-spm.jsonl llama-spm.jsonl
        golden/phi-3.jsonl phi-3.jsonl
        golden/llama-spm.decode.jsonl llama-spm.decode.jsonl
        golden/llama3.decode.jsonl llama3.decode.jsonl)
    if(NOT source)
        set(source "${item}")
        continue()
    endif()
    execute_process(COMMAND "${GZIP}" -dc "${FROM}/${source}.gz"
        OUTPUT_FILE "${TO}/${item}.part" RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "cannot unpack ${FROM}/${source}.gz")
    endif()
    file(RENAME "${TO}/${item}.part" "${TO}/${item}")
    set(source "")
endforeach()
