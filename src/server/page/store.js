// SPDX-License-Identifier: MIT
//
// Stores conversations in this browser's IndexedDB, shared by all tabs.
//
// Writing merges the tab's version with the stored one (tree.js) within one transaction and
// notifies the other tabs.  If the browser stores nothing, conversations last as long as the tab.
import {merge} from "./tree.js";

const NAME = "tern", STORE = "chats";

// Short texts of this browser ("local") or this tab ("session").  Storage may be disabled.
export function recall(where, name) {
    try {
        return window[where + "Storage"].getItem("tern." + name) || "";
    } catch {
        return "";
    }
}

export function remember(where, name, text) {
    try {
        window[where + "Storage"].setItem("tern." + name, text);
    } catch {
        // the banner already says that nothing is stored
    }
}

function done(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

class Memory {
    constructor() {
        this.chats = new Map();
    }

    async all() {
        return [...this.chats.values()];
    }

    async get(id) {
        return this.chats.get(id);
    }

    async put(chat) {
        this.chats.set(chat.id, structuredClone(chat));
        return chat;
    }

    async remove(id) {
        this.chats.delete(id);
    }
}

class Database {
    constructor(db) {
        this.db = db;
        this.tabs = new BroadcastChannel(NAME);
    }

    store(mode) {
        return this.db.transaction(STORE, mode).objectStore(STORE);
    }

    all() {
        return done(this.store("readonly").getAll());
    }

    get(id) {
        return done(this.store("readonly").get(id));
    }

    // Resolves to the stored version.
    put(chat) {
        return new Promise((resolve, reject) => {
            const store = this.store("readwrite"), transaction = store.transaction;
            let stored = chat;
            const old = store.get(chat.id);
            old.onsuccess = () => {
                stored = old.result ? merge(old.result, chat) : chat;
                store.put(stored);
            };
            transaction.oncomplete = () => {
                this.tabs.postMessage(chat.id);
                resolve(stored);
            };
            transaction.onabort = transaction.onerror = () => reject(transaction.error);
        });
    }

    async remove(id) {
        await done(this.store("readwrite").delete(id));
        this.tabs.postMessage(id);
    }
}

// {store, isLasting}.  onChange(id): another tab has written or removed a conversation.
export async function openStore(onChange) {
    try {
        const opening = indexedDB.open(NAME, 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, {keyPath: "id"});
        const store = new Database(await done(opening));
        store.tabs.onmessage = event => onChange(event.data);
        return {store, isLasting: true};
    } catch {
        return {store: new Memory(), isLasting: false};
    }
}
