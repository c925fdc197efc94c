"use strict";
// Asks for what has changed and puts it in place; what the reader has opened, scrolled or focused stays as it is.
(() => {
  const EVERY = 2000, PATIENCE = 10000;
  const page = document.getElementById("page"), silence = document.getElementById("silence");
  const shown = new Map();
  let heard = new Date();

  const remember = () => { for (const part of page.children) shown.set(part.id, part.outerHTML); };

  const keep = (old) => {
    const kept = { open: new Map(), scroll: new Map() };
    for (const one of old.querySelectorAll("details[id]")) kept.open.set(one.id, one.open);
    old.querySelectorAll("pre, .box").forEach((one, place) => {
      const atEnd = one.scrollHeight - one.clientHeight - one.scrollTop < 4;
      kept.scroll.set(one.id || one.getAttribute("aria-label") || place, [one.scrollLeft, one.scrollTop, atEnd]);
    });
    return kept;
  };

  const restore = (fresh, kept) => {
    for (const one of fresh.querySelectorAll("details[id]")) if (kept.open.has(one.id)) one.open = kept.open.get(one.id);
    fresh.querySelectorAll("pre, .box").forEach((one, place) => {
      const [left, top, atEnd] = kept.scroll.get(one.id || one.getAttribute("aria-label") || place) || [0, 0, true];
      one.scrollLeft = left;
      one.scrollTop = atEnd && one.tagName === "PRE" ? one.scrollHeight : top;
    });
  };

  const focused = (part) => {
    const one = document.activeElement;
    if (!one || !part.contains(one)) return () => null;
    const place = [...part.querySelectorAll(one.tagName)].indexOf(one);
    return (fresh) => fresh.querySelectorAll(one.tagName)[place];
  };

  const put = (text) => {
    const parts = new DOMParser().parseFromString(text, "text/html").body.children;
    const wanted = [...parts];
    for (const old of [...page.children]) if (!wanted.some((part) => part.id === old.id)) old.remove();
    wanted.forEach((part, place) => {
      const html = part.outerHTML, old = document.getElementById(part.id);
      const fresh = document.adoptNode(part);
      if (old && shown.get(part.id) === html) return;
      shown.set(part.id, html);
      if (!old) { page.insertBefore(fresh, page.children[place] || null); return; }
      const kept = keep(old), find = focused(old);
      old.replaceWith(fresh);
      restore(fresh, kept);
      const target = find(fresh);
      if (target) target.focus({ preventScroll: true });
    });
    document.title = document.getElementById("head").dataset.title;
  };

  const silent = (why) => {
    const words = `No news since ${heard.toISOString().slice(11, 19)} UTC: ${why}. What stands here is from then.`;
    if (silence.textContent !== words) silence.textContent = words;
    silence.hidden = false;
    document.documentElement.classList.add("silent");
  };

  const ask = async () => {
    if (document.hidden) return;
    let answer;
    try {
      answer = await fetch("/data", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    } catch {
      return silent("tfdeploy does not answer");
    }
    try {
      const text = await answer.text();
      if (!answer.ok) return silent(text.trim().replace(/\.$/, "") || `it answers ${answer.status}`);
      put(text);
    } catch {
      return silent("the answer broke off");
    }
    heard = new Date();
    silence.hidden = true;
    document.documentElement.classList.remove("silent");
  };

  const again = () => ask().finally(() => setTimeout(again, EVERY));
  remember();
  for (const one of page.querySelectorAll("pre")) one.scrollTop = one.scrollHeight;
  document.addEventListener("visibilitychange", () => ask());
  setTimeout(again, EVERY);
})();
