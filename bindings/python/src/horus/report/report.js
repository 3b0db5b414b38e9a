// SPDX-License-Identifier: Apache-2.0
// Filters of the page, and its charts. Reads what the page holds; fetches nothing.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = id => document.getElementById(id);
  const chosen = id => (byId(id) ? byId(id).value : '');
  const DASHES = ['solid', 'dash', 'dashdot', 'dot'];
  const SYMBOLS = ['circle', 'square', 'triangle-up', 'diamond', 'triangle-down', 'cross'];
  const PATTERNS = ['', '/', '.', '\\', 'x', '+'];
  const LIGHT = ['#0b2f52', '#a33b0a', '#1f8a62', '#cf7fb0', '#6cbcf0', '#f5dc6a'];
  const DARK = ['#8ec8f2', '#f2a273', '#4cc79b', '#d891bd', '#f5dc6a', '#b9bcc2'];
  const dark = matchMedia('(prefers-color-scheme: dark)'), narrow = matchMedia('(max-width: 720px)');
  let printing = false;
  const colours = () => (dark.matches && !printing ? DARK : LIGHT);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Plotly reads a little HTML in labels, and %{...}; names of jobs are neither.
  const plain = text => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/%\{/g, '%&#123;');
  const round = (x, digits = 3) => {
    if (x === null || !isFinite(x)) return '\u2013';
    if (Math.abs(x) >= 100) return Math.round(x).toLocaleString('en');
    return String(Number(x.toPrecision(digits)));
  };
  const seconds = x => {
    if (x === null || !isFinite(x)) return '\u2013';
    for (const [size, unit] of [[86400, 'days'], [3600, 'h'], [60, 'min']]) if (x >= 3 * size) return `${round(x / size)}\u00a0${unit}`;
    return `${round(x)}\u00a0s`;
  };

  function layout(x, y, more) {
    const axis = title => ({title: {text: title, standoff: 8}, gridcolor: css('--line'), zerolinecolor: css('--faint'), linecolor: css('--faint'), automargin: true, fixedrange: true});
    return Object.assign({
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: {color: css('--ink'), family: 'system-ui, sans-serif', size: narrow.matches ? 12 : 13},
      margin: {l: 60, r: 16, t: 10, b: 64}, dragmode: false, hovermode: 'closest', showlegend: true,
      legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0}, xaxis: axis(x), yaxis: axis(y),
    }, more);
  }
  function draw(chart, traces, made, height) {
    if (!chart.querySelector('.plot-container')) chart.textContent = '';
    chart.style.height = height ? `${height}px` : '';
    Plotly.react(chart, traces, made, {displayModeBar: false, responsive: true});
  }
  function nothing(chart, text) {
    Plotly.purge(chart);
    chart.textContent = text;
    chart.style.height = 'auto';
  }

  // Which rows and answers are seen.
  function show() {
    const want = {workload: chosen('workload'), policy: chosen('policy'), gpu: chosen('gpu')};
    const job = chosen('job');
    for (const one of document.querySelectorAll('[data-workload],[data-policy],[data-gpu]')) {
      const exact = one.hasAttribute('data-exact');
      let seen = true;
      for (const name of Object.keys(want)) {
        const own = one.dataset[name];
        if (own !== undefined && (exact || want[name] !== '') && own !== want[name]) seen = false;
      }
      if (one.dataset.jobs && job && !JSON.parse(one.dataset.jobs).includes(job)) seen = false;
      one.hidden = !seen;
    }
    for (const one of document.querySelectorAll('[data-none]'))
      one.hidden = [...one.parentElement.querySelectorAll('[data-exact]')].some(other => !other.hidden);
    for (const one of document.querySelectorAll('[data-none-rows]')) {
      const table = one.previousElementSibling;
      const any = [...table.querySelectorAll('tbody tr')].some(row => !row.hidden);
      one.hidden = any;
      table.hidden = !any;
    }
  }

  // Sums of the cells that the filters leave.
  function sum(run) {
    const gpu = chosen('gpu'), job = chosen('job');
    const total = {done: 0, not: 0, jct: 0, wait: 0, held: 0, shared: 0, bins: new Map()};
    for (const [profile, type, done, not, jct, wait, held, shared, first, counts] of run.cells) {
      if (job && run.profiles[profile] !== job) continue;
      if (gpu && run.gpu_types[type] !== gpu) continue;
      total.done += done; total.not += not; total.jct += jct; total.wait += wait; total.held += held; total.shared += shared;
      counts.forEach((count, at) => { if (count) total.bins.set(first + at, (total.bins.get(first + at) || 0) + count); });
    }
    total.bins = [...total.bins].sort((a, b) => a[0] - b[0]);
    return total;
  }
  const middle = bin => Math.pow(10, (bin + 0.5) / data.bins_a_decade);
  function quantile(total, share) {
    let seen = 0;
    for (const [bin, count] of total.bins) { seen += count; if (seen >= share * total.done) return middle(bin); }
    return null;
  }
  const runsShown = () => data.runs.filter(run => !chosen('workload') || run.workload === chosen('workload'));
  const noRun = () => `No timeline of this workload: they are of ${[...new Set(data.runs.map(run => run.workload))].join(', ')}.`;
  const runName = run => `${run.policy}, seed ${run.seed}`;
  function jobs() {
    const body = byId('jobs');
    if (!body) return;
    body.replaceChildren();
    let shown = 0, all = 0;
    for (const run of runsShown()) {
      const total = sum(run);
      shown += total.done + total.not; all += run.jobs;
      const row = body.insertRow();
      const head = document.createElement('th');
      head.scope = 'row'; head.textContent = runName(run);
      row.append(head);
      const cells = [total.done.toLocaleString('en'), total.not.toLocaleString('en'), total.done ? seconds(total.jct / total.done) : '\u2013',
        ...[0.5, 0.95, 0.99].map(share => seconds(quantile(total, share))), total.done ? seconds(total.wait / total.done) : '\u2013',
        round(total.held / 3600), total.held ? `${round(100 * total.shared / total.held)}\u00a0%` : '\u2013'];
      for (const text of cells) { const cell = row.insertCell(); cell.className = 'n'; cell.textContent = text; }
    }
    byId('shown').textContent = !runsShown().length ? noRun() : `${shown.toLocaleString('en')} of ${all.toLocaleString('en')} jobs of ${runsShown().length} run${runsShown().length === 1 ? '' : 's'} are counted.`;
  }

  // The run whose course is drawn: that of the policy chosen, else the first.
  function current() {
    const runs = runsShown();
    return runs.find(run => run.policy === chosen('policy')) || runs[0] || null;
  }
  const charts = {
    bounds(chart) {
      const cases = data.potentials.flatMap(one => one.filter(([gpu]) => gpu === chosen('gpu') || (one.length === 1 && !chosen('gpu'))));
      if (!cases.length) return nothing(chart, 'No answer of horus potential for this GPU type.');
      const made = layout(`no job slowed beyond${cases.every(one => one[4].every(Boolean)) ? '' : ' (hollow: does not pay)'}`, 'work gained (%)', {barmode: 'group', showlegend: cases.length > 1});
      made.xaxis.type = 'category'; made.yaxis.rangemode = 'tozero';
      draw(chart, cases.map(([, name, bounds, gains, pays], i) => ({
        type: 'bar', name: plain(name), x: bounds, y: gains, text: gains.map(gain => `${gain < 0 ? '\u2212' : '+'}${Math.abs(gain).toFixed(1)}\u00a0%`), textposition: 'outside', cliponaxis: false,
        marker: {color: pays.map(paid => (paid ? colours()[i % 4] : css('--ground'))), line: {color: colours()[i % 4], width: 2}}, hovertemplate: '%{x}: %{text}<extra></extra>',
      })), made);
    },
    // On top: the largest clusters' mean completion time; below: each comparison's metric that is chosen.
    policies(chart) {
      const top = chart.dataset.index === undefined;
      const one = !top ? data.comparisons[chart.dataset.index] : data.comparisons.find(other => (!other.gpus || other.gpus === data.largest) && other.values.some(row => row[0] === chosen('workload')));
      if (!one) return nothing(chart, 'No comparison of this workload.');
      const name = top ? one.shown[0] : chosen('metric');
      const at = one.metrics.findIndex(metric => metric[0] === name);
      const better = at < 0 ? '' : one.metrics[at][1];
      const rows = one.values.filter(row => row[0] === chosen('workload') && row[1] !== one.baseline && at >= 0 && row[2][at][1] !== null);
      if (!rows.length) return nothing(chart, 'No change from the baseline to show for this workload and metric: the baseline is 0 or has no value.');
      const change = rows.map(row => row[2][at][1]);
      const sure = rows.map(row => row[2][at][2] > 0 || (row[2][at][3] !== null && row[2][at][3] < 0));
      const made = layout(`${plain(top ? one.titles[0] : name)}:${narrow.matches ? '<br>' : ' '}change from ${plain(one.baseline)} (%)${better === 'neither' ? '' : `<br>${better} is better`}${sure.every(Boolean) ? '' : '<br>hollow: not told apart from zero'}`, '', {yaxis: {autorange: 'reversed', type: 'category', automargin: true, fixedrange: true, gridcolor: css('--line')}});
      made.xaxis.rangemode = 'tozero';
      draw(chart, [{
        type: 'scatter', mode: 'markers', x: change, y: rows.map(row => plain(row[1])), showlegend: false,
        error_x: {type: 'data', symmetric: false, array: rows.map((row, i) => (row[2][at][3] === null ? 0 : row[2][at][3] - change[i])), arrayminus: rows.map((row, i) => (row[2][at][2] === null ? 0 : change[i] - row[2][at][2])), color: colours()[0], thickness: 1.5, width: 4},
        marker: {size: 9, color: sure.map(told => (told ? colours()[0] : css('--ground'))), line: {color: colours()[0], width: 2}},
        hovertemplate: '%{y}: %{x:.1f} %<extra></extra>',
      }], made, 130 + 30 * rows.length);
    },
    sizes(chart) {
      const lines = data.sizes.filter(line => line[0] === chosen('workload'));
      if (!lines.length) return nothing(chart, 'No comparison of sizes for this workload.');
      draw(chart, lines.map(([, policy, gpus, jct], i) => ({type: 'scatter', mode: 'lines+markers', name: plain(policy), x: gpus, y: jct.map(s => (s === null ? null : s / 3600)), line: {color: colours()[i % 4], dash: DASHES[i % 4]}, marker: {symbol: SYMBOLS[i % 6], size: 8}})),
        sizesLayout(lines));
    },
    jct(chart) {
      const traces = runsShown().map((run, i) => {
        const total = sum(run);
        let seen = 0;
        const x = [], y = [];
        for (const [bin, count] of total.bins) { seen += count; x.push(middle(bin) / 3600); y.push(100 * seen / total.done); }
        return {type: 'scatter', mode: 'lines', name: plain(`${runName(run)} (${total.done.toLocaleString('en')} jobs)`), x, y, line: {shape: 'hv', color: colours()[i % 4], dash: DASHES[i % 4]}, hovertemplate: '%{y:.0f} % within %{x:.3g} h<extra></extra>'};
      });
      if (!traces.some(trace => trace.x.length)) return nothing(chart, traces.length ? 'No job that finished is left by the filters.' : '');
      const made = layout('job completion time (h)', 'finished jobs (%)', {});
      made.xaxis.type = 'log'; made.xaxis.dtick = 1; made.yaxis.range = [0, 101];
      draw(chart, traces, made);
    },
    usage(chart) {
      const run = current(), usage = run && run.usage && run.usage[chosen('gpu')];
      if (!usage) return nothing(chart, run ? 'No GPU of this type in this run.' : '');
      const edges = run.usage[''].edges_h, traces = [];
      usage.tenants.forEach((values, level) => {
        if (values.every(x => x === 0)) return;
        traces.push({type: 'scatter', mode: 'lines', stackgroup: 'gpus', name: ['1 tenant', '2 tenants', '3 tenants or more'][level], x: edges.slice(1), y: values, line: {width: 1, color: colours()[level], shape: 'vh'}, fillcolor: colours()[level], fillpattern: {shape: PATTERNS[level], fgcolor: css('--ground'), bgcolor: colours()[level], size: 7, solidity: 0.25, fillmode: 'overlay'}, hovertemplate: '%{y:.1f} GPUs<extra></extra>'});
      });
      const made = layout('time (h)', `GPUs in use, of ${usage.gpus.toLocaleString('en')}`, {});
      made.yaxis.range = [0, usage.gpus * 1.02];
      draw(chart, traces, made);
    },
    scattered(chart) { line(chart, run => run.usage[chosen('gpu')] && run.usage[chosen('gpu')].scattered_pct, 'of the idle GPUs (%)'); },
    waiting(chart) { line(chart, run => run.usage[''].waiting, 'jobs that wait'); },
    lanes(chart) {
      const run = current(), lanes = run && run.lanes, gpu = chosen('gpu'), job = chosen('job');
      if (!lanes) { byId('lanes-note').textContent = ''; return nothing(chart, run ? 'No job ran.' : ''); }
      const kept = lanes.gpus.map((_, at) => at).filter(at => !gpu || lanes.gpu_types[at] === gpu);
      const place = new Map(kept.map((at, i) => [at, i]));
      const groups = new Map();
      for (const bar of lanes.bars) {
        if (!place.has(bar[0]) || (job && run.profiles[bar[3]] !== job)) continue;
        const look = Math.min(bar[3], 5);
        if (!groups.has(look)) groups.set(look, []);
        groups.get(look).push(bar);
      }
      byId('lanes-note').textContent = `${kept.length} of the ${lanes.all_gpus.toLocaleString('en')} GPUs that were used, the first ${round(lanes.until_h)} of ${round(lanes.all_h)} h; tenants of a GPU lie side by side in its lane.`;
      if (!groups.size) return nothing(chart, 'No job of these types ran on the GPUs that are drawn.');
      const traces = [...groups].sort((a, b) => a[0] - b[0]).map(([look, bars]) => ({
        type: 'bar', orientation: 'h', name: plain(look === 5 && run.profiles.length > 6 ? 'other types' : run.profiles[look]),
        base: bars.map(bar => bar[1]), x: bars.map(bar => bar[2]), y: bars.map(bar => place.get(bar[0]) - 0.42 + 0.84 * (bar[4] + 0.5) / bar[5]), width: bars.map(bar => 0.84 / bar[5]),
        marker: {color: colours()[look], line: {color: css('--ground'), width: 0.5}, pattern: {shape: PATTERNS[look], bgcolor: colours()[look], fgcolor: css('--ground'), size: 6, solidity: 0.25}},
        text: bars.map(bar => plain(`job ${bar[6]}: ${run.profiles[bar[3]]}`)), textposition: 'none', hovertemplate: '%{text}<br>from %{base:.2f} h for %{x:.2f} h<extra></extra>',
      }));
      const made = layout('time (h)', '', {barmode: 'overlay'});
      Object.assign(made.yaxis, {tickmode: 'array', tickvals: kept.map((_, i) => i), ticktext: kept.map(at => plain(lanes.gpus[at])), range: [kept.length - 0.5, -0.5], tickfont: {size: 10}});
      made.xaxis.range = [0, lanes.until_h];
      draw(chart, traces, made, 130 + 20 * kept.length + (narrow.matches ? 20 * traces.length : 0));
    },
  };
  function sizesLayout(lines) {
    const made = layout('GPUs of the cluster', 'mean JCT (h)', {});
    Object.assign(made.xaxis, {tickmode: 'array', tickvals: [...new Set(lines.flatMap(one => one[2]))]});
    return made;
  }
  function line(chart, values, title) {
    const run = current(), found = run && run.usage && values(run);
    if (!found) return nothing(chart, run ? 'No GPU of this type in this run.' : '');
    const made = layout('time (h)', title, {showlegend: false});
    made.yaxis.rangemode = 'tozero';
    draw(chart, [{type: 'scatter', mode: 'lines', x: run.usage[''].edges_h.slice(1), y: found, line: {color: colours()[0], shape: 'vh'}}], made, 220);
  }

  // Charts are drawn when they come near the screen, and again when a filter changes.
  const seen = new Set();
  const one = chart => charts[chart.dataset.chart](chart);
  // The library of the charts is large: the answers are read before it runs.
  function load() {
    if (window.Plotly) return;
    const script = document.createElement('script');
    script.textContent = byId('plotly').textContent;
    document.body.append(script);
  }
  const near = new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting && !seen.has(entry.target)) { seen.add(entry.target); one(entry.target); }
  }, {rootMargin: '400px'});
  function update() {
    show();
    jobs();
    const run = current();
    for (const name of document.querySelectorAll('.run-name')) name.textContent = run ? `\u2013 ${run.workload}, ${runName(run)}` : '';
    seen.forEach(one);
  }
  const everything = () => {
    load(); for (const chart of document.querySelectorAll('.chart')) { seen.add(chart); one(chart); } };
  for (const form of document.querySelectorAll('form')) form.addEventListener('change', update);
  const first = data.comparisons[0] && data.comparisons[0].metrics.find(metric => metric[0].startsWith('jct_mean'));
  if (first && byId('metric')) byId('metric').value = first[0];
  dark.addEventListener('change', update);
  window.addEventListener('beforeprint', () => { printing = true; everything(); });
  window.addEventListener('afterprint', () => { printing = false; update(); });
  update();
  const start = () => {
    load();
    for (const chart of document.querySelectorAll('.chart')) near.observe(chart);
  };
  window.addEventListener('load', () => setTimeout(start, 50));
  window.horusReport = {drawAll: everything};
})();
