// SPDX-License-Identifier: MIT
//
// Conversations as files, in the format of /save and /load in `tern chat`.
//
// The last line is a checksum of the bytes before it, computed by the server.  A file holds the
// branch that is shown.

const BEGIN = "{\"format\": \"tern conversation\"";
const LAST_LINE_BYTES = 32;

// Names of settings in the page and in files; in files numbers are strings.
const SETTINGS = [
    ["temperature", "temp"], ["top_k", "top-k"], ["top_p", "top-p"], ["min_p", "min-p"],
    ["repeat_penalty", "repeat-penalty"], ["presence_penalty", "presence-penalty"],
    ["frequency_penalty", "frequency-penalty"], ["repeat_last_n", "penalty-last"],
    ["seed", "seed"], ["max_tokens", "max-tokens"],
];
const MESSAGE_TEXTS = ["name", "tool_call_id"];

// An unpaired surrogate cannot be encoded as UTF-8.
const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;
const json = value => JSON.stringify(value, (_, v) =>
    typeof v === "string" ? v.replace(LONE, "\uFFFD") : v);

function messageOf(node) {
    const message = {role: node.role, content: node.content};
    if (node.reasoning)
        message.reasoning_content = node.reasoning;
    for (const key of [...MESSAGE_TEXTS, "tool_calls"])
        if (node[key] !== undefined)
            message[key] = node[key];
    return message;
}

// Writes all but the last line.  `messages`: the nodes of a branch; `model`: {name, hash}.
export function write(chat, messages, model) {
    const settings = {...chat.kept};
    for (const [here, there] of SETTINGS)
        if (chat.settings[here] !== undefined)
            settings[there] = String(chat.settings[here]);
    const whole = messages.filter(node => node.content || node.role !== "assistant");
    const answers = Object.values(chat.nodes).filter(node => node.role === "assistant").length;
    let text = `${BEGIN}, "version": 1,\n` +
        `"model": {"name": ${json(model.name)}, "hash": "${model.hash}"},\n` +
        `"settings": ${json(settings)},\n`;
    if (chat.system)
        text += `"system": ${json(chat.system)},\n`;
    for (const key of ["tools", "variables"])
        if (chat[key] !== undefined)
            text += `"${key}": ${json(chat[key])},\n`;
    const forgotten = Math.min(chat.forgotten, whole.length);
    return text + `"forgotten": ${forgotten}, "answers": ${answers},\n` +
        `"messages": [${whole.map(node => json(messageOf(node))).join(",\n")}],\n`;
}

export function lastLine(checksum) {
    return `"checksum": "${checksum}"}\n`;
}

// Returns the bytes that the checksum covers, and the checksum.  Throws an Error for the user.
export function split(bytes) {
    const text = new TextDecoder("utf-8", {fatal: false}).decode(bytes.slice(0, BEGIN.length));
    if (text !== BEGIN)
        throw new Error("This file is not a saved conversation.");
    const at = bytes.length - LAST_LINE_BYTES;
    const end = new TextDecoder().decode(bytes.slice(Math.max(at, 0)));
    const found = /^"checksum": "([0-9a-f]{16})"\}\n$/.exec(end);
    if (at < BEGIN.length || !found)
        throw new Error(`This file is damaged: its ${bytes.length} bytes do not end with a ` +
                        "checksum.");
    return {body: bytes.slice(0, at), checksum: found[1]};
}

const isText = value => value === undefined || typeof value === "string";

function checkMessage(message) {
    if (!message || typeof message.role !== "string" ||
        ![message.content, message.reasoning_content, ...MESSAGE_TEXTS.map(key => message[key])]
            .every(isText))
        throw new Error("A message has no role, or a member that is not text.");
}

// Copies only known members of a file's message into the conversation.
function known(message) {
    const keys = ["role", "content", "reasoning_content", ...MESSAGE_TEXTS, "tool_calls"];
    return Object.fromEntries(keys.filter(key => message[key] !== undefined)
        .map(key => [key, message[key]]));
}

function settingsOf(saved) {
    const settings = {}, kept = {...saved};
    for (const [here, there] of SETTINGS) {
        const value = Number(kept[there]);
        if (typeof kept[there] === "string" && Number.isFinite(value))
            settings[here] = value;
        delete kept[there];
    }
    return {settings, kept};
}

// Reads a file: {model, system, settings, kept, forgotten, tools?, variables?, messages}. `models`:
// those of the server; one of them must match the file's.
export function read(bytes, models) {
    let root;
    try {
        root = JSON.parse(new TextDecoder("utf-8", {fatal: true}).decode(bytes));
    } catch (error) {
        throw new Error(`This file is not a saved conversation: ${error.message}`);
    }
    if (root.version !== 1)
        throw new Error("This file was written by another version of tern.");
    if (!root.model || typeof root.model.name !== "string" || typeof root.model.hash !== "string")
        throw new Error("This file names no model.");
    const model = models.find(one => one.hash === root.model.hash);
    if (!model) {
        const here = models.map(one => `${one.name} (${one.hash})`).join(", ");
        throw new Error(`This conversation was saved with the model ${root.model.name} ` +
                        `(${root.model.hash}); here is ${here}.`);
    }
    const {forgotten, messages} = root;
    if (!Array.isArray(messages) || !isText(root.system) || !Number.isInteger(forgotten) ||
        forgotten < 0 || forgotten > messages.length)
        throw new Error("This file is not a saved conversation.");
    messages.forEach(checkMessage);
    return {model: model.id, system: root.system || "", ...settingsOf(root.settings), forgotten,
            tools: root.tools, variables: root.variables, messages: messages.map(known)};
}

// A file name made of the title's letters and digits.
export function fileName(title) {
    const name = title.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
    return (Array.from(name).slice(0, 48).join("") || "conversation") + ".json";
}
