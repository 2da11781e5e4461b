"use strict";
// The search: every word must occur in a section. Titles count more than text.
{
  const box = document.querySelector(".search");
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  let loading = false;

  const score = (section, words) => {
    const title = (section.p + " " + (section.t || "")).toLowerCase();
    const text = section.x.toLowerCase();
    let sum = 0;
    for (const word of words) {
      if (title.includes(word)) sum += 10;
      else if (text.includes(word)) sum += 1;
      else return 0;
    }
    return sum;
  };

  const excerpt = (text, word) => {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
    return (at > 0 ? "…" : "") + text.slice(at, at + 120);
  };

  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    if (words.length === 0 || !window.docsIndex) return;
    const hits = window.docsIndex.map((section) => [score(section, words), section]).filter(([points]) => points > 0);
    hits.sort((a, b) => b[0] - a[0]);
    for (const [, section] of hits.slice(0, 15)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      const small = document.createElement("small");
      link.href = section.h;
      link.textContent = section.t ? section.p + ": " + section.t : section.p;
      small.textContent = excerpt(section.x, words[0]);
      link.append(small);
      item.append(link);
      found.append(item);
    }
    if (hits.length === 0) {
      const item = document.createElement("li");
      item.textContent = "nothing found";
      found.append(item);
    }
  };

  input.addEventListener("input", () => {
    if (!loading) {
      loading = true;
      const script = document.createElement("script");
      script.src = "search-index.js";
      script.addEventListener("load", show);
      document.head.append(script);
    }
    show();
  });
  box.hidden = false;
}
