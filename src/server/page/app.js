// SPDX-License-Identifier: MIT
//
// The page's controller: the displayed conversation, and the handlers of user actions.
//
//   stream.js    requests and events          tree.js      a conversation as data
//   markdown.js  Markdown as data             render.js    Markdown as elements
//   store.js     stored conversations         saved.js     conversations as files
//   answers.js   answers in progress          view.js      messages as elements
//   settings.js  the dialog                   sidebar.js   the list of conversations
//   words.js     numbers and errors as text
import {Answers, usedTokens} from "./answers.js";
import {icon, make} from "./render.js";
import {fileName, lastLine, read, split, write} from "./saved.js";
import {Settings, applyTheme, setTheme} from "./settings.js";
import {Sidebar} from "./sidebar.js";
import {openStore, recall, remember} from "./store.js";
import {request} from "./stream.js";
import {add, children, markInterrupted, newChat, path, show, titleOf} from "./tree.js";
import {Messages, welcome} from "./view.js";
import {contextUse} from "./words.js";

const POLL_EVERY = 2000;   // ms between attempts while the server is unreachable

const get = id => document.getElementById(id);

const page = {
    info: null,        // /page.json: {version, models, defaults}
    chats: new Map(),  // id -> conversation
    chat: null,        // the one shown
    store: null,
    key: recall("session", "key"),
};

// ---- the server ----

// The models that can chat.
function models() {
    return page.info ? page.info.models.filter(model => !model.is_embedding) : [];
}

function modelOf(chat) {
    return models().find(model => model.id === chat.model) || models()[0];
}

function say(text) {
    get("status").textContent = text;
}

function warn(text) {
    get("banner-text").textContent = text;
    get("banner").hidden = !text;
}

// Asks the user for the key.  false: none was entered.
function askKey() {
    const dialog = get("ask-key");
    if (dialog.open)
        return page.asking;
    page.asking = new Promise(resolve => {
        dialog.returnValue = "";
        dialog.addEventListener("close", () => {
            const key = get("key").value.trim();
            const isGiven = dialog.returnValue === "ok" && key !== "";
            if (isGiven)
                setKey(key);
            resolve(isGiven);
        }, {once: true});
        get("key").value = "";
        dialog.dataset.times = String(Number(dialog.dataset.times || 0) + 1);
        get("ask-key-wrong").hidden = !page.key;
        dialog.showModal();
    });
    return page.asking;
}

function setKey(key) {
    page.key = key;
    remember("session", "key", key);
    get("set-key").value = key;
}

async function connect() {
    try {
        const response = await request("/page.json", {key: page.key});
        page.info = await response.json();
        warn("");
        showModels();
    } catch (error) {
        if (error.status === 401) {
            if (await askKey())
                return connect();
            warn("The API key is missing or wrong.");
        } else if (error.status === 0) {
            isGone();
        } else {
            warn(error.message);
        }
    }
}

// Polls until the server is back.
function isGone() {
    warn("The server does not answer. Everything here is kept; start tern serve again to continue.");
    if (page.poll)
        return;
    page.poll = setInterval(async () => {
        try {
            await request("/health");
        } catch {
            return;
        }
        clearInterval(page.poll);
        page.poll = 0;
        connect();
    }, POLL_EVERY);
}

// ---- storage ----

function absorb(chat, stored) {
    for (const node of Object.values(stored.nodes))
        if (!chat.nodes[node.id] || chat.nodes[node.id].rev < node.rev)
            chat.nodes[node.id] = node;
    if (stored.changed > chat.changed) {
        const {leaf, nodes} = chat;
        Object.assign(chat, stored, {leaf, nodes});
    }
}

async function save(chat) {
    page.chats.set(chat.id, chat);
    sidebar.update();
    try {
        const stored = await page.store.put(chat);
        absorb(chat, stored);
    } catch (error) {
        warn(`This conversation could not be kept: ${error.message}. Save it as a file.`);
    }
}

// Another tab has written a conversation.
async function onOtherTab(id) {
    const stored = await page.store.get(id), chat = page.chats.get(id);
    if (!stored) {
        if (chat && !answers.running(chat)) {
            page.chats.delete(id);
            if (page.chat === chat)
                begin();
        }
    } else if (!chat) {
        page.chats.set(id, stored);
    } else {
        absorb(chat, stored);
        if (!answers.running(chat) && children(chat, chat.leaf).length > 0)
            show(chat, chat.nodes[chat.leaf]);
        if (chat === page.chat)
            update();
    }
    sidebar.update();
}

// ---- display ----

function showModels() {
    const select = get("model");
    select.replaceChildren(...models().map(model => make("option", {value: model.id}, model.id)));
    get("about").textContent = `tern ${page.info.version}`;
    update();
}

