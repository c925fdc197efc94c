"use strict";
// Requests the content every two seconds and replaces what has changed. What is unfolded, scrolled or focused stays so.
(() => {
  const INTERVAL = 2000, TIMEOUT = 10000;
  const page = document.getElementById("page"), silence = document.getElementById("silence");
  const shown = new Map();
  let updated = new Date();

  const remember = () => { for (const part of page.children) shown.set(part.id, part.outerHTML); };

  const saveState = (old) => {
    const state = { open: new Map(), scroll: new Map() };
    for (const node of old.querySelectorAll("details[id]")) state.open.set(node.id, node.open);
    old.querySelectorAll("pre, .box").forEach((node, place) => {
      const atEnd = node.scrollHeight - node.clientHeight - node.scrollTop < 4;
      state.scroll.set(node.id || node.getAttribute("aria-label") || place, [node.scrollLeft, node.scrollTop, atEnd]);
    });
    return state;
  };

  const restoreState = (fresh, state) => {
    for (const node of fresh.querySelectorAll("details[id]")) if (state.open.has(node.id)) node.open = state.open.get(node.id);
    fresh.querySelectorAll("pre, .box").forEach((node, place) => {
      const [left, top, atEnd] = state.scroll.get(node.id || node.getAttribute("aria-label") || place) || [0, 0, true];
      node.scrollLeft = left;
      node.scrollTop = atEnd && node.tagName === "PRE" ? node.scrollHeight : top;
    });
  };

  const focused = (part) => {
    const node = document.activeElement;
    if (!node || !part.contains(node)) return () => null;
    const place = [...part.querySelectorAll(node.tagName)].indexOf(node);
    return (fresh) => fresh.querySelectorAll(node.tagName)[place];
  };

  const update = (text) => {
    const parts = new DOMParser().parseFromString(text, "text/html").body.children;
    const wanted = [...parts];
    for (const old of [...page.children]) if (!wanted.some((part) => part.id === old.id)) old.remove();
    wanted.forEach((part, place) => {
      const html = part.outerHTML, old = document.getElementById(part.id);
      const fresh = document.adoptNode(part);
      if (old && shown.get(part.id) === html) return;
      shown.set(part.id, html);
      if (!old) { page.insertBefore(fresh, page.children[place] || null); return; }
      const state = saveState(old), find = focused(old);
      old.replaceWith(fresh);
      restoreState(fresh, state);
      const target = find(fresh);
      if (target) target.focus({ preventScroll: true });
    });
    document.title = document.getElementById("head").dataset.title;
  };

  const showSilence = (reason) => {
    const message = `No news since ${updated.toISOString().slice(11, 19)} UTC: ${reason}. This page shows the state at that time.`;
    if (silence.textContent !== message) silence.textContent = message;
    silence.hidden = false;
    document.documentElement.classList.add("silent");
  };

  const request = async () => {
    if (document.hidden) return;
    let response;
    try {
      response = await fetch("data", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
    } catch {
      return showSilence("tfdeploy does not respond");
    }
    try {
      const text = await response.text();
      if (!response.ok) return showSilence(text.trim().replace(/\.$/, "") || `its status is ${response.status}`);
      update(text);
    } catch {
      return showSilence("the response is incomplete");
    }
    updated = new Date();
    silence.hidden = true;
    document.documentElement.classList.remove("silent");
  };

  const poll = () => request().finally(() => setTimeout(poll, INTERVAL));
  remember();
  for (const node of page.querySelectorAll("pre")) node.scrollTop = node.scrollHeight;
  document.addEventListener("visibilitychange", () => request());
  setTimeout(poll, INTERVAL);
})();
