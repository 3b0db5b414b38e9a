// SPDX-License-Identifier: Apache-2.0
// Works offline: what was loaded once is kept. The network goes first, so that a new version is seen.
"use strict";
const kept = "horus";
const first = ["./", "page.css", "page.js", "icon.svg"]; // the page itself keeps the rest
addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(kept).then((cache) => cache.addAll(first)));
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  event.respondWith((async () => {
    const cache = await caches.open(kept);
    try {
      const fresh = await fetch(event.request);
      if (fresh.ok) await cache.put(event.request, fresh.clone());
      return fresh;
    } catch (error) {
      const old = await cache.match(event.request, { ignoreSearch: true });
      if (old) return old;
      throw error;
    }
  })());
});
