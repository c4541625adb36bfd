/* SPDX-License-Identifier: MIT
 *
 * The built-in chat templates: Jinja sources as published.
 *
 * The interpreter renders them like a model's own template; chat.c recognises a model's template by
 * comparing its tokens with these.
 */
#include <stddef.h>

#include "text/chat.h"

#define BITNET_HEAD                                                                                \
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "        \
    "message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}"
#define BITNET_TAIL                                                                                \
    "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
#define CHATML                                                                                     \
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "                    \
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"                                       \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

static const char llama3[] =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

static const char falcon3[] =
    "{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + "
    "message['content'] + '\n' }}{% elif message['role'] == 'user' %}{{ '<|user|>\n' + "
    "message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}{% if not loop.last %}"
    "{{ '<|assistant|>\n' + message['content'] + eos_token + '\n' }}{% else %}"
    "{{ '<|assistant|>\n' + message['content'] + eos_token }}{% endif %}{% endif %}"
    "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}";

/* Without the white space that its tags remove. */
static const char qwen3[] =
    "{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}"
    "{{- messages[0].content + '\\n\\n' }}{%- endif %}{{- \"# Tools\\n\\nYou may call one or more "
    "functions to assist with the user query.\\n\\nYou are provided with function signatures "
    "within <tools></tools> XML tags:\\n<tools>\" }}{%- for tool in tools %}{{- \"\\n\" }}"
    "{{- tool | tojson }}{%- endfor %}{{- \"\\n</tools>\\n\\nFor each function call, return a json "
    "object with function name and arguments within <tool_call></tool_call> XML "
    "tags:\\n<tool_call>\\n{\\\"name\\\": <function-name>, \\\"arguments\\\": "
    "<args-json-object>}\\n</tool_call><|im_end|>\\n\" }}{%- else %}"
    "{%- if messages[0].role == 'system' %}"
    "{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}{%- endif %}"
    "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}"
    "{%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}{%- "
    "if ns.multi_step_tool and message.role == \"user\" and "
    "not(message.content.startswith('<tool_response>') and "
    "message.content.endswith('</tool_response>')) %}{%- set ns.multi_step_tool = false %}"
    "{%- set ns.last_query_index = index %}{%- endif %}{%- endfor %}{%- for message in messages %}"
    "{%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- elif message.role == \"assistant\" %}{%- set content = message.content %}"
    "{%- set reasoning_content = '' %}"
    "{%- if message.reasoning_content is defined and message.reasoning_content is not none %}"
    "{%- set reasoning_content = message.reasoning_content %}{%- else %}"
    "{%- if '</think>' in message.content %}"
    "{%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}{%- set "
    "reasoning_content = "
    "message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}"
    "{%- endif %}{%- endif %}{%- if loop.index0 > ns.last_query_index %}"
    "{%- if loop.last or (not loop.last and reasoning_content) %}{{- '<|im_start|>' + message.role "
    "+ '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + "
    "content.lstrip('\\n') }}{%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}"
    "{%- endif %}{%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}{%- endif %}"
    "{%- if message.tool_calls %}{%- for tool_call in message.tool_calls %}"
    "{%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}"
    "{%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}"
    "{{- '<tool_call>\\n{\"name\": \"' }}{{- tool_call.name }}{{- '\", \"arguments\": ' }}"
    "{%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}"
    "{{- tool_call.arguments | tojson }}{%- endif %}{{- '}\\n</tool_call>' }}{%- endfor %}"
    "{%- endif %}{{- '<|im_end|>\\n' }}{%- elif message.role == \"tool\" %}"
    "{%- if loop.first or (messages[loop.index0 - 1].role != \"tool\") %}{{- '<|im_start|>user' }}"
    "{%- endif %}{{- '\\n<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>' }}"
    "{%- if loop.last or (messages[loop.index0 + 1].role != \"tool\") %}{{- '<|im_end|>\\n' }}"
    "{%- endif %}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}";

const struct tern_chat_template tn_chat_templates[] = {
    {.name = "bitnet-2b-4t",
     .source = BITNET_HEAD BITNET_TAIL,
     /* This variant writes bos_token itself; the ids are the same. */
     .variant = BITNET_HEAD "{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
                            "{% endif %}" BITNET_TAIL,
     .bos = "<|begin_of_text|>",
     .eos = "<|end_of_text|>",
     .answer_end = "<|eot_id|>",
     .specials = {"<|eot_id|>"}},
    {.name = "llama3",
     .source = llama3,
     .bos = "<|begin_of_text|>",
     .eos = "<|eot_id|>",
     .answer_end = "<|eot_id|>",
     .specials = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    {.name = "chatml",
     .source = CHATML,
     .variant = "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = "
                "false %}{% endif %}" CHATML,
     .bos = "",
     .eos = "<|im_end|>",
     .answer_end = "<|im_end|>",
     .specials = {"<|im_start|>", "<|im_end|>"}},
    {.name = "falcon3",
     .source = falcon3,
     .bos = "",
     .eos = "<|endoftext|>",
     .answer_end = "<|endoftext|>",
     .specials = {"<|endoftext|>"}}, /* <|user|> is plain text here */
    {.name = "qwen3",
     .source = qwen3,
     .bos = "",
     .eos = "<|im_end|>",
     .answer_end = "<|im_end|>",
     .specials = {"<|im_start|>", "<|im_end|>"}},
    {.name = NULL},
};
