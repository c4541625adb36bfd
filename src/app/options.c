/* SPDX-License-Identifier: MIT
 *
 * The table of commands and flags, from which args.c parses and help.c prints.  Its order is the
 * order of the help.
 */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "tern/model_format.h"
#include "tern/scheduler.h"

#define BIT(command) (1u << TN_CMD_##command)
#define ALL ((1u << TN_N_COMMANDS) - 1u)
#define GENERATE (BIT(RUN) | BIT(CHAT))
#define PLANNED (GENERATE | BIT(PROBE) | BIT(SERVE))
#define COMPUTE (GENERATE | BIT(PERPLEXITY) | BIT(LOGITS) | BIT(EMBED))
#define TOKENS (BIT(TOKENIZE) | BIT(DETOKENIZE))
#define WITH_MODEL                                                                                 \
    (COMPUTE | TOKENS | BIT(SERVE) | BIT(INFO) | BIT(PROBE) | BIT(VERIFY) | BIT(BENCH))
#define SLOT(member) offsetof(struct tn_options, member)

const struct tn_command_row tn_command_rows[TN_N_COMMANDS] = {
    [TN_CMD_RUN] = {
        "run", "[MODEL] [TEXT]", "one answer; without TEXT a conversation",
        "run demo \"Tell me a tale.\"",
        "Writes the answer to standard output and nothing else. Without TEXT, -p and -f\n"
        "this is tern chat on a terminal; elsewhere the prompt is read from standard\n"
        "input. Ctrl-C stops the answer.\n"
        "MODEL always comes before TEXT. A .gguf file or a folder is converted once into\n"
        "tern/models of the user's data folder.\n"
        "\n"
        "  tern run demo \"Tell me a story about a fox.\"\n"
        "  tern run --raw -p \"Once upon a time\" -n 100 --seed 1\n"
        "  tern run -p \"Sum this up:\" -f notes.txt > summary.txt\n",
        2},
    [TN_CMD_CHAT] = {
        "chat", "[MODEL]", "a conversation; also: tern", "chat demo",
        "On a terminal: type, Enter sends, a line that ends in \\ continues, Ctrl-C\n"
        "stops an answer, " TN_KEY_OF_END " leaves; /help lists the commands, tern help keys\n"
        "what the keys do.\n"
        "--session FILE continues a conversation and saves it after each turn; /new and\n"
        "/load ask before they replace it.\n"
        "Otherwise standard input is read by the same rules, a turn per line:\n"
        "\n"
        "  printf '%s\\n' \"Tell me a story.\" \"And then?\" | tern chat demo.tern\n",
        1},
    [TN_CMD_CONVERT] = {
        "convert", "SRC [-o FILE]", "Hugging Face folder or .gguf -> .tern",
        "convert bonsai.gguf",
        "SRC is a directory with config.json, model.safetensors (or shards with\n"
        "their index) and tokenizer.json (or vocab.json and merges.txt), or a GGUF\n"
        "file (of a split one the first part). tern info SRC says whether tern has\n"
        "its architecture. Ternary weights are packed (--pack), all others keep\n"
        "their values. An existing .tern file is replaced when the new one is\n"
        "complete.\n"
        "Also: tern --convert SRC --save FILE.\n"
        "\n"
        "  tern convert bitnet-b1.58-2B-4T-bf16 -o bitnet.tern\n"
        "  tern convert Ternary-Bonsai-4B-Q2_0.gguf -o bonsai.tern\n",
        1},
    [TN_CMD_INFO] = {"info", "[MODEL]", "contents of a model file", "info demo",
                     "Also for a GGUF file, a safetensors file or a directory: its keys and\n"
                     "tensors, the family, and whether tern can convert it, as far as the\n"
                     "headers, the tokenizer and the first layer show.\n",
                     1},
    [TN_CMD_EMBED] = {
        "embed", "[MODEL] [FILE...]", "texts -> vectors; --search: passages",
        "embed MODEL notes.txt",
        "Each line of the files, or of standard input, is a text. A vector is a line\n"
        "of JSON: {\"index\",\"embedding\",\"tokens\"}; its length is 1, so the product of\n"
        "two is their similarity. The pooling is printed to standard error; vectors of\n"
        "different models or pooling must not be compared.\n"
        "With --search: the passages of the files that fit QUERY best, without an\n"
        "index. MODEL is recognised by its name, or by the file's contents.\n"
        "\n"
        "  tern embed embedding.tern lines.txt > vectors.jsonl\n"
        "  tern embed embedding.tern --search \"how to get a refund\" *.txt\n",
        UINT32_MAX},
    [TN_CMD_PULL] = {
        "pull", "[NAME|OWNER/REPO[:FILE]]", "models to fetch; fetch one", "pull bitnet-2b",
        "Without an argument: the models that tern knows, with the memory that each\n"
        "needs, the tokens per second to expect on this machine, and the best that fits\n"
        "marked. Nothing is fetched for that.\n"
        "With one: fetches a model from Hugging Face through the system's curl and\n"
        "converts it into tern/models of the user's data folder, where tern list shows\n"
        "it. The same command continues an interrupted download within a week.\n"
        "NAME is one of the list; OWNER/REPO any repository of a model that tern info\n"
        "can convert, FILE one of its .gguf files. HF_TOKEN holds the token for models\n"
        "whose licence must be accepted, HF_ENDPOINT another address of the hub.\n"
        "\n"
        "  tern pull\n"
        "  tern pull bitnet-2b\n"
        "  tern pull prism-ml/Ternary-Bonsai-4B-gguf:Ternary-Bonsai-4B-Q2_0.gguf\n",
        1},
    [TN_CMD_LIST] = {
        "list", "", "models that can be called by name", "list",
        "Also: tern ls.\n"
        "Files that end in .tern beside the program, in the folders models and\n"
        "../share/tern there, in $TERN_MODELS and in tern/models of the user's data\n"
        "folder. Their names, without extension, can be used as MODEL everywhere; run and\n"
        "chat also accept names of .tern files in the current folder.\n",
        0},
    [TN_CMD_REMOVE] = {
        "remove", "NAME", "delete a fetched model", "remove bitnet-2b",
        "Deletes NAME.tern in tern/models of the user's data folder, and the rest of\n"
        "its download. Models elsewhere are files of yours: delete them like any other.\n"
        "Also: tern rm.\n",
        1},
    [TN_CMD_SERVE] = {
        "serve", "[MODEL]...", "a page to talk to, and APIs for programs", "serve demo --open",
        "Writes its address to standard output when it listens: at 127.0.0.1 and ::1\n"
        "only, unless --host says otherwise, which needs a key. Ctrl-C ends it. A\n"
        "model's id is the name of its file without .tern.\n"
        "In a browser the address is a page to talk to the models. Conversations stay\n"
        "in that browser; the page contacts no other computer.\n"
        "\n"
        "  tern serve demo.tern --open\n"
        "  curl http://localhost:8080/v1/chat/completions \\\n"
        "    -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}'\n",
        UINT32_MAX},
    [TN_CMD_PROBE] = {
        "probe", "[MODEL]", "resources of this machine, and the plan", "probe demo",
        "Every limit on cores and memory that applies here, which one binds, and what\n"
        "follows: threads, context, cache type, length of answers. With the flags of\n"
        "tern run: what they would change. A GGUF file or a folder is not converted: its\n"
        "headers show the memory and the tokens per second to expect.\n"
        "\n"
        "  tern probe bitnet.tern --ram 900M\n"
        "  tern probe Qwen3-30B-A3B-Q4_K_M.gguf\n"
        "  tern probe --record machine; tern probe --probe-root machine\n",
        1},
    [TN_CMD_VERIFY] = {
        "verify", "[MODEL]", "check a model file and the kernels", "verify demo",
        "Compares every checksum, then every kernel of this CPU with the reference\n"
        "on the model's own weights, then the stored fingerprint of the model.\n"
        "Exit code 5 when something differs.\n",
        1},
    [TN_CMD_BENCH] = {
        "bench", "[MODEL]", "speed, bandwidth, memory", "bench demo",
        "Loading, prefill and decode at several context depths, each part of a token\n"
        "and each kernel beside the rate at which this machine reads memory, and a\n"
        "hash of the generated tokens: exit code 1 when levels or thread counts\n"
        "disagree.\n"
        "\n"
        "  tern bench bitnet.tern --threads 1,2 --cpu avx2,avx512\n",
        1},
    [TN_CMD_TOKENIZE] = {
        "tokenize", "[MODEL]", "standard input -> token ids", "tokenize demo < text.txt",
        "  echo -n \"Hello world\" | tern tokenize demo.tern --pieces\n"
        "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | tern tokenize --chat "
        "--text\n",
        1},
    [TN_CMD_DETOKENIZE] = {
        "detokenize", "[MODEL]", "token ids -> text", "detokenize demo < ids.txt",
        "The exact bytes of the tokens, with nothing added.\n"
        "\n"
        "  echo -n \"Hello\" | tern tokenize | tern detokenize\n",
        1},
    [TN_CMD_PERPLEXITY] = {
        "perplexity", "[MODEL] FILE", "how well a model predicts a text",
        "perplexity demo text.txt",
        "The text is cut into overlapping windows; each token is scored once.\n",
        2},
    [TN_CMD_LOGITS] = {
        "logits", "[MODEL] --ids \"1 2 3\" [-o FILE] [--greedy N]",
        "raw logits, to compare with a reference", "logits demo --ids 1,2 -o x.f32",
        "FILE gets little-endian float32, one row of the vocabulary per id.\n"
        "\n"
        "  tern logits demo.tern --ids \"1 2 3\" -o out.f32 --greedy 16\n",
        1},
    [TN_CMD_VERSION] = {"version", "", "version of the program", "version", "", 0},
    [TN_CMD_HELP] = {"help", "[COMMAND|TOPIC]", "all about a command, with its flags", "help run",
                     "", 1},
};

