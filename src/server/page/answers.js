// SPDX-License-Identifier: MIT
//
// Answers in progress: at most one per conversation, including conversations that are not shown.
import {Refusal, ask} from "./stream.js";
import {add, forgetMore, messagesFor, path, touch} from "./tree.js";
import {explain, figures, overlong, readingProgress, speed} from "./words.js";

const SAVE_EVERY = 1500;   // ms between saves while an answer grows

// `app`: {key(), modelOf(chat), save(chat), shows(chat, node, live), ends(chat, node), askKey(),
//         isGone()}
export class Answers {
    constructor(app) {
        this.app = app;
        this.runs = new Map();   // id of a conversation -> {node, controller}
    }

    running(chat) {
        return this.runs.get(chat.id)?.node.id;
    }

    // Resolves when the answer has ended.
    stop(chat) {
        const run = this.runs.get(chat.id);
        run?.controller.abort();
        return run?.ended;
    }

    // Marks running answers as interrupted and saves their text when the tab is closed.
    leave() {
        for (const {chat, node} of this.runs.values()) {
            node.stop = "left";
            touch(chat, node);
            this.app.save(chat);
        }
    }

    // Answers `question`, into `node` (an answer that failed) or a new node.
    start(chat, question, node) {
        if (this.runs.has(chat.id))
            return;
        const model = this.app.modelOf(chat);
        node = node || add(chat, question.id, {role: "assistant"});
        chat.model = model?.id || chat.model;
        Object.assign(node, {content: "", reasoning: "", model: chat.model});
        delete node.usage;
        delete node.ms;
        this.#begin(chat, question, node);
    }

    // Continues `node`, the last message: an answer that was cut off.
    resume(chat, node) {
        if (!this.runs.has(chat.id))
            this.#begin(chat, node, node);
    }

    // `last`: the last message sent to the model.
    #begin(chat, last, node) {
        delete node.error;
        delete node.action;
        delete node.stop;
        chat.leaf = node.id;
        touch(chat, node);
        const run = {chat, node, controller: new AbortController(), text: node.content,
                     thought: node.reasoning || "", n: 0, before: {
                         n: node.usage?.completion_tokens || 0, ms: node.ms || 0}};
        this.runs.set(chat.id, run);
        this.app.save(chat);
        this.app.shows(chat, node, "");
        run.ended = this.#run(run, last);
    }

    async #run(run, last) {
        try {
            await this.#askUntilItFits(run, last);
        } catch (error) {
            this.#fail(run, error);
        }
        this.#finish(run);
    }

    #body(chat, last, model) {
        const messages = messagesFor(chat, last);
        const body = {...chat.settings, model: model.id, stream: true,
                      stream_options: {include_usage: true}};
        if (model.has_chat)
            return {...body, messages, return_progress: true,
                    ...(last.role === "assistant" && {continue_final_message: true})};
        return {...body, prompt: messages.map(message => message.content).join("")};
    }

    // When the context is full, the oldest messages are dropped until the rest fits.
    async #askUntilItFits(run, last) {
        for (;;) {
            const {chat, controller} = run, model = this.app.modelOf(chat);
            if (!model)
                throw new Refusal(0, "The server does not answer.");
            try {
                const where = model.has_chat ? "/v1/chat/completions" : "/v1/completions";
                await ask(where, this.#body(chat, last, model), {
                    key: this.app.key(), signal: controller.signal,
                    onEvent: event => this.#take(run, event)});
                return;
            } catch (error) {
                const sizes = overlong(error);
                if (error.status === 401 && await this.app.askKey())
                    continue;
                const n = sizes && forgetMore(chat, last, sizes[1], sizes[0]);
                if (!n)
                    throw error;
                chat.forgotten = n;
            }
        }
    }

    #take(run, event) {
        const now = performance.now(), choice = event.choices?.[0], {node} = run;
        if (event.usage)
            node.usage = {...event.usage,
                          completion_tokens: run.before.n + event.usage.completion_tokens};
        if (event.prompt_progress && !run.n)
            this.app.shows(run.chat, run.node, readingProgress(event.prompt_progress));
        if (!choice)
            return;
        const thought = choice.delta?.reasoning_content || "";
        const text = choice.delta?.content || choice.text || "";
        if (choice.finish_reason)
            node.stop = choice.finish_reason;
        if (!thought && !text)
            return;
        run.first = run.first || now;
        run.last = now;
        run.n++;
        run.thought += thought;
        run.text += text;
        if (!run.frame)
            run.frame = requestAnimationFrame(() => this.#show(run));
        if (document.hidden)   // a hidden page gets no animation frames
            this.#read(run);
        if (now - (run.saved || run.first) > SAVE_EVERY) {
            run.saved = now;
            this.#read(run);
            this.app.save(run.chat);
        }
    }

    // Splits the text so far into reasoning and answer.
    #read(run) {
        const {node} = run;
        node.reasoning = run.thought;
        node.content = run.text;
        if (node.reasoning && node.content && !node.thinkingMs && run.first)
            node.thinkingMs = Math.round(run.last - run.first);
        touch(run.chat, node);
    }

    #show(run) {
        run.frame = 0;
        if (!this.runs.has(run.chat.id))
            return;
        this.#read(run);
        const ms = run.last - run.first;
        this.app.shows(run.chat, run.node, speed(run.n, ms) && figures(run.n, ms));
    }

    #fail(run, error) {
        if (error.name === "AbortError") {
            run.node.stop = "stopped";
            return;
        }
        run.node.stop = "error";
        const {text, action} = explain(error, !!run.chat.system, !!(run.text || run.thought));
        Object.assign(run.node, {error: text, action});
        if (error.status === 0)
            this.app.isGone();
    }

    #finish(run) {
        const {chat, node} = run, model = this.app.modelOf(chat);
        this.#read(run);
        if (run.first)
            node.ms = run.before.ms + Math.round(run.last - run.first);
        if (node.stop === "length" && model && node.usage?.total_tokens >= model.n_ctx)
            node.stop = "context";
        this.runs.delete(chat.id);
        this.app.save(chat);
        this.app.ends(chat, node);
    }
}

// Context tokens after the last answer that reports them; 0: unknown.
export function usedTokens(chat) {
    const nodes = path(chat).filter(node => node.usage);
    return nodes.length > 0 ? nodes[nodes.length - 1].usage.total_tokens : 0;
}