function updateMeter() {
    const model = modelOf(page.chat), nTokens = usedTokens(page.chat), meter = get("meter");
    meter.hidden = !model || nTokens === 0;
    if (meter.hidden)
        return;
    const {used, share, text} = contextUse(nTokens, model.n_ctx);
    meter.setAttribute("aria-valuenow", String(used));
    meter.setAttribute("aria-valuemax", String(model.n_ctx));
    meter.setAttribute("aria-valuetext", text);
    meter.title = `Context: ${text}`;
    get("used").textContent = text;
    get("level").style.width = `${100 * share}%`;
    meter.classList.toggle("full", share > 0.85);
}

// Updates everything except the text of the composer.
function update() {
    const {chat} = page, running = answers.running(chat), model = modelOf(chat);
    view.sync(chat, running);
    const isEmpty = !chat.leaf;
    document.body.classList.toggle("empty", isEmpty);
    get("log").querySelector(".welcome")?.remove();
    if (isEmpty)
        get("log").append(welcome(model, !!page.info));
    get("model").hidden = !model;
    get("composer").hidden = !!page.info && !model;   // nobody would answer
    if (model)
        get("model").value = model.id;
    get("system").hidden = !chat.system;
    get("system-text").textContent = chat.system;
    document.title = isEmpty ? "tern" : `${titleOf(chat)} · tern`;
    get("export").disabled = isEmpty;
    const label = running ? "Stop" : "Send";
    get("send").replaceChildren(icon(running ? "stop" : "send"));
    get("send").setAttribute("aria-label", label);
    get("send").title = running ? "Stop (Esc)" : "Send (Enter)";
    get("send").classList.toggle("stop", !!running);
    updateMeter();
    sidebar.update();
    view.follow();
}

function open(chat) {
    page.chat = chat;
    view.edited = null;
    history.replaceState(null, "", chat.leaf ? "#" + chat.id : location.pathname);
    update();
    view.toEnd();
    sidebar.close();
}

// Starts a conversation; it is stored with its first message.
function begin() {
    const last = JSON.parse(recall("local", "last") || "{}");
    open(newChat(last.model || models()[0]?.id || "", last.settings));
    get("question").focus();
}

// ---- sending messages ----

const answers = new Answers({
    key: () => page.key,
    modelOf, save, askKey, isGone,
    shows(chat, node, live) {
        if (chat !== page.chat)
            return;
        if (view.shown.has(node.id) && view.running === node.id)
            view.update(node, live);
        else
            update();
        view.follow();
    },
    ends(chat, node) {
        if (chat === page.chat)
            update();
        say(node.error || (node.stop === "stopped" ? "Stopped." : "The answer is complete."));
    },
});

function send(text) {
    const {chat} = page;
    if (!text.trim() || answers.running(chat))
        return;
    const question = add(chat, chat.leaf, {role: "user", content: text});
    if (!chat.model)
        chat.model = models()[0]?.id || "";
    history.replaceState(null, "", "#" + chat.id);
    answers.start(chat, question);
    view.toEnd();
}

const view = new Messages(get("log"), get("messages"), get("to-end"), {
    async edit(node, text) {
        const {chat} = page;
        await answers.stop(chat);
        if (node.role === "user") {
            answers.start(chat, add(chat, node.parent, {role: "user", content: text}));
        } else {
            add(chat, node.parent, {role: node.role, content: text, reasoning: node.reasoning,
                                    model: node.model, stop: "edited"});
            save(chat);
        }
        update();
    },
    regenerate(node) {
        const {chat} = page, question = chat.nodes[node.parent];
        if (question && !answers.running(chat))
            answers.start(chat, question, node.content ? undefined : node);
    },
    resume(node) {
        answers.resume(page.chat, node);
    },
    openSettings,
    async askKey(node) {
        if (await askKey())
            view.actions.regenerate(node);
    },
    show(node) {
        show(page.chat, node);
        page.chat.changed = Date.now();
        save(page.chat);
        update();
    },
});

// ---- files ----

async function exportChat() {
    const {chat} = page, model = models().find(one => one.id === chat.model);
    try {
        if (!model)
            throw new Error(`its model, ${chat.model}, is not served here.`);
        const text = write(chat, path(chat), model);
        const response = await request("/checksum", {key: page.key, method: "POST", body: text});
        const {checksum} = await response.json();
        const url = URL.createObjectURL(new Blob([text, lastLine(checksum)],
                                                 {type: "application/json"}));
        make("a", {href: url, download: fileName(titleOf(chat))}).click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
        say("Saved.");
    } catch (error) {
        warn(`The conversation could not be saved: ${error.message}`);
    }
}

async function importFile(file) {
    try {
        const bytes = new Uint8Array(await file.arrayBuffer());
        const {body, checksum} = split(bytes);
        const response = await request("/checksum", {key: page.key, method: "POST", body});
        if ((await response.json()).checksum !== checksum)
            throw new Error("This file is damaged: " +
                            `the checksum does not match its ${bytes.length} bytes.`);
        const {messages, model, settings, system, ...rest} = read(bytes, models());
        const chat = {...newChat(model, settings, system), ...rest};
        for (const {reasoning_content: reasoning, content = "", ...message} of messages)
            add(chat, chat.leaf, {...message, content, reasoning,
                                  ...(message.role === "assistant" ? {stop: "stop", model} : {})});
        await save(chat);
        open(chat);
        say(`${messages.length} messages are loaded.`);
    } catch (error) {
        warn(`${file.name}: ${error.message}`);
    }
}

