// SPDX-License-Identifier: MIT
//
// A conversation: a tree of messages.  Another answer to a question, or a reworded question, is
// another child of the same message; `leaf` is the end of the branch that is shown.
//
//   {id, created, changed, title, model, system, settings: {...}, forgotten, leaf,
//    nodes: {id: {id, parent, rev, created, role, content, reasoning?, ...}}}
//
// `parent` of a first message is "".  `rev` increases with every change of a message, so that the
// versions of two tabs can be merged.  Nothing here knows of elements or storage.

export function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
}

export function newChat(model, settings = {}, system = "") {
    const now = Date.now();
    return {id: newId(), created: now, changed: now, title: "", model, system, settings,
            forgotten: 0, leaf: "", nodes: {}};
}

let lastCreated = 0;   // ms; messages created within one of them keep their order

// Appends a message below `parent` and shows it.
export function add(chat, parent, fields) {
    lastCreated = Math.max(Date.now(), lastCreated + 1);
    const node = {id: newId(), parent, rev: 1, created: lastCreated, content: "", ...fields};
    chat.nodes[node.id] = node;
    chat.leaf = node.id;
    chat.changed = Date.now();
    return node;
}

export function touch(chat, node) {
    node.rev++;
    chat.changed = Date.now();
}

// Marks answers without an end, for a tab that has loaded them: a reload interrupted them.
// `rev` does not grow: if another tab is writing such an answer, its next save takes precedence.
export function markInterrupted(chat) {
    for (const node of Object.values(chat.nodes))
        if (node.role === "assistant" && !node.stop)
            node.stop = "left";
}

// The messages of the shown branch, first to last.
export function path(chat) {
    const nodes = [], seen = new Set();
    let node = chat.nodes[chat.leaf];
    for (; node && !seen.has(node.id); node = chat.nodes[node.parent]) {
        seen.add(node.id);
        nodes.push(node);
    }
    return nodes.reverse();
}

const byAge = (a, b) => a.created - b.created || (a.id < b.id ? -1 : 1);

export function children(chat, parent) {
    return Object.values(chat.nodes).filter(node => node.parent === parent).sort(byAge);
}

// The children of every message: parent -> nodes.
export function families(chat) {
    const all = new Map();
    for (const node of Object.values(chat.nodes)) {
        const siblings = all.get(node.parent);
        if (siblings)
            siblings.push(node);
        else
            all.set(node.parent, [node]);
    }
    for (const siblings of all.values())
        siblings.sort(byAge);
    return all;
}

// Shows the most recent branch through this message.
export function show(chat, node) {
    for (let below = [node]; below.length > 0; below = children(chat, node.id))
        node = below[below.length - 1];
    chat.leaf = node.id;
}

// Merges two versions of a conversation; no message is lost.
export function merge(a, b) {
    const [older, newer] = a.changed <= b.changed ? [a, b] : [b, a];
    const nodes = {...older.nodes};
    for (const node of Object.values(newer.nodes))
        if (!nodes[node.id] || nodes[node.id].rev <= node.rev)
            nodes[node.id] = node;
    return {...newer, nodes};
}

export function titleOf(chat) {
    if (chat.title)
        return chat.title;
    const first = children(chat, "")[0];
    const text = first ? first.content.trim().replace(/\s+/g, " ") : "";
    const short = Array.from(text).slice(0, 60).join("");
    return text ? (short.length < text.length ? short + "…" : short) : "New conversation";
}

// ---- messages for the model ----

// The messages of the branch through `last`, without the forgotten ones.
export function messagesFor(chat, last) {
    const all = path(chat);
    const end = all.findIndex(node => node.id === last.id) + 1;
    const nLeast = last.role === "assistant" ? 2 : 1;   // an answer goes with its question
    const kept = all.slice(Math.min(chat.forgotten, Math.max(end - nLeast, 0)), end);
    const messages = chat.system ? [{role: "system", content: chat.system}] : [];
    for (const node of kept) {
        const message = {role: node.role, content: node.content};
        if (node.reasoning)
            message.reasoning_content = node.reasoning;
        if (node.role !== "assistant" || node.content || node.id === last.id)
            messages.push(message);
    }
    return messages;
}

// How many of the oldest messages to drop so that about three quarters of the context are used; at
// least two more than now.  null: the last question alone is too long.
export function forgetMore(chat, last, nTokens, nContext) {
    const all = path(chat);
    const end = all.findIndex(node => node.id === last.id) + 1;
    const sizes = all.slice(0, end).map(node => node.content.length + 16);
    const total = sizes.slice(chat.forgotten).reduce((a, b) => a + b, chat.system.length);
    let over = total * (1 - 0.75 * nContext / nTokens), n = chat.forgotten;
    for (; n < end - 1 && (over > 0 || n < chat.forgotten + 2); n++)
        over -= sizes[n];
    while (n < end - 1 && all[n].role !== "user")
        n++;
    return n > chat.forgotten && all[n].role === "user" ? n : null;
}
