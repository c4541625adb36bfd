// SPDX-License-Identifier: MIT
//
// The messages of the shown branch, as elements.
//
// `actions` are the callbacks for user actions: {edit(node, text), regenerate(node), resume(node),
// show(node), openSettings(), askKey(node)}.
import {copyButton, iconButton, make, renderInto} from "./render.js";
import {families, path} from "./tree.js";
import {figures, greeting} from "./words.js";

const NEAR_END = 80;   // px: a view scrolled down this close to the end follows a growing answer

const STOPS = {
    length: "The answer is cut off here: it has reached its greatest length.",
    context: "The answer is cut off here: the context is full.",
    stopped: "You stopped this answer.",
    left: "This answer was interrupted: the page was closed or loaded again.",
};

// Is there text that the model can continue?
export function canContinue(node) {
    const isCut = node.error ? node.action === "again" : node.stop in STOPS;
    return node.role === "assistant" && isCut && !!(node.content || node.reasoning);
}

function seconds(ms) {
    return ms < 10000 ? (ms / 1000).toFixed(1) + " s" : Math.round(ms / 1000) + " s";
}

const belowView = log => log.scrollHeight - log.scrollTop - log.clientHeight;   // px

// Whether a view that has been scrolled from `lastTop` follows the end.  Growing content moves the
// end away without scrolling, so only scrolling up stops following.
export function followsAfterScroll(follows, log, lastTop) {
    if (log.scrollTop < lastTop)
        return belowView(log) < 1;   // the content has become shorter
    return follows || belowView(log) < NEAR_END;
}

export class Messages {
    constructor(log, container, endButton, actions) {
        this.log = log;
        this.container = container;
        this.endButton = endButton;
        this.follows = true;      // the view stays at the end
        this.lastTop = 0;
        log.addEventListener("scroll", () => this.onScroll());
        // The height of a message is an estimate until it comes near the window.
        const sizes = new ResizeObserver(() => this.follow());
        sizes.observe(log);
        sizes.observe(container);
        this.actions = actions;
        this.shown = new Map();   // id of a message -> its element and parts
        this.edited = null;       // id of the message that is being edited
    }

    onScroll() {
        this.follows = followsAfterScroll(this.follows, this.log, this.lastTop);
        this.lastTop = this.log.scrollTop;
        this.showEndButton();
    }

    showEndButton() {
        this.endButton.hidden = this.follows || belowView(this.log) < NEAR_END;
    }

    follow() {
        if (this.follows)
            this.log.scrollTop = this.log.scrollHeight;
        this.showEndButton();
    }

    toEnd() {
        this.follows = true;
        this.follow();
    }

    // Shows this conversation; `running`: id of the message in progress.
    sync(chat, running) {
        const nodes = path(chat), all = families(chat), ids = new Set(nodes.map(node => node.id));
        this.chat = chat;
        this.running = running;
        for (const [id, part] of this.shown)
            if (!ids.has(id)) {
                part.element.remove();
                this.shown.delete(id);
            }
        nodes.forEach((node, i) => {
            const element = this.part(node, all.get(node.parent), i < chat.forgotten).element;
            if (this.container.children[i] !== element)
                this.container.insertBefore(element, this.container.children[i] || null);
        });
    }

    part(node, siblings, isForgotten) {
        const state = [node.rev, node.id === this.running, siblings.length, siblings.indexOf(node),
                       isForgotten, this.edited === node.id, node.id === this.chat.leaf].join();
        let part = this.shown.get(node.id);
        if (!part) {
            part = {element: make("article", {class: `message ${node.role}`})};
            this.shown.set(node.id, part);
        }
        if (part.state !== state) {
            part.state = state;
            part.element.classList.toggle("forgotten", isForgotten);
            this.fill(part, node, siblings);
        }
        return part;
    }

    fill(part, node, siblings) {
        const isRunning = node.id === this.running;
        const author = node.role === "user" ? "You" : node.role === "assistant"
            ? node.model || "The model" : node.role;
        part.body = part.body || make("div", {class: "body", dir: "auto"});
        part.thoughts = part.thoughts || make("div", {class: "thoughts", dir: "auto"});
        part.think = part.think || make("details", {class: "think"},
                                        make("summary", {}), part.thoughts);
        part.note = make("p", {class: "note"});
        part.figures = make("span", {class: "figures"});
        part.element.setAttribute("aria-busy", String(isRunning));
        part.element.replaceChildren(
            make("h2", {class: "unseen"}, author), part.think,
            this.edited === node.id ? this.editor(node) : part.body, part.note,
            isRunning ? part.figures : this.tools(node, siblings, part.figures));
        this.update(node);
    }