// ---- event handlers ----

const sidebar = new Sidebar({
    chats: () => page.chats, current: () => page.chat, open, begin,
    isRunning: chat => !!answers.running(chat),
    async remove(chat) {
        answers.stop(chat);
        page.chats.delete(chat.id);
        await page.store.remove(chat.id);
        if (chat === page.chat)
            begin();
        sidebar.update();
    },
});

const settings = new Settings(() => {
    const {model, settings: values} = page.chat;
    remember("local", "last", JSON.stringify({model, settings: values}));
    if (page.chat.leaf)
        save(page.chat);
    update();
});

function openSettings() {
    const model = modelOf(page.chat);
    settings.open(page.chat, {...page.info?.defaults, max_tokens: model?.default_new_tokens});
}

function fitQuestion() {
    const area = get("question");
    area.style.height = "auto";
    area.style.height = Math.min(area.scrollHeight, innerHeight * 0.4) + "px";
    remember("session", "draft", area.value);
}

function submit() {
    if (answers.running(page.chat)) {
        answers.stop(page.chat);
        return;
    }
    const text = get("question").value;
    get("question").value = text.trim() ? "" : text;
    fitQuestion();
    send(text);
}

function onQuestionKey(event) {
    if (event.isComposing)
        return;
    const isTouched = matchMedia("(hover: none) and (pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey &&
        (!isTouched || event.ctrlKey)) {   // phones have no Shift+Enter
        event.preventDefault();
        if (!answers.running(page.chat))
            submit();
    } else if (event.key === "ArrowUp" && event.target.value === "") {
        const mine = path(page.chat).filter(node => node.role === "user");
        if (mine.length > 0) {
            event.preventDefault();
            view.edit(mine[mine.length - 1]);
        }
    }
}

function onKey(event) {
    const isTyping = event.target.closest("input, textarea, select, dialog");
    if (event.key === "Escape" && !event.target.closest("dialog")) {
        answers.stop(page.chat);
        sidebar.close();
    } else if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "o") {
        event.preventDefault();
        begin();
    } else if (event.altKey && event.code === "KeyR") {
        event.preventDefault();
        const last = path(page.chat).pop();
        if (last?.role === "assistant")
            view.actions.regenerate(last);
    } else if (event.key === "/" && !isTyping) {
        event.preventDefault();
        get("question").focus();
    }
}

function wire() {
    const labels = {new: ["plus", "New conversation"],
                    import: ["open", "Open a saved conversation"]};
    for (const [id, [name, text]] of Object.entries(labels))
        get(id).append(icon(name), text);
    const icons = {menu: "menu", export: "save", adjust: "adjust", "settings-close": "close",
                   "to-end": "down"};
    for (const [id, name] of Object.entries(icons))
        get(id).append(icon(name));
    get("new").addEventListener("click", begin);
    get("import").addEventListener("click", () => get("file").click());
    get("file").addEventListener("change", event => {
        [...event.target.files].forEach(importFile);
        event.target.value = "";
    });
    get("export").addEventListener("click", exportChat);
    get("adjust").addEventListener("click", openSettings);
    get("system").addEventListener("click", openSettings);
    get("to-end").addEventListener("click", () => view.toEnd());
    get("banner-retry").addEventListener("click", connect);
    get("set-theme").addEventListener("change", event => setTheme(event.target.value));
    get("set-key").addEventListener("change", event => {
        setKey(event.target.value.trim());
        connect();
    });
    get("model").addEventListener("change", event => {
        settings.chat = page.chat;
        settings.change({model: event.target.value});
    });
    get("composer").addEventListener("submit", event => {
        event.preventDefault();
        submit();
    });
    get("question").addEventListener("input", fitQuestion);
    get("question").addEventListener("keydown", onQuestionKey);
    document.addEventListener("keydown", onKey);
    addEventListener("hashchange", () => {
        const chat = page.chats.get(location.hash.slice(1));
        if (chat && chat !== page.chat)
            open(chat);
    });
    addEventListener("pagehide", () => answers.leave());
}

async function main() {
    applyTheme();
    wire();
    get("set-key").value = page.key;
    get("question").value = recall("session", "draft");
    const {store, isLasting} = await openStore(onOtherTab);
    page.store = store;
    if (!isLasting)
        get("place").textContent = "This browser keeps nothing: save conversations as files.";
    for (const chat of await store.all()) {
        markInterrupted(chat);
        page.chats.set(chat.id, chat);
    }
    const asked = page.chats.get(location.hash.slice(1));
    if (asked)
        open(asked);
    else
        begin();
    fitQuestion();
    get("question").focus();
    await connect();
    document.documentElement.dataset.ready = "yes";
}

main();