const struct tn_option_row tn_option_rows[] = {
    {"model", 'm', TN_OPT_PATH, SLOT(model), WITH_MODEL, .value = "FILE",
     .help = "the model, if not given by position"},
    {"load", 0, TN_OPT_PATH, SLOT(model), WITH_MODEL, .value = "FILE", .hidden = true},

    {"no-convert", 0, TN_OPT_FLAG, SLOT(no_convert), GENERATE | BIT(SERVE),
     .help = "refuse a GGUF file or a folder that is not converted yet"},

    /* prompt */
    {"prompt", 'p', TN_OPT_TEXT, SLOT(prompt), BIT(RUN), .value = "TEXT", .help = "the prompt"},
    {"file", 'f', TN_OPT_PATH, SLOT(file), BIT(RUN), .value = "FILE",
     .help = "prompt from a file (after -p or TEXT if both are given); - is standard input"},
    {"chat", 0, TN_OPT_SET, SLOT(mode), GENERATE, .low = TN_MODE_CHAT,
     .help = "use the chat template; the default for models that have one"},
    {"raw", 0, TN_OPT_SET, SLOT(mode), BIT(RUN), .low = TN_MODE_RAW,
     .help = "continue the prompt verbatim, without a template"},
    {"special", 0, TN_OPT_FLAG, SLOT(special), BIT(RUN),
     .help = "with --raw: text such as <|eot_id|> becomes the control token"},
    {"system", 's', TN_OPT_TEXT, SLOT(system), GENERATE, .value = "TEXT",
     .help = "system message of the conversation"},
    {"template", 0, TN_OPT_PATH, SLOT(template_name),
     GENERATE | BIT(TOKENIZE) | BIT(SERVE),
     .value = "NAME|FILE", .otherwise = "the model's",
     .help = "chat template: bitnet-2b-4t, llama3, chatml, falcon3, qwen3, or a Jinja file"},
    {"date", 0, TN_OPT_TEXT, SLOT(date), GENERATE | BIT(TOKENIZE) | BIT(SERVE),
     .value = "YYYY-MM-DD", .otherwise = "today", .help = "the date that a template sees"},
    {"session", 0, TN_OPT_PATH, SLOT(session), BIT(CHAT), .value = "FILE",
     .help = "continue the conversation saved there, and keep it saved"},
    {"session-cache", 0, TN_OPT_FLAG, SLOT(session_cache), BIT(CHAT),
     .help = "with --session: save the computed cache in FILE.cache, so that the next run need "
             "not compute it again"},
    {"prefix-cache", 0, TN_OPT_PATH, SLOT(prefix_cache), BIT(RUN), .value = "FILE",
     .help = "save the computed prompt here and reuse it for prompts with the same beginning"},
    {"schema", 0, TN_OPT_PATH, SLOT(schema), BIT(RUN), .value = "FILE",
     .help = "the answer is JSON that fits this JSON schema, without reasoning; no penalties "
             "unless given"},
    {"grammar", 0, TN_OPT_PATH, SLOT(grammar), BIT(RUN), .value = "FILE",
     .help = "the answer fits this grammar in GBNF, llama.cpp's notation, without reasoning; no "
             "penalties unless given"},
    {"history", 0, TN_OPT_PATH, SLOT(history), BIT(CHAT), .value = "FILE",
     .help = "on a terminal: save the input lines there, for the arrow keys in later runs"},
    {"jsonl", 0, TN_OPT_FLAG, SLOT(jsonl), BIT(CHAT),
     .help = "for programs: one JSON object per line in and out; see tern help jsonl"},

    {"plain", 0, TN_OPT_FLAG, SLOT(plain), GENERATE,
     .help = "on a terminal: no word wrap, and Markdown is not dimmed"},

    /* length and sampling */
    {"max-tokens", 'n', TN_OPT_COUNT, SLOT(max_tokens), GENERATE | BIT(PROBE), .value = "N",
     .low = 1, .high = TERN_MAX_CONTEXT, .otherwise = "by available memory",
     .help = "maximum number of new tokens"},
    {"temp", 0, TN_OPT_REAL, SLOT(temperature), GENERATE, .value = "T", .initial = "0.7",
     .real_low = 0, .real_high = 2, .help = "randomness"},
    {"top-k", 0, TN_OPT_COUNT, SLOT(top_k), GENERATE, .value = "K", .initial = "40",
     .low = 0, .high = TERN_MAX_VOCAB, .help = "only the K most likely tokens; 0: all"},
    {"top-p", 0, TN_OPT_REAL, SLOT(top_p), GENERATE, .value = "P", .initial = "0.95",
     .real_low = 0, .real_high = 1, .open = true,
     .help = "only the most likely tokens that together hold P; 1: all"},
    {"min-p", 0, TN_OPT_REAL, SLOT(min_p), GENERATE, .value = "P", .initial = "0",
     .real_low = 0, .real_high = 1,
     .help = "only tokens with P times the probability of the best; 0: all"},
    {"repeat-penalty", 0, TN_OPT_REAL, SLOT(repeat_penalty), GENERATE, .value = "R",
     .initial = "1.1", .real_low = 0, .real_high = 100, .open = true,
     .help = "divides logits of tokens that occurred; 1: off"},
    {"presence-penalty", 0, TN_OPT_REAL, SLOT(presence_penalty), GENERATE, .value = "P",
     .initial = "0.6", .real_low = -2, .real_high = 2,
     .help = "subtracted once from tokens that occurred; 0: off"},
    {"frequency-penalty", 0, TN_OPT_REAL, SLOT(frequency_penalty), GENERATE, .value = "F",
     .initial = "0", .real_low = -2, .real_high = 2,
     .help = "subtracted for each time they occurred; 0: off"},
    {"penalty-last", 0, TN_OPT_COUNT, SLOT(penalty_last), GENERATE, .value = "N", .initial = "64",
     .low = 0, .high = 65536, .help = "penalties look at the last N tokens; 0: no penalties"},
    {"greedy", 0, TN_OPT_ZERO, SLOT(temperature), GENERATE,
     .help = "always the most likely token (= --temp 0); no penalties unless given"},
    {"seed", 0, TN_OPT_COUNT, SLOT(seed), GENERATE, .value = "N", .low = 0, .high = UINT64_MAX,
     .otherwise = "random, shown by --stats", .help = "start of the random sequence"},
    {"stop", 0, TN_OPT_LIST, SLOT(stop), GENERATE, .value = "TEXT",
     .help = "end before this text (may be given several times)"},
    {"ignore-eos", 0, TN_OPT_FLAG, SLOT(ignore_eos), GENERATE,
     .help = "do not end at the model's stop tokens"},
    {"draft", 0, TN_OPT_CHOICE, SLOT(draft), PLANNED, .value = "N", .initial = "7",
     .choices = "off|1|2|3|4|5|6|7",
     .help = "verify up to N tokens together that the text so far or the model's draft head "
             "suggests, where that is faster; the answer stays the same"},

    /* bench */
    {"prompt", 'p', TN_OPT_TEXT, SLOT(prompt_list), BIT(BENCH), .value = "LIST", .initial = "128",
     .help = "tokens to prefill, such as 128,512; decoding follows the first"},
    {"new", 'n', TN_OPT_COUNT, SLOT(n_new), BIT(BENCH), .value = "N", .initial = "32", .low = 1,
     .high = TERN_MAX_CONTEXT, .help = "tokens to decode"},
    {"repeat", 'r', TN_OPT_COUNT, SLOT(repeats), BIT(BENCH), .value = "N", .initial = "3",
     .low = 1, .high = 32, .help = "runs of each kind; the table shows the median"},
    {"kv", 0, TN_OPT_CHOICE, SLOT(kv), BIT(BENCH), .value = "TYPE", .choices = "f32|f16|q8",
     .otherwise = "the model's: q8, or f16 where its file says so", .help = "type of the cache"},
    {"threads", 0, TN_OPT_TEXT, SLOT(thread_list), BIT(BENCH), .value = "LIST",
     .help = "thread counts, such as 1,2 (default: 1 and one per core)"},
    {"depths", 0, TN_OPT_TEXT, SLOT(depth_list), BIT(BENCH), .value = "LIST",
     .help = "context depths to decode at (default: 512,2048,4000, as far as they fit)"},
    {"parallel", 0, TN_OPT_TEXT, SLOT(parallel_list), BIT(BENCH), .value = "LIST",
     .help = "numbers of sequences to decode together, such as 1,2,4,8"},
    {"draft", 0, TN_OPT_CHOICE, SLOT(draft), BIT(BENCH), .value = "N", .initial = "off",
     .choices = "off|1|2|3|4|5|6|7",
     .help = "decode also with drafts of up to N tokens from the answer itself; the time of a "
             "draft head counts"},
    {"draft-wrong", 0, TN_OPT_COUNT, SLOT(draft_wrong), BIT(BENCH), .value = "M", .low = 1,
     .high = TERN_MAX_CONTEXT, .otherwise = "none is wrong",
     .help = "draft every M-th token of the answer wrongly"},
    {"cpu", 0, TN_OPT_TEXT, SLOT(cpu), BIT(BENCH), .value = "LIST",
     .help = "kernel levels, such as avx2,avx512 (default: the best)"},

    /* logits */
    {"ids", 0, TN_OPT_TEXT, SLOT(ids), BIT(LOGITS), .value = "IDS",
     .help = "token ids with spaces or commas between them"},
    {"greedy", 0, TN_OPT_COUNT, SLOT(n_greedy), BIT(LOGITS), .value = "N", .low = 1,
     .high = TERN_MAX_CONTEXT, .help = "print the N ids that follow, always the most likely one"},
    {"batch", 0, TN_OPT_COUNT, SLOT(batch), BIT(LOGITS), .value = "N", .initial = "128", .low = 1,
     .high = 512, .help = "ids per evaluation"},

    /* embed */
    {"search", 0, TN_OPT_TEXT, SLOT(search), BIT(EMBED), .value = "QUERY",
     .help = "print the best passages of the files, or of standard input, with scores"},
    {"top", 0, TN_OPT_COUNT, SLOT(n_top), BIT(EMBED), .value = "N", .initial = "5", .low = 1,
     .high = 500, .help = "with --search: passages to print"},
    {"lines", 0, TN_OPT_FLAG, SLOT(by_line), BIT(EMBED),
     .help = "with --search: every line is a passage, not every paragraph"},
    {"task", 0, TN_OPT_TEXT, SLOT(task), BIT(EMBED), .value = "TEXT",
     .help = "put \"Instruct: TEXT\", newline, \"Query: \" before each text; with --search only "
             "before QUERY, where embedding models get one by default (\"\": none)"},
    {"pooling", 0, TN_OPT_CHOICE, SLOT(pooling), BIT(EMBED), .value = "KIND", .initial = "auto",
     .choices = "auto|mean|cls|last", .help = "pooling of the states; auto: the model's"},
    {"dim", 0, TN_OPT_COUNT, SLOT(n_dim), BIT(EMBED), .value = "N", .low = 1, .high = 1u << 20,
     .otherwise = "all", .help = "leading components to keep"},
    {"raw", 0, TN_OPT_FLAG, SLOT(raw_floats), BIT(EMBED),
     .help = "write float32, little-endian, vector after vector"},
    {"ids", 0, TN_OPT_TEXT, SLOT(ids), BIT(EMBED), .value = "IDS",
     .help = "one text as token ids, to which nothing is added"},
    {"json", 0, TN_OPT_FLAG, SLOT(json), BIT(EMBED),
     .help = "standard input is a JSON array of texts; with --search: a line of JSON per passage"},

    /* convert */
    {"output", 'o', TN_OPT_PATH, SLOT(output), BIT(CONVERT), .value = "FILE",
     .otherwise = "./DIR.tern", .help = "the file to write"},
    {"force", 0, TN_OPT_FLAG, SLOT(force), BIT(CONVERT),
     .help = "replace FILE even if it is neither a .tern file nor empty"},
    {"output", 'o', TN_OPT_PATH, SLOT(output), BIT(LOGITS), .value = "FILE",
     .help = "the file to write"},
    {"force", 0, TN_OPT_FLAG, SLOT(force), BIT(LOGITS),
     .help = "replace FILE even if it is not empty and its name does not end in .f32"},
    {"save", 0, TN_OPT_PATH, SLOT(output), BIT(CONVERT), .value = "FILE", .hidden = true},
    {"convert", 0, TN_OPT_PATH, SLOT(source), BIT(CONVERT), .value = "DIR", .hidden = true},
    {"name", 0, TN_OPT_TEXT, SLOT(name), BIT(CONVERT), .value = "NAME",
     .otherwise = "that of DIR", .help = "the model's name"},
    {"head", 0, TN_OPT_CHOICE, SLOT(head), BIT(CONVERT), .value = "TYPE", .initial = "auto",
     .choices = "auto|q8|q6|q4|f16|bf16|f32",
     .help = "type of the embedding and output table; auto: block types of GGUF files stay, "
             "others become q8, but stay in embedding models and where no weight is "
             "ternary"},
    {"activations", 0, TN_OPT_CHOICE, SLOT(activations), BIT(CONVERT), .value = "TYPE",
     .initial = "auto", .choices = "auto|int8|float",
     .help = "whether inputs of products are rounded; auto: as in training"},
    {"i2s-layout", 0, TN_OPT_CHOICE, SLOT(i2s_layout), BIT(CONVERT), .value = "LAYOUT",
     .initial = "x86", .choices = "x86|arm|1x4",
     .help = "of I2_S in a .gguf file; all published ones are x86"},
    {"pack", 0, TN_OPT_CHOICE, SLOT(pack), BIT(CONVERT), .value = "LAYOUT", .initial = "fast",
     .choices = "fast|small|auto",
     .help = "ternary weights in 2 bits, or in 1.625, the same answers in less memory; auto: small "
             "where fast would not fit or be slower here"},
    {"pre", 0, TN_OPT_TEXT, SLOT(pre), BIT(CONVERT), .value = "NAME",
     .otherwise = "what the file says",
     .help = "splitter of a GGUF file: llama-bpe, gpt-2, qwen2, falcon3, ..."},
    {"no-tokenizer", 0, TN_OPT_FLAG, SLOT(no_tokenizer), BIT(CONVERT),
     .help = "leave the tokenizer out (enough for logits, bench and verify)"},

    /* serve */
    {"host", 0, TN_OPT_TEXT, SLOT(host), BIT(SERVE), .value = "ADDRESS", .initial = "localhost",
     .help = "where to listen: localhost (127.0.0.1 and ::1) or a numeric address"},
    {"port", 0, TN_OPT_COUNT, SLOT(port), BIT(SERVE), .value = "N", .initial = "8080", .low = 0,
     .high = 65535, .help = "port; 0 selects a free one"},
    {"parallel", 0, TN_OPT_COUNT, SLOT(parallel), BIT(SERVE), .value = "N", .low = 1,
     .high = TERN_SCHEDULER_MAX_SEQUENCES, .otherwise = "4, or what memory allows",
     .help = "answers of a model that are computed at the same time; up to 64 requests are "
             "computed or wait"},
    {"api-key-file", 0, TN_OPT_PATH, SLOT(api_key_file), BIT(SERVE), .value = "FILE",
     .otherwise = "$TERN_API_KEY", .help = "file with the key that clients must send"},
    {"allow-origin", 0, TN_OPT_LIST, SLOT(origins), BIT(SERVE), .value = "ORIGIN",
     .help = "a web page's origin that may use the server, such as https://example.com (may be "
             "given several times)"},
    {"allow-host", 0, TN_OPT_LIST, SLOT(hosts), BIT(SERVE), .value = "NAME",
     .help = "another name of this server, as clients write it (may be given several times)"},
    {"log", 0, TN_OPT_PATH, SLOT(log_file), BIT(SERVE), .value = "FILE",
     .help = "a line per request, never its text, at the end of FILE; -v: to standard error"},
    {"open", 0, TN_OPT_FLAG, SLOT(opens_page), BIT(SERVE),
     .help = "show the page for people in the browser"},
    {"no-sandbox", 0, TN_OPT_FLAG, SLOT(no_sandbox), GENERATE | BIT(SERVE),
     .help = "keep the rights that it drops after the start (Linux): to open sockets, to start "
             "programs, to open files where no command needs them"},
    {"no-page", 0, TN_OPT_FLAG, SLOT(no_page), BIT(SERVE),
     .help = "no page for people: only the interfaces for programs"},

    /* pull */
    {"keep", 0, TN_OPT_FLAG, SLOT(keep), BIT(PULL),
     .help = "keep the downloaded files beside the converted one"},

    /* reports */
    {"probe-root", 0, TN_OPT_PATH, SLOT(probe_root), BIT(PROBE), .value = "DIR",
     .help = "a recorded machine instead of this one"},
    {"record", 0, TN_OPT_PATH, SLOT(record), BIT(PROBE), .value = "DIR",
     .help = "record this machine, without names and serial numbers"},
    {"json", 0, TN_OPT_FLAG, SLOT(json),
     BIT(INFO) | BIT(LIST) | BIT(PULL) | BIT(PROBE) | BIT(BENCH) | BIT(PERPLEXITY),
     .help = "for programs"},
    {"tensors", 0, TN_OPT_FLAG, SLOT(tensors), BIT(INFO), .help = "list the tensors"},
    {"special", 0, TN_OPT_FLAG, SLOT(special), BIT(TOKENIZE),
     .help = "text such as <|eot_id|> becomes the control token"},
    {"special", 0, TN_OPT_FLAG, SLOT(special), BIT(DETOKENIZE), .help = "write control tokens too"},
    {"no-bos", 0, TN_OPT_FLAG, SLOT(no_bos), BIT(TOKENIZE),
     .help = "do not add the tokenizer's prefix, such as BOS"},
    {"pieces", 0, TN_OPT_FLAG, SLOT(pieces), BIT(TOKENIZE),
     .help = "a line per token: id and text"},
    {"chat", 0, TN_OPT_FLAG, SLOT(as_chat), BIT(TOKENIZE),
     .help = "standard input is a JSON array of {\"role\",\"content\"}"},
    {"text", 0, TN_OPT_FLAG, SLOT(as_text), BIT(TOKENIZE),
     .help = "with --chat: the rendered text, not its ids"},
    {"no-generation-prompt", 0, TN_OPT_FLAG, SLOT(no_generation_prompt), BIT(TOKENIZE),
     .help = "with --chat: without the generation prompt"},
    {"stride", 0, TN_OPT_COUNT, SLOT(stride), BIT(PERPLEXITY), .value = "N", .low = 1,
     .high = TERN_MAX_CONTEXT, .otherwise = "half of --ctx",
     .help = "step from window to window"},

    /* machine */
    {"ctx", 0, TN_OPT_COUNT, SLOT(ctx), PLANNED, .value = "N", .low = 1,
     .high = TERN_MAX_CONTEXT, .otherwise = "the model's, or what memory allows",
     .help = "context in tokens"},
    {"ctx", 0, TN_OPT_COUNT, SLOT(ctx), BIT(PERPLEXITY), .value = "N", .low = 1,
     .high = TERN_MAX_CONTEXT, .otherwise = "the model's context", .help = "tokens per window"},
    {"kv", 0, TN_OPT_CHOICE, SLOT(kv), PLANNED, .value = "TYPE", .choices = "f32|f16|q8",
     .otherwise = "the model's: q8, or f16 where its file says so",
     .help = "type of the key/value cache"},
    {"kv", 0, TN_OPT_CHOICE, SLOT(kv), BIT(PERPLEXITY) | BIT(LOGITS), .value = "TYPE",
     .initial = "f32", .choices = "f32|f16|q8", .help = "type of the key/value cache"},
    {"inputs", 0, TN_OPT_CHOICE, SLOT(inputs), COMPUTE | BIT(SERVE) | BIT(BENCH),
     .value = "FORM", .initial = "auto", .choices = "auto|f32|16|8",
     .help = "precision of activations for models not trained with int8 activations; auto: 16 "
             "bits, 8 for block types of GGUF files; 8: faster, and logits move by about 0.1"},
    {"threads", 0, TN_OPT_COUNT, SLOT(threads), COMPUTE | PLANNED, .value = "N", .low = 1,
     .high = 256, .otherwise = "one per core that helps", .help = "threads"},
    {"ram", 0, TN_OPT_SIZE, SLOT(ram), PLANNED, .value = "SIZE",
     .help = "plan as if no more memory were free"},
    {"eco", 0, TN_OPT_FLAG, SLOT(eco), PLANNED, .help = "use half of the fast cores"},
    {"caps", 0, TN_OPT_CHOICE, SLOT(caps), PLANNED, .value = "KIND", .initial = "tiers",
     .choices = "tiers|memory|off",
     .help = "the limit of new tokens: by the tier of available memory, by memory for the cache, "
             "or only by the model's context"},
    {"cpu", 0, TN_OPT_TEXT, SLOT(cpu), COMPUTE | PLANNED, .value = "LEVEL",
     .help = "highest kernel level to use: ref, ssse3, avx2, avxvnni, avx512, amx (Linux); on Arm "
             "ref, neon, dotprod, i8mm",
     .otherwise = "the best"},

    /* everywhere */
    {"stats", 0, TN_OPT_STATS, SLOT(stats), GENERATE,
     .help = "times, speeds, memory at the end; --stats=json for programs"},
    {"quiet", 'q', TN_OPT_SET, SLOT(level), ALL, .low = (uint64_t)-1,
     .help = "only warnings and errors on standard error"},
    {"verbose", 'v', TN_OPT_SET, SLOT(level), ALL, .low = 1, .help = "print more messages"},
    {"help", 'h', TN_OPT_FLAG, SLOT(help), ALL, .help = "this text"},
    {"version", 0, TN_OPT_FLAG, SLOT(version), ALL, .help = "version of the program",
     .hidden = true},
};
const uint32_t tn_n_option_rows = TN_COUNT_OF(tn_option_rows);
static_assert(TN_COUNT_OF(tn_option_rows) <= 128, "struct tn_options.given has a bit per row");

