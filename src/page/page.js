"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const data = JSON.parse(by("data").textContent);
  const text = data.text;
  const size = data.usd.length;
  const ROWS = 100;

  // What a cell says. A column is a list of words and, for each row, the place of its word.
  const word = (key, row) => data[key].words[data[key].rows[row]];
  const number = (key) => {
    const numbers = data[key].words.map((word) => (word === "" ? null : Number(word)));
    return (row) => numbers[data[key].rows[row]];
  };
  const collator = new Intl.Collator(text.code, { numeric: true });
  const ranked = (key) => {
    const places = data[key].words.map((word, place) => place).filter((place) => data[key].words[place] !== "");
    places.sort((a, b) => collator.compare(data[key].words[a], data[key].words[b]));
    const ranks = new Array(data[key].words.length).fill(null);
    places.forEach((place, rank) => { ranks[place] = rank; });
    return (row) => ranks[data[key].rows[row]];
  };
  const orders = {
    gpu: ranked("gpu"), count: number("count"), memory: number("memory"), provider: ranked("provider"),
    machine: ranked("machine"), region: ranked("region"), way: ranked("way"), usd: (row) => data.usd[row],
    // The longer ago, the greater the age.
    seen: (row) => (data.seen_at[row] === null ? null : -data.seen_at[row]),
  };

  const heads = [...document.querySelectorAll("#table thead th")];
  const labels = heads.map((head) => head.textContent);
  let matching = Array.from({ length: size }, (_, row) => row);
  let order = { key: "usd", down: false };
  let start = 0;

  const say = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const make = (tag, className, content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (content) element.textContent = content;
    return element;
  };

  const cell = (row, place, className, ...parts) => {
    const element = make(place === 0 ? "th" : "td", className);
    if (place === 0) element.scope = "row";
    element.setAttribute("role", place === 0 ? "rowheader" : "cell");
    element.dataset.l = labels[place];
    element.append(...parts.filter((part) => part !== "" && part !== null));
    row.append(element);
  };

  const line = (row) => {
    const tr = make("tr");
    tr.setAttribute("role", "row");
    const [os, remarks] = [word("os", row), word("remarks", row)];
    const under = [os, remarks].filter((part) => part !== "").join("; ");
    const seen = make("time", "", word("seen", row));
    if (data.seen_at[row] !== null) {
      seen.dateTime = seen.title = new Date(data.seen_at[row] * 1000).toISOString().replace(".000Z", "Z");
    }
    let link = null;
    const address = word("link", row);
    if (/^https?:\/\//.test(address)) {
      link = make("a", "", text.page);
      link.href = address;
      link.rel = "noopener";
      link.target = "_blank";
      link.setAttribute("aria-label", `${text.page}: ${word("provider", row)} ${word("machine", row)}`);
    }
    const usd = data.usd[row];
    cell(tr, 0, "", word("gpu", row));
    cell(tr, 1, "n", word("count", row));
    cell(tr, 2, "n", word("memory", row));
    cell(tr, 3, "", word("provider", row));
    cell(tr, 4, "", word("machine", row), under === "" ? null : make("small", "", under));
    cell(tr, 5, "", word("region", row));
    cell(tr, 6, "", word("way", row));
    cell(tr, 7, "n price", usd === null ? "" : usd.toFixed(4));
    cell(tr, 8, "n", word("amount", row), make("small", "", word("unit", row)));
    cell(tr, 9, "n", seen);
    cell(tr, 10, "", link);
    return tr;
  };

  const show = () => {
    const end = Math.min(start + ROWS, matching.length);
    by("rows").replaceChildren(...matching.slice(start, end).map(line));
    by("table").setAttribute("aria-rowcount", matching.length + 1);
    by("count").textContent = matching.length === 0 ? text.match_none
      : say(text.match_some, { n: count(matching.length), all: count(size) });
    by("shown").textContent = matching.length === 0 ? "" : say(text.rows_shown, { from: count(start + 1), to: count(end) });
    by("pages").hidden = matching.length <= ROWS;
    by("earlier").disabled = start === 0;
    by("later").disabled = end === matching.length;
  };

  const sort = () => {
    const value = orders[order.key];
    const sign = order.down ? -1 : 1;
    matching.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      // What is not known comes last, whichever way.
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (x - y) || a - b;
    });
    heads.forEach((head) => {
      if (head.dataset.k) head.setAttribute("aria-sort", head.dataset.k !== order.key ? "none" : order.down ? "descending" : "ascending");
    });
    by("order").value = `${order.key} ${order.down ? "down" : "up"}`;
  };

  let haystack = null;
  const searched = () => {
    const keys = ["gpu", "provider", "machine", "region", "way", "os", "remarks"];
    haystack ??= Array.from({ length: size }, (_, row) =>
      keys.map((key) => word(key, row)).join("\n").toLowerCase());
    return haystack;
  };

  const filter = () => {
    const terms = by("search").value.toLowerCase().split(/\s+/).filter((term) => term !== "");
    const chosen = ["gpu", "provider", "model"]
      .map((key) => [key, by(`filter-${key}`).value])
      .filter(([, value]) => value !== "")
      .map(([key, value]) => [data[key].rows, Number(value)]);
    const most = by("filter-usd").value === "" ? null : Number(by("filter-usd").value);
    const texts = terms.length > 0 ? searched() : null;
    matching = [];
    for (let row = 0; row < size; row += 1) {
      if (chosen.every(([rows, place]) => rows[row] === place)
        && (most === null || (data.usd[row] !== null && data.usd[row] <= most))
        && terms.every((term) => texts[row].includes(term))) matching.push(row);
    }
    start = 0;
    sort();
    show();
  };

  // Selects of what there is.
  const fill = (id, options) => {
    for (const [value, label] of options) by(id).append(new Option(label, value));
  };
  const named = (key) => data[key].words.map((word, place) => [place, word]).filter(([, word]) => word !== "")
    .sort((a, b) => collator.compare(a[1], b[1]));
  fill("filter-gpu", named("gpu"));
  fill("filter-provider", named("provider"));
  fill("filter-model", data.models.map(([, label], place) => [place, label]));
  heads.forEach((head, place) => {
    const key = head.dataset.k;
    if (!key) return;
    fill("order", [[`${key} up`, `${labels[place]}, ${text.ascending}`], [`${key} down`, `${labels[place]}, ${text.descending}`]]);
    const button = make("button", "", labels[place]);
    button.type = "button";
    button.addEventListener("click", () => {
      order = { key, down: order.key === key && !order.down };
      sort();
      start = 0;
      show();
    });
    head.replaceChildren(button);
  });

  let waiting = 0;
  for (const kind of ["input", "change"]) {
    by("filters").addEventListener(kind, (event) => {
      if (event.target.id === "order") return;
      clearTimeout(waiting);
      waiting = setTimeout(filter, 80);
    });
  }
  by("order").addEventListener("change", () => {
    const [key, way] = by("order").value.split(" ");
    order = { key, down: way === "down" };
    sort();
    start = 0;
    show();
  });
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  by("filters").addEventListener("reset", () => {
    order = { key: "usd", down: false };
    setTimeout(filter);
  });
  const turn = (rows) => {
    start += rows;
    show();
    by("count").scrollIntoView({ block: "start" });
  };
  by("earlier").addEventListener("click", () => turn(-ROWS));
  by("later").addEventListener("click", () => turn(ROWS));

  by("theme").addEventListener("change", () => {
    const theme = by("theme").value;
    if (theme === "") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  });

  // Tables that are set as cards on a phone stay tables for a reader of screens.
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  for (const element of document.querySelectorAll(".cards, .cards thead, .cards tbody, .cards tr, .cards td, .cards th")) {
    element.setAttribute("role", roles[element.tagName] ?? (element.scope === "row" ? "rowheader" : "columnheader"));
  }
  const days = Math.floor((Date.now() / 1000 - data.night) / 86400);
  if (days > 0) by("days-ago").textContent = say(text.days_ago, { days: count(days) });
  by("filters").hidden = false;
  document.querySelector(".theme").hidden = false;
  sort();
  show();
})();
