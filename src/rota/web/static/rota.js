// What pages do beyond plain HTML. Everything can be read, and every single action works, without it.
(() => {
  "use strict";
  const $ = (what, where = document) => where.querySelector(what);
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const kept = (name, value) => {
    try { return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value); } catch { return null; }
  };
  document.documentElement.classList.add("js");
  const root = (document.body.dataset.root || "/").replace(/\/$/, "");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  if ($("#zone")) $("#zone").textContent = zone;

  // Times: relative words stay true while the page is open; titles tell both clocks.
  const span = (seconds) => {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) if (seconds >= size) return Math.floor(seconds / size) + unit;
    return Math.round(seconds) + "s";
  };
  const tickTimes = () => all("time[datetime]").forEach((time) => {
    const at = new Date(time.dateTime), passed = (Date.now() - at) / 1000;
    if (Number.isNaN(passed)) return;
    if (!("plain" in time.dataset)) time.textContent = Math.abs(passed) < 1 ? "now" : passed > 0 ? span(passed) + " ago" : "in " + span(-passed);
    time.title = at.toLocaleString(undefined, { timeZoneName: "short" }) + "\n" + at.toISOString();
  });
  setInterval(tickTimes, 5000);

  let said = 0;
  const announce = (words) => {
    if (Date.now() - said < 10000) return;
    said = Date.now();
    $("#announce").textContent = words;
  };

  // Live: events make the page fetch itself and lay the new one over the old. Ticked rows and open questions hold it still.
  const wire = $("#wire"), lamp = $("#live"), rate = $("#rate");
  const live = { every: Number(kept("rota.rate") ?? 1), last: 0, due: null, busy: false, errors: 0, poll: null };
  const typing = (at) => at && (at.matches("input:not([type=checkbox]), textarea, select") || at.isContentEditable);
  const still = () => !window.htmx || document.hidden || live.every === 0 || $("dialog[open]")
    || $("#page [data-tick]:checked") || (typing(document.activeElement) && $("#page").contains(document.activeElement)) || $("#page [data-still]");
  const refresh = async () => {
    clearTimeout(live.due);
    live.due = null;
    // What cannot be shown now is owed: look again in a moment.
    if (still() || (live.busy && Date.now() - live.last < 8000)) { if (live.every && window.htmx) live.due = setTimeout(refresh, 500); return; }
    live.busy = true;
    live.last = Date.now();
    try { // with no session, HX-Redirect leads to the door
      await htmx.ajax("GET", location.href, { source: document.body, target: "#page", select: "#page", swap: "outerMorph" });
    } catch { /* the next event tries again */ }
    live.busy = false;
  };
  const stir = () => {
    if (live.due || live.every === 0) return;
    live.due = setTimeout(refresh, Math.max(live.every * 1000 - (Date.now() - live.last), 0));
  };
  const polling = (on) => {
    clearInterval(live.poll);
    live.poll = on ? setInterval(stir, 5000) : null;
    shown();
  };
  const shown = () => {
    lamp.dataset.how = $("#live-word").textContent = !live.every ? "paused" : live.poll ? "polling" : "live";
  };
  if (wire && rate) {
    rate.value = String(live.every);
    rate.addEventListener("change", () => { live.every = Number(rate.value); kept("rota.rate", live.every); shown(); stir(); });
    wire.addEventListener("jobs-changed", stir);
    wire.addEventListener("resync", () => { live.errors = 0; polling(false); live.last ||= Date.now(); stir(); });
    document.addEventListener("htmx:sse:error", () => { if (++live.errors >= 2) polling(true); });
    document.addEventListener("htmx:response:error", (event) => { if (event.detail?.ctx?.sourceElement === wire && ++live.errors >= 2) polling(true); });
    // A stream that never opened is not retried by the extension: look after a moment.
    setTimeout(() => { if (!live.last) polling(true); }, 6000);
    // Numbers of minutes change without an event.
    setInterval(stir, 15000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) stir(); });
    shown();
  }

  // Ticks.
  let lastTick = null;
  const ticks = () => all("#page [data-tick]");
  const bulk = () => {
    const bar = $("#bulk");
    if (!bar) return;
    const chosen = ticks().filter((box) => box.checked).length;
    const every = $("#every");
    bar.hidden = chosen === 0 && !every?.checked;
    if ($("#chosen")) $("#chosen").textContent = every?.checked ? every.dataset.words : chosen + (chosen === 1 ? " job" : " jobs");
    const master = $("#tick-all");
    if (master) { master.checked = chosen > 0 && chosen === ticks().length; master.indeterminate = chosen > 0 && !master.checked; }
    if (every) every.closest("label").hidden = !master?.checked && !every.checked;
  };
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("[data-tick]");
    if (box) {
      const rows = ticks();
      if (event.shiftKey && lastTick && rows.includes(lastTick)) {
        const [from, to] = [rows.indexOf(lastTick), rows.indexOf(box)].sort((a, b) => a - b);
        rows.slice(from, to + 1).forEach((one) => { one.checked = box.checked; });
      }
      lastTick = box;
    }
    if (event.target.id === "tick-all") ticks().forEach((one) => { one.checked = event.target.checked; });
    if (event.target.id === "untick") { ticks().forEach((one) => { one.checked = false; }); if ($("#every")) $("#every").checked = false; }
    if (box || ["tick-all", "untick", "every"].includes(event.target.id)) bulk();
    const copy = event.target.closest?.("[data-copy]");
    if (copy) copied(copy);
  });

  const copied = async (button) => {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied.");
      button.classList.add("done");
    } catch { // plain HTTP has no clipboard: select it, so that one key copies it
      const code = button.parentElement.querySelector("code");
      if (code) { const range = document.createRange(); range.selectNodeContents(code); getSelection().removeAllRanges(); getSelection().addRange(range); code.focus(); }
    }
  };

  // Questions. A form or a button with data-ask is sent after a yes.
  document.addEventListener("submit", (event) => {
    const form = event.target, button = event.submitter, ask = button?.dataset.ask || form.dataset.ask;
    if (!ask || form.dataset.sure) { delete form.dataset.sure; return; }
    event.preventDefault();
    const box = document.createElement("dialog"), words = document.createElement("p"), line = document.createElement("form");
    box.setAttribute("aria-label", "Are you sure?");
    words.textContent = ask;
    line.method = "dialog";
    const yes = document.createElement("button"), no = document.createElement("button");
    yes.value = "yes"; yes.className = "danger"; yes.textContent = (button?.textContent.trim() || button?.title || "Yes");
    no.value = "no"; no.textContent = "Cancel";
    line.append(no, yes);
    box.append(words, line);
    document.body.append(box);
    box.addEventListener("close", () => {
      box.remove();
      if (box.returnValue === "yes") { form.dataset.sure = "1"; form.requestSubmit(button); } else button?.focus();
    });
    box.showModal();
  });

  // Keys; none while somebody types.
  const pages = { o: "", j: "jobs", f: "failures", q: "queues", t: "tasks", w: "workers", s: "schedules", a: "activity", y: "system" };
  let went = 0;
  const rows = () => all("#page tr[data-row]");
  const move = (step) => {
    const list = rows(), at = list.findIndex((row) => row.classList.contains("at"));
    const next = list[Math.min(Math.max(at + step, 0), list.length - 1)];
    if (!next) return;
    list[at]?.classList.remove("at");
    next.classList.add("at");
    next.scrollIntoView({ block: "nearest" });
    (next.querySelector("a[data-open]") || next.querySelector("a"))?.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(document.activeElement)) { document.activeElement.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(document.activeElement) || $("dialog[open]")) return;
    if (Date.now() - went < 1500 && event.key in pages) { went = 0; location.href = `${root}/${pages[event.key]}`; return; }
    const here = $("tr.at [data-tick]"), first = $("[data-key='" + CSS.escape(event.key) + "']");
    if (event.key === "/") { event.preventDefault(); $("#search")?.focus(); }
    else if (event.key === "?") $("#keys")?.showModal();
    else if (event.key === "g") went = Date.now();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key.toLowerCase() === "x" && here) here.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: event.shiftKey }));
    else if (event.key === "." && rate) { rate.value = live.every === 0 ? "1" : "0"; rate.dispatchEvent(new Event("change")); }
    else if (first && first.offsetParent) first.click();
  });

  // Charts: drawn from the table behind them.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  const css = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
  const brief = (seconds) => seconds == null ? "–" : seconds === 0 ? "0" : seconds < 1 ? Math.round(seconds * 1000) + "ms" : seconds < 60 ? +seconds.toFixed(1) + "s" : span(seconds);
  const clocks = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800];
  const moment = (t, step) => new Date(t * 1000).toLocaleString([], step >= 86400 ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hour12: false });
  const drawn = new Map();
  const read = (figure) => {
    const heads = all("thead th", figure).slice(1).map((th) => ({ word: th.textContent, tone: th.dataset.tone, kind: th.dataset.kind }));
    const times = [], columns = heads.map(() => []);
    for (const row of all("tbody tr", figure)) {
      times.push(Number(row.cells[0].dataset.t));
      heads.forEach((_, at) => { const v = row.cells[at + 1].dataset.v; columns[at].push(v === "" ? null : Number(v)); });
    }
    return { heads, times, columns };
  };
  const plot = (figure) => {
    const box = $(".plot", figure), { heads, times, columns } = read(figure), unit = figure.dataset.unit;
    if (!box || !window.uPlot || times.length < 2) return;
    const bars = heads[0]?.kind === "bar";
    // Stacked: each series is drawn as the sum of itself and those under it, the tallest first.
    const sums = bars ? columns.map((_, at) => times.map((__, i) => columns.slice(0, at + 1).reduce((sum, one) => sum + (one[i] || 0), 0))) : columns;
    const order = heads.map((_, at) => at);
    if (bars) order.reverse();
    const data = [times, ...order.map((at) => sums[at])];
    const write = (value) => unit === "s" ? brief(value) : value == null ? "–" : value.toLocaleString();
    const look = [css("--dim"), css("--line"), ...heads.map((head) => css("--" + head.tone))].join();
    const old = drawn.get(figure.id);
    if (old && old.box === box && box.contains(old.chart.root) && old.look === look && old.chart.series.length === data.length) { old.raw.columns = columns; old.raw.times = times; old.chart.setData(data); return; }
    old?.chart.destroy();
    box.replaceChildren();
    const tip = document.createElement("div"), raw = { columns, times };
    tip.className = "tip";
    tip.hidden = true;
    const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const chart = new uPlot({
      width: Math.max(box.clientWidth, 100), height: box.clientHeight || 168, padding: [8, 18, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: !bars }, drag: { x: false, y: false } },
      scales: { y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] } },
      axes: [{ ...axis, space: 70, size: 30, values: (_, marks, __, ___, step) => marks.map((t) => moment(t, step)) }, { ...axis, size: 46, ...(unit === "s" ? { incrs: clocks } : {}), values: (_, values) => values.map((v) => unit === "s" ? brief(v) : v % 1 ? "" : v.toLocaleString()) }],
      series: [{}, ...order.map((at) => {
        const { word, tone, kind } = heads[at], ink = css("--" + tone);
        // A value without neighbours is no line: a dot shows it.
        const lone = (u, i) => bars ? null : u.data[i].flatMap((v, n, row) => v != null && row[n - 1] == null && row[n + 1] == null ? [n] : []);
        return {
          label: word, stroke: ink, width: bars ? 0 : 1.6, points: { show: false, size: 4, fill: ink, filter: lone },
          ...(bars ? { fill: ink, paths: uPlot.paths.bars({ size: [0.8, 40] }) } : kind === "area" ? { fill: css(`--${tone}-soft`) } : {}),
        };
      })],
      bands: heads[0].kind === "gap" ? [{ series: [1, 2], fill: css("--wait-soft") }] : [],
      hooks: { setCursor: [(u) => {
        const i = u.cursor.idx;
        tip.hidden = i == null || u.cursor.left < 0;
        if (tip.hidden) return;
        tip.textContent = new Date(raw.times[i] * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) + heads.map((head, at) => `\n${head.word}: ${write(raw.columns[at][i])}`).join("");
        tip.style.left = Math.min(u.cursor.left + 60, box.clientWidth - tip.offsetWidth - 4) + "px";
        tip.style.top = "4px";
      }] },
    }, data, box);
    box.append(tip);
    if (figure.dataset.href) chart.over.addEventListener("click", () => {
      const i = chart.cursor.idx, step = raw.times[1] - raw.times[0];
      if (i == null) return;
      const iso = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19) + "Z";
      location.href = figure.dataset.href + encodeURIComponent(`${iso(raw.times[i])}..${iso(raw.times[i] + step)}`);
    });
    drawn.set(figure.id, { chart, box, look, raw });
  };
  const draw = () => {
    const there = new Set(all("figure.chart").map((figure) => figure.id));
    for (const [id, old] of drawn) if (!there.has(id)) { old.chart.destroy(); drawn.delete(id); }
    all("figure.chart").forEach(plot);
  };
  let resized = null;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => drawn.forEach(({ chart, box }) => chart.setSize({ width: box.clientWidth, height: box.clientHeight })), 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  const again = () => { tickTimes(); draw(); bulk(); };
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    again();
    if (ctx.select === "#page" && ctx.response.raw.ok) announce("The page was updated.");
  });
  again();
})();
