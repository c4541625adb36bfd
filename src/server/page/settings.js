// SPDX-License-Identifier: MIT
//
// The settings dialog.
//
// An empty field means the default, which it shows as a placeholder; values belong to the
// conversation.  New conversations start with the last settings, without the system text.
import {make} from "./render.js";
import {recall, remember} from "./store.js";
import {titleOf} from "./tree.js";

const N_SIMPLE = 2;   // fields shown at first; the others are folded
const FIELDS = [
    {key: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05,
     hint: "0: always the likeliest token"},
    {key: "max_tokens", label: "Longest answer", min: 1, max: 1000000, step: 1,
     hint: "tokens"},
    {key: "top_p", label: "Top p", min: 0, max: 1, step: 0.01,
     hint: "share of likely tokens kept"},
    {key: "top_k", label: "Top k", min: 0, max: 1000, step: 1,
     hint: "number of tokens kept; 0: all"},
    {key: "min_p", label: "Min p", min: 0, max: 1, step: 0.01,
     hint: "least share of the likeliest"},
    {key: "repeat_penalty", label: "Repeat penalty", min: 0.01, max: 100, step: 0.01,
     hint: "1: none"},
    {key: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.1,
     hint: "0: none"},
    {key: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: 0.1,
     hint: "0: none"},
    {key: "repeat_last_n", label: "Penalties look back", min: 0, max: 65536, step: 1,
     hint: "tokens"},
    {key: "seed", label: "Seed", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1,
     hint: "the same one gives the same answer"},
];

const get = id => document.getElementById(id);

// Parses a field: {value}, undefined for an empty one, or {problem} if it is invalid.
export function readNumber(field, text) {
    const value = Number(text);
    if (text.trim() === "")
        return {};
    if (!Number.isFinite(value) || (field.step === 1 && !Number.isInteger(value)))
        return {problem: field.step === 1 ? "must be a whole number" : "must be a number"};
    if (value < field.min || value > field.max)
        return {problem: field.max === Number.MAX_SAFE_INTEGER ? `must be at least ${field.min}`
            : `must be from ${field.min} to ${field.max}`};
    return {value};
}

export class Settings {
    // onChange(): called after a setting of the conversation changed.
    constructor(onChange) {
        this.onChange = onChange;
        this.inputs = FIELDS.map((field, i) => {
            const input = make("input", {type: "number", min: field.min, max: field.max,
                                         step: field.step === 1 ? 1 : "any", inputmode: "decimal"});
            input.hint = make("small", {}, field.hint);
            input.addEventListener("change", () => this.read(field, input));
            get(i < N_SIMPLE ? "fields" : "more-fields").append(
                make("label", {}, make("span", {}, field.label), input, input.hint));
            return input;
        });
        get("set-title").addEventListener("change", event => this.change(
            {title: event.target.value.trim()}));
        get("set-system").addEventListener("change", event => this.change(
            {system: event.target.value.trim()}));
        get("set-stop").addEventListener("change", event => {
            const stop = event.target.value.split("\n").filter(line => line !== "").slice(0, 4);
            this.set("stop", stop.length > 0 ? stop : undefined);
        });
        get("set-think").addEventListener("change", event => {
            this.set("reasoning_effort", event.target.value || undefined);
        });
        get("reset").addEventListener("click", () => {
            this.change({settings: {}});
            this.fill();
        });
    }

    // An out-of-range number stays in its field with an explanation, and changes nothing.
    read(field, input) {
        const text = input.validity.badInput ? "?" : input.value;
        const {value, problem} = readNumber(field, text);
        this.showProblem(field, input, problem);
        if (!problem)
            this.set(field.key, value);
    }

    showProblem(field, input, problem) {
        input.hint.textContent = problem || field.hint;
        input.hint.classList.toggle("refused", !!problem);
        input.setAttribute("aria-invalid", String(!!problem));
    }

    // undefined restores the default.
    set(key, value) {
        const settings = {...this.chat.settings};
        delete settings[key];
        if (value !== undefined)
            settings[key] = value;
        this.change({settings});
    }

    change(fields) {
        Object.assign(this.chat, fields);
        this.chat.changed = Date.now();
        this.onChange();
    }

    fill() {
        const {chat, defaults} = this;
        get("set-title").value = chat.title;
        get("set-title").placeholder = titleOf(chat);
        get("set-system").value = chat.system;
        get("set-stop").value = (chat.settings.stop || []).join("\n");
        get("set-think").value = chat.settings.reasoning_effort || "";
        get("more").open = FIELDS.slice(N_SIMPLE).some(({key}) => key in chat.settings) ||
            "stop" in chat.settings;
        FIELDS.forEach((field, i) => {
            this.inputs[i].value = chat.settings[field.key] ?? "";
            this.showProblem(field, this.inputs[i]);
            this.inputs[i].placeholder = defaults[field.key] ?? "by chance";
        });
    }

    // `defaults`: of the server and the model.
    open(chat, defaults) {
        this.chat = chat;
        this.defaults = defaults;
        this.fill();
        get("settings").showModal();
    }
}

// ---- settings of this browser ----

export function applyTheme() {
    const theme = recall("local", "theme");
    document.documentElement.dataset.theme = theme;
    get("set-theme").value = theme;
}

export function setTheme(theme) {
    remember("local", "theme", theme);
    applyTheme();
}