    // Updates the text only, while it grows.
    update(node, live) {
        const part = this.shown.get(node.id);
        if (!part)
            return;
        const isRunning = node.id === this.running;
        if (node.role === "assistant")
            renderInto(part.body, node.content);
        else
            part.body.textContent = node.content;
        part.think.hidden = !node.reasoning;
        if (node.reasoning) {
            part.think.firstElementChild.textContent = isRunning && !node.content ? "Thinking …"
                : node.thinkingMs ? `Thought for ${seconds(node.thinkingMs)}` : "Thoughts";
            renderInto(part.thoughts, node.reasoning);
        }
        part.body.classList.toggle("waiting", isRunning && !node.content && !node.reasoning);
        part.body.classList.toggle("writing", isRunning && !!node.content);
        part.figures.textContent = live ||
            (node.usage ? figures(node.usage.completion_tokens, node.ms) : "");
        this.showNote(part, node, isRunning);
    }

    showNote(part, node, isRunning) {
        const text = isRunning ? "" : node.error || STOPS[node.stop] || "";
        part.note.textContent = text;
        part.note.hidden = !text;
        part.note.classList.toggle("error", !!node.error && !isRunning);
        const remedy = text && this.remedy(node);
        if (remedy)
            part.note.append(" ", remedy);
    }

    // The button that can help after an error or a cut-off answer; null: none.
    remedy(node) {
        const {actions} = this;
        const isContinued = canContinue(node) && node.id === this.chat.leaf;
        if (!node.error && !isContinued)
            return null;
        const [label, onclick] = (isContinued && ["Continue", () => actions.resume(node)]) || {
            edit: ["Edit the message", () => this.edit(this.chat.nodes[node.parent])],
            settings: ["Open the settings", () => actions.openSettings()],
            key: ["Enter the key", () => actions.askKey(node)],
        }[node.action] || ["Try again", () => actions.regenerate(node)];
        return make("button", {type: "button", onclick}, label);
    }

    tools(node, siblings, figuresElement) {
        const {actions} = this, i = siblings.indexOf(node);
        const what = node.role === "assistant" ? "answer" : "message";
        const tools = make("div", {class: "tools"});
        if (siblings.length > 1)
            tools.append(make("span", {class: "branch", role: "group", "aria-label": "Versions"},
                iconButton("left", "Previous version", () => actions.show(siblings[i - 1]),
                           {disabled: i === 0}),
                `${i + 1} / ${siblings.length}`,
                iconButton("right", "Next version", () => actions.show(siblings[i + 1]),
                           {disabled: i === siblings.length - 1})));
        if (node.content)
            tools.append(copyButton(`Copy this ${what}`, () => node.content));
        tools.append(iconButton("edit", `Edit this ${what}`, () => this.edit(node)));
        if (node.role === "assistant")
            tools.append(iconButton("again", "Another answer", () => actions.regenerate(node)),
                         figuresElement);
        return tools;
    }

    // ---- editing ----

    edit(node) {
        this.edited = node.id;
        this.sync(this.chat, this.running);
        const area = this.shown.get(node.id).element.querySelector("textarea");
        area.style.height = Math.min(area.scrollHeight + 4, 400) + "px";
        area.focus();
    }

    endEdit() {
        const part = this.shown.get(this.edited);
        this.edited = null;
        this.sync(this.chat, this.running);
        if (part)
            part.element.querySelector("button[aria-label^=Edit]")?.focus();
    }

    editor(node) {
        const area = make("textarea", {dir: "auto", rows: "3",
                                       "aria-label": "Text of the message"});
        const save = () => {
            const text = area.value;
            this.endEdit();
            if (text.trim() && text !== node.content)
                this.actions.edit(node, text);
        };
        area.value = node.content;
        area.addEventListener("keydown", event => {
            if (event.isComposing)
                return;
            if (event.key === "Escape") {
                event.stopPropagation();
                this.endEdit();
            } else if (event.key === "Enter" && !event.shiftKey &&
                       (node.role === "user" || event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                save();
            }
        });
        return make("div", {class: "editor"}, area, make("div", {class: "row"},
            make("button", {type: "button", onclick: () => this.endEdit()}, "Cancel"),
            make("button", {type: "button", class: "main", onclick: save},
                 node.role === "user" ? "Send again" : "Keep")));
    }
}

// The content of an empty conversation.
export function welcome(model, isConnected) {
    const {title, text, command} = greeting(model, isConnected);
    const mark = document.querySelector(".brand svg").cloneNode(true);
    return make("div", {class: "welcome"}, mark, make("p", {class: "big"}, title),
                make("p", {}, text),
                command ? make("p", {}, make("code", {dir: "ltr"}, command)) : null);
}

