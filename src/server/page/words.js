// SPDX-License-Identifier: MIT
//
// Formats numbers, greetings and errors as text.  Nothing here knows of elements.

const MIN_SHOWN_PROMPT = 64;   // tokens: fewer are read at once
const MIN_TIMED_MS = 300;   // a burst of tokens that arrives faster does not measure the speed

// ", 12.3 per second" for `n` tokens that arrived within `ms` milliseconds of the first; "" if that
// is too little to measure.
export function speed(n, ms) {
    return n > 1 && ms >= MIN_TIMED_MS ? `, ${((n - 1) * 1000 / ms).toFixed(1)} per second` : "";
}

// "12 tokens, 3.4 per second".
export function figures(n, ms) {
    return `${n} ${n === 1 ? "token" : "tokens"}${speed(n, ms)}`;
}

// How much of a prompt the server has read, from its prompt_progress; "" for a short prompt.
export function readingProgress({total, cache, processed}) {
    const nNew = total - cache;
    if (nNew < MIN_SHOWN_PROMPT || processed < cache)
        return "";
    return `Reading your message: ${Math.floor(100 * (processed - cache) / nNew)} %`;
}

// {used, share, text}: tokens of a context of `size`.  The last token of an answer is counted but
// never stored, so a full context reports one more than its size.
export function contextUse(nTokens, size) {
    const used = Math.min(nTokens, size);
    return {used, share: used / size, text: `${used} of ${size} tokens`};
}

// The content of an empty conversation: {title, text, command?}.  `model`: undefined if none of the
// server's models can chat; `isConnected`: the server has reported its models.
export function greeting(model, isConnected) {
    const title = "What is on your mind?";
    if (!isConnected)
        return {title, text: "Waiting for the server."};
    if (!model)
        return {title: "No model here can chat", command: "tern pull",
                text: "This server computes embeddings only. To fetch a model that answers, type " +
                      "in a terminal:"};
    if (model.id === "demo")
        return {title: "Ask for a fairy tale", command: "tern pull",
                text: "The demo tells fairy tales and knows nothing else. To fetch a model that " +
                      "answers questions, type in a terminal:"};
    return {title, text: model.has_chat ? `${model.id} answers, on this computer.`
        : `${model.id} has no chat template: it continues what you write.`};
}

const OVERLONG = /(\d+) tokens\D+(\d+) tokens/;

// [limit, size] from the refusal of an overlong prompt; null for other refusals.
export function overlong(error) {
    const sizes = error.code === "context_length_exceeded" && OVERLONG.exec(error.message);
    return sizes ? [Number(sizes[1]), Number(sizes[2])] : null;
}

// Describes a failure, and the action that can help: {text, action: "again" | "edit" | "settings" |
// "key"}.  `hasSystem`: the conversation has a system text; `hasText`: part of the answer had
// arrived.
export function explain(error, hasSystem, hasText) {
    const sizes = overlong(error);
    if (sizes)
        return {action: "edit",
                text: `Your message${hasSystem ? " and the system text are" : " is"} too long: ` +
                      `${sizes[1]} tokens, and the model reads at most ${sizes[0]}. Shorten ` +
                      `${hasSystem ? "one of them" : "it"}.`};
    if (error.status === 0)
        return {action: "again", text: `${error.message} ${hasText ? "The text so far"
            : "Your message"} is kept. Start tern serve again, then ${hasText ? "continue it"
            : "try again"}.`};
    if (error.status === 401)
        return {action: "key", text: "The API key is missing or wrong."};
    if (error.status === 404)
        return {action: "again", text: "The server no longer has this model. Choose another one " +
                "at the top, then try again."};
    if (error.status === 413)
        return {action: "edit",
                text: "The conversation is too large for the memory of the server. Shorten your " +
                      "message or begin a new conversation."};
    if (error.status === 503)
        return {action: "again", text: `The server has too much to do (${error.message}). Try ` +
                "again in a moment."};
    if (error.status === 400)
        return {action: "settings", text: `The server refuses this request: ${error.message}`};
    return {action: "again", text: error.message};
}
