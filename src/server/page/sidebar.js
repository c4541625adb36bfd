// SPDX-License-Identifier: MIT
//
// The list of conversations; a drawer on narrow screens.
import {iconButton, make} from "./render.js";
import {titleOf} from "./tree.js";

const get = id => document.getElementById(id);

export class Sidebar {
    // `app`: {chats(), current(), isRunning(chat), open(chat), begin(), remove(chat)}
    constructor(app) {
        this.app = app;
        this.rows = new Map();   // id of a conversation -> its row
        get("menu").addEventListener("click", () => this.toggle());
        get("shade").addEventListener("click", () => this.close());
    }

    toggle(isOpen = !document.body.classList.contains("side-open")) {
        document.body.classList.toggle("side-open", isOpen);
        get("shade").hidden = !isOpen;
        get("menu").setAttribute("aria-expanded", String(isOpen));
        if (isOpen)
            get("new").focus();
    }

    close() {
        this.toggle(false);
    }

    row(chat) {
        const title = make("span", {dir: "auto"});
        const button = make("button", {type: "button", class: "chat",
            onclick: () => this.app.open(this.app.chats().get(chat.id))}, title);
        const remove = iconButton("delete", "Delete", () =>
            this.askRemove(this.app.chats().get(chat.id)));
        return {element: make("li", {}, button, remove), title, button, remove};
    }

    update() {
        const chats = [...this.app.chats().values()].sort((a, b) => b.changed - a.changed);
        const list = get("chats"), current = this.app.current();
        for (const [id, row] of this.rows)
            if (!this.app.chats().has(id)) {
                row.element.remove();
                this.rows.delete(id);
            }
        chats.forEach((chat, i) => {
            const row = this.rows.get(chat.id) || this.row(chat);
            const title = titleOf(chat);
            this.rows.set(chat.id, row);
            row.title.textContent = title;
            row.button.title = title;
            row.remove.setAttribute("aria-label", `Delete “${title}”`);
            row.element.classList.toggle("running", this.app.isRunning(chat));
            if (chat === current)
                row.button.setAttribute("aria-current", "page");
            else
                row.button.removeAttribute("aria-current");
            if (list.children[i] !== row.element)
                list.insertBefore(row.element, list.children[i] || null);
        });
    }

    askRemove(chat) {
        const dialog = get("ask-delete");
        get("ask-delete-what").textContent = titleOf(chat);
        dialog.returnValue = "";
        dialog.addEventListener("close", () => {
            if (dialog.returnValue === "delete")
                this.app.remove(chat);
        }, {once: true});
        dialog.showModal();
    }
}
