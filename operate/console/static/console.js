// The console's own script. Pages work without it for reading; it draws charts, keeps pages live and selects rows.
(() => {
  'use strict';

  // Live pages: the tabs of a browser share one event stream (live.js), as long as one of them is visible. Each message announces a
  // change, and the page fetches itself again. While the user selects or edits, or a fetch is in progress or has failed, the page
  // waits. Figures such as rates and ages change without an event, so a visible page fetches itself again every tickEvery, also while
  // the stream is broken. The connection counts as lost if a fetch gets no answer within answerWithin. A visible page without an
  // answer for staleAfter is loaded again, because htmx starts no new fetch if one was lost without an event.
  const retryEvery = 1000;
  const tickEvery = 5000;
  const answerWithin = 8000;
  const staleAfter = 20000;
  let visibleSince = Date.now();
  let fetched = Date.now(); // start of the last fetch of the page
  let asking = 0; // start of the fetch in progress; 0: none
  let selecting = false;
  let lost = false; // the connection
  let answered = Date.now(); // when the page was sent
  let told = 0; // number of announced changes
  let shown = 0; // number of changes that the page shows

  const live = () => sessionStorage.getItem('live') !== 'off';
  const showLive = () => document.querySelectorAll('[data-live]').forEach((b) => {
    b.setAttribute('aria-pressed', String(live()));
    b.textContent = lost ? 'Offline' : live() ? 'Live' : 'Still';
    b.classList.toggle('lost', lost);
  });
  const offline = (now) => {
    lost = now;
    document.body.classList.toggle('lost', now);
    document.getElementById('offline')?.classList.toggle('shown', now);
    document.querySelectorAll('[data-mark]').forEach((m) => {
      m.textContent = now ? `${m.dataset.mark} as of ${stamp(answered).slice(11)} ${zoneName()}` : m.dataset.mark;
    });
    showLive();
  };
  // Whether a form differs from what the server sent. The boxes that select rows do not count.
  const edited = () => [...document.querySelectorAll('main form[method="post"] :is(input, textarea, select)')].some((f) => {
    if (f.type === 'hidden' || f.name === 'id' || f.id.startsWith('select-')) return false;
    if (f.type === 'checkbox') return f.checked !== f.defaultChecked;
    if (f.tagName === 'SELECT') return f.selectedIndex !== Math.max(0, [...f.options].findIndex((o) => o.defaultSelected));
    return f.value !== f.defaultValue;
  });
  const busy = () => {
    if (document.querySelector('dialog[open], details.drop[open], #edit[open], :popover-open') || edited()) return true;
    const a = document.activeElement;
    if (a && a.closest('main, .jump') && /^(INPUT|TEXTAREA|SELECT)$/.test(a.tagName) && a.type !== 'checkbox') return true;
    const text = getSelection();
    return text && !text.isCollapsed;
  };
  const refresh = () => {
    if (shown === told || !live() || selecting || document.hidden || busy()) return;
    window.htmx?.trigger(document.body, 'refresh'); // dropped while a fetch is in progress
  };
  const changed = () => { told++; refresh(); };
  const of = (id, e) => e.detail?.ctx?.sourceElement?.id === id;
  document.addEventListener('htmx:before:request', (e) => {
    if (!of('frame', e)) return;
    e.detail.ctx.told = told;
    fetched = asking = Date.now();
  });
  document.addEventListener('htmx:finally:request', (e) => { if (of('frame', e)) asking = 0; });
  // A refresh that arrives after the user has begun to select or edit is dropped, because it could move rows under a selection.
  document.addEventListener('htmx:before:swap', (e) => {
    if (!of('frame', e)) return;
    if (selecting || busy() || e.detail.ctx.response?.status === 503) { e.preventDefault(); return; }
    shown = e.detail.ctx.told;
    focused = focusName(document.activeElement);
  });
  // After a refresh the element with the same name gets the keyboard focus back.
  let focused = '';
  const focusName = (el) => (el && el !== document.body ? [el.tagName, el.id, el.getAttribute('href'), el.name, el.value, el.getAttribute('aria-label'), el.textContent.trim()].join('|') : '');
  document.addEventListener('htmx:after:swap', () => {
    if (!focused || (document.activeElement && document.activeElement !== document.body)) return;
    [...document.querySelectorAll('a, button, summary, input, select, [tabindex]')].find((el) => focusName(el) === focused)?.focus({ preventScroll: true });
  });
  // While the pointer or the keyboard focus is on a row, the rows of all tables stand still: a refresh changes their texts, keeps the
  // rows that have left the list, and leaves new rows out. A button says how many, and takes them.
  let taking = false; // the next refresh moves rows
  let holding = false; // the refresh that is being shown does not
  let waiting = 0; // new rows that are left out
  const onRows = () => document.querySelector('main tbody tr:hover') !== null || document.activeElement?.closest('main tbody') != null;
  const rowKey = (tr) => tr.dataset.key ?? tr.querySelector('input[name="id"]')?.value ?? tr.querySelector('a.name')?.getAttribute('href') ?? tr.querySelector('td.main')?.textContent;
  const byKey = (body) => new Map([...body.rows].map((tr) => [rowKey(tr), tr]));
  const holdRows = (old, next) => {
    const rows = byKey(next);
    if (rows.size !== next.rows.length || rows.has(undefined) || byKey(old).has(undefined)) return; // no names tell the rows apart
    const held = [...old.rows].map((tr) => {
      const now = rows.get(rowKey(tr));
      rows.delete(rowKey(tr));
      if (now) return now;
      const left = tr.cloneNode(true);
      left.classList.add('left');
      left.title = 'no longer in this list';
      return left;
    });
    next.replaceChildren(...held);
    waiting += rows.size;
  };
  const showWaiting = () => {
    const button = document.querySelector('#fresh button');
    button.hidden = waiting === 0;
    button.textContent = `${waiting} new`;
  };
  document.addEventListener('htmx:before:swap', (e) => {
    if (!of('frame', e) || e.defaultPrevented) return;
    holding = !taking && onRows();
    taking = false;
    waiting = 0;
  });
  window.htmx?.registerExtension('rows', {
    htmx_before_morph_node: (_, { oldNode, newNode }) => {
      if (holding && oldNode.tagName === 'TBODY' && oldNode.closest('main')) holdRows(oldNode, newNode);
    },
  });
  document.addEventListener('htmx:after:swap', showWaiting);
  const take = () => { taking = true; changed(); };

  // Times: how long ago they were, or the clock, in UTC or in the zone of the browser. The server sends ages, and clock times in UTC.
  const times = () => localStorage.getItem('times') || 'ages';
  const zone = () => (times() === 'local' ? undefined : 'UTC');
  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zoneName = () => zone() ?? ownZone;
  const stamp = (t) => new Date(t).toLocaleString('sv-SE', { timeZone: zone() }); // 2026-01-31 14:05:09
  const sent = new WeakMap(); // what the server sent for an element, and what is shown
  const clockText = (text, at) => {
    const full = stamp(at);
    const short = full.slice(0, 10) === stamp(Date.now()).slice(0, 10) && !/^\d{4}-/.test(text);
    return (short ? full.slice(11) : full) + (text.match(/\d(\.\d{3})$/)?.[1] ?? '');
  };
  const showTimes = () => {
    document.querySelectorAll('time[datetime]').forEach((t) => {
      if (sent.get(t)?.shown !== t.textContent) sent.set(t, { text: t.textContent });
      const was = sent.get(t);
      const asSent = t.dataset.clock === undefined ? times() === 'ages' : times() !== 'local';
      was.shown = asSent ? was.text : clockText(was.text, t.dateTime);
      if (t.textContent !== was.shown) t.textContent = was.shown;
      t.title = `${stamp(t.dateTime)} ${zoneName()}`;
    });
    document.querySelectorAll('[data-zone]').forEach((z) => { z.textContent = zoneName(); });
    const choice = document.querySelector('[data-times]');
    if (!choice || choice.firstChild) return;
    const select = document.createElement('select');
    select.setAttribute('aria-label', 'Times shown');
    select.append(new Option('Ages', 'ages'), new Option('Clock, UTC', 'utc'));
    if (ownZone !== 'UTC') select.append(new Option(`Clock, ${ownZone}`, 'local'));
    select.value = times();
    choice.append(select);
  };
  document.addEventListener('change', (e) => {
    if (!e.target.closest?.('[data-times]')) return;
    localStorage.setItem('times', e.target.value);
    showTimes();
    redraw();
  });

  // A log shows its end, or keeps its scroll position.
  const end = 1e9;
  let scrolled = end;
  const scrollLog = () => { const log = document.getElementById('log-lines'); if (log) log.scrollTop = scrolled; };
  document.addEventListener('htmx:before:swap', () => {
    const log = document.getElementById('log-lines');
    scrolled = log && log.scrollHeight - log.scrollTop - log.clientHeight > 8 ? log.scrollTop : end;
  });
  document.addEventListener('htmx:after:swap', scrollLog);
  document.addEventListener('DOMContentLoaded', scrollLog);
  setInterval(() => {
    if (asking && Date.now() - asking > answerWithin) offline(true);
    if (waiting > 0 && !onRows()) changed(); // nobody looks at the rows any more
    if (!document.hidden && document.getElementById('stream') && Date.now() - fetched >= tickEvery) { fetched = Date.now(); told++; }
    const able = live() && !lost && !selecting && !document.hidden && document.getElementById('stream') && !busy();
    if (able && Date.now() - Math.max(answered, visibleSince) > staleAfter) { location.reload(); return; }
    refresh();
  }, retryEvery);

  const heard = ({ data }) => {
    if (data === 'changed') { changed(); document.dispatchEvent(new Event('changed')); } else offline(data === 'down');
  };
  const follow = (stream) => {
    const { turn, worker } = stream.dataset;
    let join = () => {};
    if (window.SharedWorker) {
      const { port } = new SharedWorker(new URL(worker, document.baseURI));
      port.onmessage = heard;
      join = (on) => port.postMessage({ join: on, turn });
    } else {
      const own = followBroker('');
      const tab = { postMessage: (data) => heard({ data }) };
      join = (on) => (on ? own.join(tab, turn) : own.leave(tab));
    }
    const visible = () => join(!document.hidden);
    visible();
    document.addEventListener('visibilitychange', visible);
    addEventListener('pagehide', () => join(false));
    addEventListener('pageshow', (e) => { if (e.persisted) visible(); });
  };
  document.addEventListener('DOMContentLoaded', () => {
    const stream = document.getElementById('stream');
    if (stream) follow(stream);
  });
  document.addEventListener('htmx:error', () => offline(true));
  document.addEventListener('htmx:after:request', (e) => {
    const status = e.detail?.ctx?.response?.status;
    if (status === 401) location.reload();
    const serves = status && status !== 503; // otherwise the broker starts or stops: the page stays and is fetched again
    if (serves && of('frame', e)) answered = Date.now();
    if (status) offline(!serves && of('frame', e));
  });
  document.addEventListener('visibilitychange', () => { visibleSince = Date.now(); if (!document.hidden) changed(); });

  // Charts: <div class="chart" data-chart='{"labels":[…],"colours":[…],"unit":"…","x":[…],"y":[[…],…]}'>
  const height = 232;
  const charts = new Map();
  const probe = document.createElement('span');
  const css = (name) => {
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  };
  const faint = (colour) => colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');
  const short = (v) => {
    const a = Math.abs(v);
    if (a >= 1e6) return `${+(v / 1e6).toFixed(1)}M`;
    if (a >= 1e3) return `${+(v / 1e3).toFixed(1)}k`;
    return String(+v.toFixed(a < 1 ? 3 : a < 10 ? 2 : 1));
  };
  const duration = (v) => {
    if (v === 0) return '0';
    if (v < 0.001) return `${+(v * 1e6).toPrecision(3)} µs`;
    if (v < 1) return `${+(v * 1e3).toPrecision(3)} ms`;
    if (v < 120) return `${+v.toPrecision(3)} s`;
    if (v < 7200) return `${+(v / 60).toPrecision(3)} min`;
    return `${+(v / 3600).toPrecision(3)} h`;
  };

  const days = 86400;
  const clock = (_, splits, __, ___, step) => splits.map((v) => {
    const t = stamp(v * 1000);
    if (step >= days) return t.slice(5, 10);
    return step >= 60 ? t.slice(11, 16) : t.slice(11, 19);
  });

  const counts = [...Array(10).keys()].flatMap((n) => [1, 2, 5].map((k) => k * 10 ** n));
  const spans = [...[-6, -5, -4, -3, -2, -1].flatMap((n) => [1, 2, 5].map((k) => k * 10 ** n)),
    ...[1, 2, 5, 10, 15, 30], ...[1, 2, 5, 10, 15, 30].map((n) => n * 60), ...[1, 2, 6, 12, 24, 48, 120, 240, 480].map((n) => n * 3600)];

  // Selecting a span with the pointer opens the list of the jobs submitted in it.
  const brush = (u, el) => {
    const { jobs, select = 'created' } = JSON.parse(el.dataset.chart);
    if (!jobs || u.select.width < 8) return;
    const at = (x) => new Date(u.posToVal(x, 'x') * 1000).toISOString().slice(0, 19);
    location.assign(`${jobs}&${select}_from=${at(u.select.left)}Z&${select}_to=${at(u.select.left + u.select.width)}Z`);
  };
  // Marks are dashed lines. The tooltip names the marks near the pointer.
  const marks = (u, el) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = css('--muted');
    ctx.setLineDash([4, 4]);
    (JSON.parse(el.dataset.chart).marks || []).forEach((m) => {
      const x = Math.round(u.valToPos(m.x, 'x', true));
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    });
    ctx.restore();
  };
  const hover = (u, el) => {
    u.root.classList.toggle('u-hover', u.cursor.idx != null);
    const near = (JSON.parse(el.dataset.chart).marks || []).filter((m) => Math.abs(u.valToPos(m.x, 'x') - u.cursor.left) < 6);
    el.title = near.map((m) => m.text).join('\n');
  };

  const draw = (el) => {
    if (!window.uPlot || !el.dataset.chart) return;
    const old = charts.get(el);
    if (old && old.text === el.dataset.chart) return;
    const d = JSON.parse(el.dataset.chart);
    const data = [d.x, ...d.y];
    if (old) { old.plot.setData(data); old.text = el.dataset.chart; return; }
    const text = d.unit === 's' ? duration : short;
    const axis = {
      stroke: css('--muted'), font: '11px system-ui, sans-serif', grid: { stroke: css('--line'), width: 1 }, ticks: { show: false },
    };
    const plot = new uPlot({
      width: el.clientWidth || 400,
      height,
      padding: [12, 8, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false, dist: 8 }, points: { size: 6 } },
      legend: { live: true, markers: { width: 0, fill: (u, i) => u.series[i].stroke() } },
      tzDate: (seconds) => (zone() ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000)),
      scales: { y: { range: (_, lo, hi) => [0, hi > 0 ? hi * 1.12 : 1] } },
      axes: [{ ...axis, grid: { show: false }, space: 80, size: 30, values: clock }, { ...axis, size: 52, space: 40, ...(d.whole && { incrs: counts }), ...(d.unit === 's' && { incrs: spans }), values: (_, all) => all.map((v) => (v == null ? '' : text(v))) }],
      hooks: { setCursor: [(u) => hover(u, el)], setSelect: [(u) => brush(u, el)], draw: [(u) => marks(u, el)] },
      series: [{ label: 'at', value: (_, v) => (v == null ? '' : `${stamp(v * 1000).slice(5)} ${zoneName()}`) }, ...d.labels.map((label, i) => {
        const colour = css(d.colours[i]);
        return {
          label,
          stroke: colour,
          fill: i === 0 ? faint(colour) : undefined,
          width: 1.6,
          points: { show: false },
          value: (_, v, __, at) => (at == null ? '' : v == null ? '–' : text(v)), // no values without a pointer: the figures of the page show the last minute
        };
      })],
    }, data, el);
    charts.set(el, { plot, text: el.dataset.chart });
  };
  const drawAll = () => {
    for (const [el, c] of charts) if (!el.isConnected) { c.plot.destroy(); charts.delete(el); }
    document.querySelectorAll('.chart').forEach(draw);
  };
  addEventListener('resize', () => charts.forEach((c, el) => c.plot.setSize({ width: el.clientWidth, height })));
  const redraw = () => {
    charts.forEach((c) => c.plot.destroy());
    charts.clear();
    drawAll();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  // Parts of a page stay open or closed over a refresh.
  const folds = new Map();
  const foldName = (d) => d.querySelector('summary').textContent;
  document.addEventListener('toggle', (e) => { if (e.target.matches('main details.fold')) folds.set(foldName(e.target), e.target.open); }, true);
  const keepFolds = () => document.querySelectorAll('main details.fold').forEach((d) => { if (folds.has(foldName(d))) d.open = folds.get(foldName(d)); });

  // Heights and marks for the sticky parts in console.css.
  const measure = () => {
    const put = (name, el) => document.documentElement.style.setProperty(name, `${el?.offsetHeight || 0}px`);
    put('--above', document.querySelector('header.top'));
    put('--bulk', document.querySelector('.bar.bulk'));
    document.querySelectorAll('main .scroll').forEach((s) => {
      s.classList.toggle('fits', s.firstElementChild?.tagName === 'TABLE' && s.firstElementChild.scrollWidth <= s.clientWidth);
    });
  };
  addEventListener('resize', measure);

  // Selections: the box in the head of a table selects all rows; the bar of actions shows the count.
  const selection = () => {
    const bar = document.getElementById('selected');
    if (!bar) { selecting = false; return; }
    const boxes = [...document.querySelectorAll('main td input[name="id"]')];
    const on = boxes.filter((b) => b.checked).length;
    const matching = document.getElementById('select-matching');
    const every = matching?.checked === true;
    bar.textContent = every ? '' : on ? `${on} selected` : bar.dataset.none || '';
    const all = document.getElementById('select-all');
    if (all) { all.checked = on > 0 && on === boxes.length; all.indeterminate = on > 0 && on < boxes.length; }
    document.querySelectorAll('[data-needs-selection]').forEach((b) => { b.disabled = on === 0 && !every; });
    selecting = on > 0 || every;
    bar.parentElement.classList.toggle('on', selecting);
  };
  document.addEventListener('change', (e) => {
    if (e.target.id === 'select-all') {
      document.querySelectorAll('main td input[name="id"]').forEach((b) => { b.checked = e.target.checked; });
    }
    if (e.target.matches('input[name="id"], #select-all, #select-matching')) selection();
    if (e.target.matches('[data-submit-on-change]')) e.target.form.requestSubmit();
  });

  // Empty fields stay out of the URL of a filter.
  document.addEventListener('submit', (e) => {
    if (e.target.method !== 'get') return;
    const empty = [...e.target.elements].filter((f) => f.name && f.value === '' && !f.disabled);
    empty.forEach((f) => { f.disabled = true; });
    setTimeout(() => empty.forEach((f) => { f.disabled = false; }), 0);
  });

  // Filters are saved by name in the browser, separately for each page.
  const path = () => document.getElementById('saved-filters')?.dataset.path || 'jobs';
  const saved = () => { try { return JSON.parse(localStorage.getItem(`filters ${path()}`)) || {}; } catch { return {}; } };
  const save = (all) => { localStorage.setItem(`filters ${path()}`, JSON.stringify(all)); showSaved(); };
  const showSaved = () => {
    const list = document.getElementById('saved-filters');
    if (!list) return;
    list.replaceChildren(...Object.entries(saved()).map(([name, search]) => {
      const li = document.createElement('li');
      li.className = 'chip';
      const a = document.createElement('a');
      a.href = path() + search;
      a.textContent = name;
      const x = document.createElement('button');
      x.type = 'button';
      x.className = 'ghost small';
      x.dataset.forgetFilter = name;
      x.textContent = '✕';
      x.setAttribute('aria-label', `forget the filter ${name}`);
      li.append(a, x);
      return li;
    }));
  };
  const saveFilter = () => {
    const field = document.getElementById('filter-name');
    const name = field.value.trim();
    if (!name) { field.focus(); return; }
    save({ ...saved(), [name]: location.search || '?' });
    field.value = '';
    document.getElementById('save-filter').open = false;
  };

  // Browsers offer a clipboard only over TLS or on localhost; otherwise the text is copied from a selected field.
  const toClipboard = async (text) => {
    if (navigator.clipboard) { await navigator.clipboard.writeText(text); return true; }
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  };
  const copy = async (b) => {
    const done = await toClipboard(b.dataset.copy).catch(() => false);
    const was = [...b.childNodes];
    b.textContent = done ? 'Copied' : 'Not copied';
    setTimeout(() => b.replaceChildren(...was), 1200);
  };
  document.addEventListener('click', (e) => {
    const button = e.target.closest('button');
    if (!e.target.closest('details.drop')) document.querySelectorAll('details.drop[open]').forEach((d) => { d.open = false; });
    if (!button) return;
    if (button.dataset.copy !== undefined) copy(button);
    if (button.dataset.saveFilter !== undefined) saveFilter();
    if (button.dataset.forgetFilter !== undefined) { const all = saved(); delete all[button.dataset.forgetFilter]; save(all); }
    if (button.dataset.take !== undefined) take();
    if (button.dataset.live !== undefined) { sessionStorage.setItem('live', live() ? 'off' : 'on'); showLive(); changed(); }
  });
  document.addEventListener('keydown', (e) => {
    const field = e.target.closest?.('input, textarea, select');
    if (e.key === 'Escape') {
      document.querySelectorAll('details.drop[open]').forEach((d) => { d.open = false; d.querySelector('summary').focus(); });
    } else if (e.key === 'Enter' && e.target.id === 'filter-name') {
      e.preventDefault();
      saveFilter();
    } else if (e.key === 'Enter' && e.target.matches?.('form[method="post"] .sheet input')) {
      e.preventDefault(); // the form has several actions: press the one of the sheet
      e.target.closest('.sheet').querySelector('button').click();
    } else if (e.key === '/' && !field && !e.ctrlKey && !e.metaKey && !e.altKey) {
      const jump = document.querySelector('[data-jump]');
      if (jump?.checkVisibility()) { e.preventDefault(); jump.focus(); }
    }
  });

  // Enter on a box would press the first button of the form.
  document.addEventListener('keypress', (e) => {
    if (e.key === 'Enter' && e.target.matches?.('main form[method="post"] input[type="checkbox"]')) e.preventDefault();
  });

  // Searches are completed while they are typed. The list offers whole lines, because the browser replaces the value of the field.
  let completing = 0;
  document.addEventListener('input', (e) => {
    const { list, value } = e.target;
    if (!list?.dataset.complete) return;
    clearTimeout(completing);
    completing = setTimeout(async () => {
      const lines = await fetch(list.dataset.complete + encodeURIComponent(value)).then((r) => (r.ok ? r.json() : []), () => []);
      if (e.target.value === value) list.replaceChildren(...lines.map((line) => new Option('', line)));
    }, 120);
  });

  // What a form would do is shown while it is filled in, with the server's own words for a mistake.
  let previews = 0;
  document.addEventListener('input', (e) => {
    const form = e.target.closest('form');
    const list = form?.querySelector('[data-preview]');
    const fields = list?.dataset.fields.trim().split(' ') ?? [];
    if (!fields.includes(e.target.name)) return;
    clearTimeout(previews);
    previews = setTimeout(async () => {
      const typed = () => new URLSearchParams(fields.map((name) => [name, form.elements[name]?.value ?? ''])).toString();
      const asked = typed();
      const lines = await fetch(`complete?preview=${list.dataset.preview}&${list.dataset.query ?? ''}&${asked}`).then((r) => (r.ok ? r.json() : []), () => []);
      if (asked !== typed()) return;
      const ul = Object.assign(document.createElement('ul'), { className: 'plain' });
      ul.append(...(lines ?? []).map((line) => Object.assign(document.createElement('li'), { textContent: line })));
      const label = Object.assign(document.createElement('span'), { className: 'hint', textContent: 'Next runs: ' });
      list.replaceChildren(...(lines?.length ? (list.dataset.preview === 'runs' ? [label, ul] : [ul]) : []));
    }, 250);
  });

  // A search without a result so far continues with its next page.
  let searching = '';
  const search = () => {
    const next = document.querySelector('[data-continue]');
    if (!next || searching === next.href) return;
    searching = next.href;
    setTimeout(() => { if (next.isConnected) location.replace(next.href); }, 150);
  };

  const ready = () => { showTimes(); search(); measure(); keepFolds(); drawAll(); selection(); showSaved(); showLive(); };
  document.addEventListener('DOMContentLoaded', ready);
  document.addEventListener('htmx:after:swap', ready);
})();
