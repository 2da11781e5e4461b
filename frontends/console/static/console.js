// The console's own script. Pages work without it for reading; it draws charts, keeps pages live and selects rows.
(() => {
  'use strict';

  // Live pages: one event stream a tab (the extension closes it while the tab is hidden). Each message lets the page fetch
  // itself again. When the stream breaks, the page is polled until the stream is back.
  const pollEvery = 5000;
  let polling = 0;
  let still = false;

  const offline = (shown) => document.getElementById('offline')?.classList.toggle('shown', shown);
  const refresh = () => {
    if (still || document.hidden || document.querySelector('dialog[open]') || editing()) return;
    window.htmx?.trigger(document.body, 'refresh');
  };
  const editing = () => {
    const a = document.activeElement;
    return a && a.closest('main') && /^(INPUT|TEXTAREA|SELECT)$/.test(a.tagName) && a.type !== 'checkbox';
  };
  const poll = (on) => {
    if (on && !polling) polling = setInterval(refresh, pollEvery);
    if (!on && polling) { clearInterval(polling); polling = 0; }
  };

  document.addEventListener('changed', refresh);
  document.addEventListener('htmx:sse:after:connection', () => { poll(false); offline(false); });
  document.addEventListener('htmx:sse:error', () => { poll(true); offline(true); });
  document.addEventListener('htmx:error', () => offline(true));
  document.addEventListener('htmx:after:request', (e) => {
    const status = e.detail?.ctx?.response?.status;
    if (status === 401) location.reload();
    if (status) offline(false);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });

  // Charts: <div class="chart" data-chart='{"labels":[…],"unit":"…","x":[…],"y":[[…],…]}'>
  const colours = ['--in', '--good', '--bad', '--warn'];
  const charts = new Map();
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const draw = (el) => {
    if (!window.uPlot || !el.dataset.chart) return;
    const d = JSON.parse(el.dataset.chart);
    const data = [d.x, ...d.y];
    const old = charts.get(el);
    if (old && old.text === el.dataset.chart) return;
    if (old) { old.plot.setData(data); old.text = el.dataset.chart; return; }
    const axis = { stroke: css('--pico-muted-color'), grid: { stroke: css('--pico-muted-border-color'), width: 1 }, ticks: { show: false } };
    const plot = new uPlot({
      width: el.clientWidth || 400,
      height: 190,
      cursor: { drag: { x: false, y: false } },
      legend: { live: true },
      scales: { y: { range: (_, lo, hi) => [Math.min(0, lo), hi > 0 ? hi * 1.1 : 1] } },
      axes: [axis, { ...axis, size: 56 }],
      series: [{}, ...d.labels.map((label, i) => ({
        label: d.unit ? `${label} (${d.unit})` : label,
        stroke: css(colours[i % colours.length]),
        width: 1.5,
        points: { show: false },
        value: (_, v) => v == null ? '–' : v.toLocaleString(undefined, { maximumFractionDigits: 2 }),
      }))],
    }, data, el);
    charts.set(el, { plot, text: el.dataset.chart });
  };
  const drawAll = () => {
    for (const [el, c] of charts) if (!el.isConnected) { c.plot.destroy(); charts.delete(el); }
    document.querySelectorAll('.chart').forEach(draw);
  };
  addEventListener('resize', () => charts.forEach((c, el) => c.plot.setSize({ width: el.clientWidth, height: 190 })));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    charts.forEach((c, el) => { c.plot.destroy(); charts.delete(el); });
    drawAll();
  });

  // Selections: a box in the head of a table for all rows, a count in the bar of actions.
  const selection = () => {
    const bar = document.getElementById('selected');
    if (!bar) return;
    const boxes = [...document.querySelectorAll('main input[name="id"]')];
    const on = boxes.filter((b) => b.checked).length;
    bar.textContent = on ? `${on} selected` : '';
    const all = document.getElementById('select-all');
    if (all) { all.checked = on > 0 && on === boxes.length; all.indeterminate = on > 0 && on < boxes.length; }
    document.querySelectorAll('[data-needs-selection]').forEach((b) => { b.disabled = on === 0; });
    still = on > 0 || document.getElementById('live')?.checked === false;
  };
  document.addEventListener('change', (e) => {
    if (e.target.id === 'select-all') {
      document.querySelectorAll('main input[name="id"]').forEach((b) => { b.checked = e.target.checked; });
    }
    if (e.target.matches('input[name="id"], #select-all, #live')) selection();
    if (e.target.matches('[data-submit-on-change]')) e.target.form.requestSubmit();
  });

  // Small things that need a script: copying, saved filters, dialogs, the colour scheme.
  document.addEventListener('click', async (e) => {
    const b = e.target.closest('[data-copy]');
    if (b) {
      await navigator.clipboard?.writeText(b.dataset.copy);
      const was = b.textContent;
      b.textContent = 'copied';
      setTimeout(() => { b.textContent = was; }, 1200);
    }
    if (e.target.closest('[data-save-filter]')) {
      const name = document.getElementById('filter-name')?.value.trim();
      if (name) { const all = saved(); all[name] = location.search; localStorage.setItem('filters', JSON.stringify(all)); showSaved(); }
    }
    const drop = e.target.closest('[data-forget-filter]');
    if (drop) { const all = saved(); delete all[drop.dataset.forgetFilter]; localStorage.setItem('filters', JSON.stringify(all)); showSaved(); }
  });
  const saved = () => { try { return JSON.parse(localStorage.getItem('filters')) || {}; } catch { return {}; } };
  const showSaved = () => {
    const list = document.getElementById('saved-filters');
    if (!list) return;
    list.replaceChildren(...Object.entries(saved()).map(([name, search]) => {
      const li = document.createElement('li');
      const a = document.createElement('a');
      a.className = 'chip';
      a.href = 'jobs' + search;
      a.textContent = name;
      const x = document.createElement('button');
      x.type = 'button'; x.className = 'chip'; x.dataset.forgetFilter = name; x.textContent = '×';
      x.setAttribute('aria-label', 'forget the filter ' + name);
      li.append(a, x);
      return li;
    }));
  };

  const ready = () => { drawAll(); selection(); showSaved(); };
  document.addEventListener('DOMContentLoaded', ready);
  document.addEventListener('htmx:after:swap', ready);
})();