const struct tn_option_row *tn_option_find(enum tn_command command, const char *name)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].commands >> command & 1 && strcmp(tn_option_rows[i].name, name) == 0)
            return &tn_option_rows[i];
    return NULL;
}

void tn_option_range_text(const struct tn_option_row *row, char *out, size_t n_out)
{
    out[0] = '\0';
    if (row->kind == TN_OPT_COUNT)
        snprintf(out, n_out, "%llu to %llu", (unsigned long long)row->low,
                 (unsigned long long)row->high);
    else if (row->kind == TN_OPT_SIZE)
        snprintf(out, n_out, "a size such as 900M or 1.5G");
    else if (row->kind == TN_OPT_REAL && row->open)
        snprintf(out, n_out, "above %g, at most %g", row->real_low, row->real_high);
    else if (row->kind == TN_OPT_REAL)
        snprintf(out, n_out, "%g to %g", row->real_low, row->real_high);
    else if (row->kind == TN_OPT_CHOICE) {
        size_t n = 0;
        for (const char *c = row->choices; *c && n + 3 < n_out; c++) {
            if (*c == '|') {
                out[n++] = ',';
                out[n++] = ' ';
            } else {
                out[n++] = *c;
            }
        }
        out[n] = '\0';
    }
}

bool tn_options_given_slot(const struct tn_options *options, size_t slot)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].slot == slot && options->given[i / 64] >> i % 64 & 1)
            return true;
    return false;
}
