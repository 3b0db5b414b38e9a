// SPDX-License-Identifier: Apache-2.0
// The page around the command: it writes command lines, cluster.yaml and jobs.yaml, asks, and draws the JSON that comes back.
// Nothing is computed here that `horus` does not say.

// ---- What is asked.

// Of examples/models/graphs, with a run that suits each.
const kNets = [
  ["resnet50", "ResNet-50", { batch: 64 }], ["mobilenet_v2", "MobileNet v2", { batch: 64 }],
  ["vit_b_16", "ViT-B/16", { batch: 32 }], ["unet", "U-Net", { batch: 4 }], ["vgg16", "VGG-16", { batch: 32 }],
  ["bert_base", "BERT base", { batch: 16, dims: "seq=128", optimizer: "adamw" }],
  ["gpt2", "GPT-2", { batch: 4, dims: "seq=512", optimizer: "adamw" }],
  ["lstm_wikitext2", "LSTM, WikiText-2", { batch: 20, dims: "seq=35" }],
  ["dcgan_generator", "DCGAN generator", { batch: 64, optimizer: "adam" }],
];
const kFolder = "examples/models/graphs/"; // as in a checkout, so that copied commands run there
const kPrecisions = ["fp32", "tf32", "amp", "amp-bf16", "fp16", "bf16", "fp32-ieee"];
const kOptimizers = ["sgd", "momentum", "adam", "adamw", "adafactor", "adam-8bit", "rmsprop", "adagrad", "adamw-bf16"];
const kMostJobs = 3, kMostGpus = 6, kMostNodes = 6;
const kLoad = { requests: 2, tokensIn: 1024, tokensOut: 256, firstToken: 1000, token: 60, solve: "" };

const newJob = (model, run = {}) => ({
  model, use: "training", batch: 1, dims: "", precision: "", optimizer: "sgd", load: { ...kLoad }, ...run,
});
const state = {
  jobs: [newJob(`${kFolder}resnet50.onnx`, { batch: 64 }), newJob(`${kFolder}lstm_wikitext2.onnx`, { batch: 20, dims: "seq=35" })],
  shown: 0,
  gpus: ["t4", "a100-80gb", "h100-sxm"],
  dropped: new Map(), // path -> File
  nodes: [
    { name: "big", type: "a100-80gb", count: 2, sharing: "mps" },
    { name: "cut", type: "a100-80gb", count: 1, sharing: "mig" },
    { name: "small", type: "t4", count: 2, sharing: "time-slice" },
  ],
  queue: [], // copies of jobs, in the order of the clicks
  besideAt: "", // the row whose command is shown
};
let types = [], models = []; // of `horus gpus` and `horus models`

// ---- Words of the command.

const isConfig = (job) => !job.model.endsWith(".onnx");
const serves = (job) => job.use === "service" && isConfig(job);
const baseName = (path) => path.split("/").pop().replace(/\.(onnx|json)$/, "");
const typeOf = (name) => types.find((one) => one.name === name);
const dimsOf = (job) => job.dims.split(/[\s,]+/).filter(Boolean);

function names(jobs) {
  const seen = new Map();
  const total = (base) => jobs.filter((one) => baseName(one.model) === base).length;
  return jobs.map(({ model }) => {
    const base = baseName(model), count = (seen.get(base) ?? 0) + 1;
    seen.set(base, count);
    return total(base) > 1 ? `${base}-${count}` : base;
  });
}

function inspectArguments(job, gpus) {
  const line = ["inspect", job.model, "--gpu", gpus.join(",")];
  if (serves(job)) {
    const { requests, tokensIn, tokensOut, firstToken, token, solve } = job.load;
    if (solve) line.push("--solve", solve);
    if (solve !== "load") line.push("--requests-per-s", requests);
    line.push("--tokens-in", tokensIn, "--tokens-out", tokensOut);
    if (firstToken) line.push("--first-token-ms", firstToken);
    if (token) line.push("--token-ms", token);
    return line.map(String);
  }
  line.push("--mode", job.use === "training" ? "training" : "inference", "--batch", job.batch);
  for (const dim of dimsOf(job)) line.push("--dim", dim);
  if (job.precision) line.push("--precision", job.precision);
  if (job.use === "training" && job.optimizer !== "sgd") line.push("--optimizer", job.optimizer);
  return line.map(String);
}

const shell = (line) => ["horus", ...line].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

const yamlText = (text) => (/^[A-Za-z_.][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|\.nan|\.inf)$/i.test(text) ? text : JSON.stringify(text));
const yamlMap = (pairs) => `{${pairs.map(([key, value]) => `${key}: ${value}`).join(", ")}}`;

function serviceMap({ load: { requests, tokensIn, tokensOut, firstToken, token } }) {
  const load = [["requests_per_s", requests], ["tokens_in", tokensIn], ["tokens_out", tokensOut]];
  if (firstToken) load.push(["first_token_ms", firstToken]);
  if (token) load.push(["token_ms", token]);
  return yamlMap(load);
}

function jobsFile(jobs) {
  const of = names(jobs);
  return "version: 1\njobs:\n" + jobs.map((job, i) => {
    const lines = [`  - name: ${yamlText(of[i])}`];
    if (job.use !== "training") lines.push("kind: inference");
    lines.push(`model: ${yamlText(job.model)}`);
    if (serves(job)) {
      lines.push(`service: ${serviceMap(job)}`);
    } else {
      lines.push(`batch: ${job.batch}`);
      const dims = dimsOf(job).map((one) => one.split("="));
      if (dims.length > 0) lines.push(`dims: ${yamlMap(dims.map(([key, size]) => [yamlText(key), size ?? "?"]))}`);
      if (job.precision) lines.push(`precision: ${job.precision}`);
      if (job.use === "training" && job.optimizer !== "sgd") lines.push(`optimizer: ${job.optimizer}`);
    }
    return lines.join("\n    ");
  }).join("\n") + "\n";
}

// The largest instance of which a card holds so many.
const instance = (type, count) => typeOf(type)?.mig.filter((one) => one.max_instances >= count).sort((a, b) => b.mem_mib - a.mem_mib)[0]?.name;

function clusterFile(nodes) {
  return "version: 1\nnodes:\n" + nodes.map(({ name, type, count, sharing, parts = 2 }) => {
    const how = sharing === "mig" ? ["mig", `[${Array(parts).fill(instance(type, parts)).join(", ")}]`] : ["sharing", sharing];
    return `  - name: ${name}\n    cpu_cores: 64\n    memory_gib: 512\n    gpus:\n      - ${yamlMap([["type", type], ["count", count], how])}`;
  }).join("\n") + "\n";
}

const placeArguments = (policy) => ["place", "--cluster", "cluster.yaml", "--jobs", "jobs.yaml", ...(policy ? ["--policy", policy] : [])];

// ---- Asking: a worker runs the command on files of its own.

const worker = await start();
const waiting = new Map();
let asked = 0;

// What is loaded here is kept for sw.js, which may come up later than this asks.
async function start() {
  const kept = isSecureContext ? await caches.open("horus") : null;
  navigator.serviceWorker?.register("sw.js").catch(() => {});
  const load = async (path) => {
    const reply = await fetch(path);
    if (!reply.ok) throw new Error(`${path}: ${reply.status}`);
    await kept?.put(path, reply.clone());
    return reply;
  };
  const nets = kNets.map(([name]) => `${kFolder}${name}.onnx`);
  const [glue, code, wasm, ...graphs] = await Promise.all([
    ...["horus.js", "worker.js"].map((path) => load(path).then((reply) => reply.text())),
    ...["horus.wasm", ...nets.map((path) => `nets/${baseName(path)}.onnx`)].map((path) => load(path).then((reply) => reply.arrayBuffer())),
  ]);
  const program = await WebAssembly.compile(wasm);
  const made = new Worker(URL.createObjectURL(new Blob([glue, "\n", code], { type: "text/javascript" })));
  made.postMessage({ program, nets: nets.map((path, i) => [path, new Uint8Array(graphs[i])]) });
  made.onmessage = ({ data }) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  made.onerror = (event) => status(`Stopped: ${event.message}`);
  return made;
}

const ask = (argv, files = []) => new Promise((resolve) => {
  waiting.set(++asked, resolve);
  worker.postMessage({ id: asked, argv, files });
});

const known = new Map(); // question -> answer: a job or a row that did not change is not asked again
async function asJson(line, jobs, texts = {}) {
  const key = JSON.stringify([line, texts]);
  if (!known.has(key)) {
    const models = [...new Set(jobs.map((job) => job.model))].filter((path) => path.includes(".") && !isKnown(path));
    const files = models.map((path) => ({ path, file: state.dropped.get(path) }));
    for (const [path, text] of Object.entries(texts)) files.push({ path, text });
    known.set(key, ask([...line, "--json"], files));
  }
  const { code, out, err } = await known.get(key);
  if (code !== 0) throw new Error(err.trim().replace(/^horus: /, ""));
  return { text: out, json: JSON.parse(out) };
}
const isKnown = (path) => models.some((one) => one.name === path);

// ---- Drawing.

function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, size] of Object.entries(value)) made.style.setProperty(name, size);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((one) => one !== undefined && one !== null && one !== false));
  return made;
}
const by = (id) => document.getElementById(id);
const status = (text) => { by("state").textContent = text; };
const letter = (i) => "ABC"[i];

function number(value, digits = 3) {
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 10 });
}
const gib = (mib) => (mib < 1024 ? `${number(mib)} MiB` : `${number(mib / 1024)} GiB`);
const time = (us) => (us < 1e3 ? `${number(us)} µs` : us < 1e6 ? `${number(us / 1e3)} ms` : `${number(us / 1e6)} s`);
const factor = (x) => `${x.toFixed(2)}×`;
const atMost = (text) => el("small", { class: "bound" }, `at most ${text}`);

const problem = (error) => el("p", { class: "error", role: "alert" }, error.message);

// "The same on your machine": a command, the files that it reads, the JSON that the page drew.
function same(id, line, files, json, title = "The same on your machine") {
  const block = (name, text, label) => el("div", { class: "block" },
    el("div", { class: "bar" }, el("span", {}, label),
      el("button", { type: "button", onclick: (event) => copy(text, event.currentTarget), "aria-label": `Copy ${label}` }, "Copy")),
    el("pre", { id: `${id}-${name}`, tabindex: "0", "aria-label": label }, text));
  return el("details", { class: "same" }, el("summary", {}, title),
    block("command", shell(line), "command line"),
    ...Object.entries(files).map(([name, text]) => block(name.replace(".", "-"), text, name)),
    json && el("details", {}, el("summary", {}, "What it answers with --json"), block("json", json, "JSON")));
}

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// ---- The form.

const field = (label, control) => el("label", {}, label, control);
function choice(value, options, change, properties = {}) {
  const made = el("select", { ...properties, onchange: (event) => change(event.target.value) },
    options.map((one) => (Array.isArray(one[1])
      ? el("optgroup", { label: one[0] }, one[1].map(([id, text]) => el("option", { value: id, selected: id === value }, text)))
      : el("option", { value: one[0], selected: one[0] === value }, one[1]))));
  return made;
}
function numberField(label, value, change, { min = 0, step = "any", id } = {}) {
  return field(label, el("input", {
    type: "number", inputmode: "decimal", min, step, value, id, required: min > 0,
    oninput: (event) => { if (event.target.validity.valid && event.target.value !== "") change(Number(event.target.value)); },
  }));
}

function change(job, values) {
  Object.assign(job, values);
  refresh();
}

function choose(job, path) {
  const net = kNets.find(([name]) => path === `${kFolder}${name}.onnx`);
  const fresh = { batch: 1, dims: "", optimizer: "sgd", precision: "", ...net?.[2] };
  const use = path.endsWith(".onnx") ? (job.use === "service" ? "inference" : job.use) : "service";
  if (use !== "service" && !path.endsWith(".onnx")) fresh.dims = "seq=2048";
  change(job, { model: path, use, ...fresh });
  drawJob();
}

function drop(job, files) {
  for (const file of files) {
    let path = file.name.replace(/^-+/, "");
    for (let i = 2; state.dropped.has(path) && state.dropped.get(path) !== file; ++i) path = file.name.replace(/(\.[^.]*)?$/, `-${i}$1`);
    if (!/\.(onnx|json)$/.test(path)) path += ".onnx"; // the command says what it is instead
    state.dropped.set(path, file);
    choose(job, path);
  }
}

function drawTabs() {
  const jobs = state.jobs, of = names(jobs);
  const show = (i) => { state.shown = i; drawTabs(); drawJob(); refresh(); by(`tab-${i}`)?.focus(); };
  by("list").replaceChildren(...jobs.map((job, i) => el("button", {
    type: "button", role: "tab", id: `tab-${i}`, "aria-selected": String(i === state.shown), "aria-controls": "job",
    tabindex: i === state.shown ? "0" : "-1", class: `job-${letter(i)}`, onclick: () => show(i),
    onkeydown: (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: jobs.length - 1 }[event.key];
      if (to !== undefined) show((to + jobs.length) % jobs.length);
    },
  }, el("b", {}, letter(i)), el("span", {}, of[i]))));
  by("tab-buttons").replaceChildren(jobs.length < kMostJobs && el("button", {
    type: "button", class: "plain", id: "add-job", "aria-label": "Add a job",
    onclick: () => {
      state.jobs.push(newJob("llama-3.2-1b", { use: "service" }));
      show(state.jobs.length - 1);
    },
  }, "+ job") || "",
  jobs.length > 1 && el("button", {
    type: "button", class: "plain", "aria-label": `Remove job ${letter(state.shown)}`,
    onclick: () => {
      jobs.splice(state.shown, 1);
      show(Math.max(0, state.shown - 1));
    },
  }, `− ${letter(state.shown)}`) || "");
  by("job").setAttribute("aria-labelledby", `tab-${state.shown}`);
}

function drawJob() {
  const job = state.jobs[state.shown];
  const picker = el("input", { type: "file", accept: ".onnx,.json", id: "file", class: "hidden-file", onchange: (event) => drop(job, event.target.files) });
  const zone = el("label", { class: "drop" }, picker, el("b", {}, "Drop an ONNX file or a config.json"), el("small", {}, "or press to choose one; it stays here"));
  const uses = [["training", "Training"], ["inference", "Inference"], ...(isConfig(job) ? [["service", "Service"]] : [])];
  const mine = [...state.dropped.keys()].map((path) => [path, path]);
  by("job").replaceChildren(
    zone,
    field("Or a net by name", choice(job.model, [
      ...(mine.length > 0 ? [["Your files", mine]] : []),
      ["Networks", kNets.map(([name, title]) => [`${kFolder}${name}.onnx`, title])],
      ["Language models", models.map((one) => [one.name, one.name])],
    ], (path) => choose(job, path), { id: "model" })),
    el("fieldset", { class: "uses" }, el("legend", {}, "It is run as"), ...uses.map(([id, text]) => el("label", {},
      el("input", {
        type: "radio", name: "use", value: id, checked: id === job.use,
        onchange: () => { change(job, { use: id, ...(isConfig(job) && id !== "service" && !job.dims ? { dims: "seq=2048" } : {}) }); drawJob(); },
      }), text))),
    el("div", { class: "grid" }, ...(serves(job) ? loadFields(job) : runFields(job))));
}

function runFields(job) {
  const lowered = isConfig(job) ? "as its config says" : "fp32";
  return [
    numberField("Batch per GPU", job.batch, (batch) => change(job, { batch }), { min: 1, step: 1, id: "batch" }),
    field("Dimensions", el("input", { type: "text", id: "dims", value: job.dims, spellcheck: "false", autocomplete: "off", placeholder: "seq=128", oninput: (event) => change(job, { dims: event.target.value }) })),
    field("Precision", choice(job.precision, [["", lowered], ...kPrecisions.filter((one) => isConfig(job) || one !== "fp32").map((one) => [one, one])], (precision) => change(job, { precision }), { id: "precision" })),
    job.use === "training" && field("Optimizer", choice(job.optimizer, kOptimizers.map((one) => [one, one]), (optimizer) => change(job, { optimizer }), { id: "optimizer" })),
  ];
}

// What is asked of a service; of `solved` in the answer, in words.
const kSolve = [["", "what it takes"], ["load", "most requests/s"], ["context", "longest request"], ["gpus", "fewest GPUs"]];
const solvedOf = {
  load: (gpu) => ["Most requests/s", number(gpu.solved.value)],
  context: (gpu) => ["Longest request", `${number(gpu.solved.value, 6)} tokens`],
  gpus: (gpu) => ["Fewest GPUs", `${gpu.solved.gpus}`, el("small", {}, `${gpu.solved.value} × ${gpu.tensor_parallel}`)],
};

function loadFields(job) {
  const load = (key, label, min) => numberField(label, job.load[key], (value) => change(job, { load: { ...job.load, [key]: value } }), { min, id: key });
  return [
    field("Asked", choice(job.load.solve, kSolve, (solve) => { change(job, { load: { ...job.load, solve } }); drawJob(); }, { id: "solve" })),
    job.load.solve !== "load" && load("requests", "Requests/s", 0.001),
    load("tokensIn", "Tokens in, mean", 1), load("tokensOut", "Tokens out, mean", 1),
    load("firstToken", "First within, ms"), load("token", "Further within, ms"),
    el("p", { class: "note" }, "0 ms: nothing is promised."),
  ];
}

function drawGpus() {
  by("gpus").replaceChildren(...state.gpus.map((name) => el("li", {}, el("span", { title: typeOf(name).display_name }, name),
    el("button", {
      type: "button", class: "plain", "aria-label": `Do not ask about ${name}`, disabled: state.gpus.length === 1,
      onclick: () => { state.gpus = state.gpus.filter((one) => one !== name); drawGpus(); refresh(); },
    }, "×"))));
  const groups = Map.groupBy ? [...Map.groupBy(types, (one) => one.architecture)] : [["All", types]];
  by("add-gpu").replaceWith(choice("", [["", state.gpus.length < kMostGpus ? `one of ${types.length} types` : `${kMostGpus} at most`],
    ...groups.reverse().map(([name, list]) => [name, list.map((one) => [one.name, `${one.name} · ${number(one.mem_mib / 1024)} GiB`])])],
  (name) => {
    if (!state.gpus.includes(name) && state.gpus.length < kMostGpus) state.gpus.push(name);
    drawGpus(); refresh();
  }, { id: "add-gpu", disabled: state.gpus.length >= kMostGpus }));
}

// ---- Alone.

const kParts = [ // of `memory` in inspect's JSON
  ["weights", ["weights_bytes", "master_weights_bytes"]], ["gradients and optimizer", ["gradients_bytes", "optimizer_bytes", "buckets_bytes"]],
  ["inputs and activations", ["inputs_bytes", "activations_bytes", "transient_bytes"]],
  ["workspace and kernels", ["workspace_bytes", "loaded_kernels_bytes"]], ["allocator slack", ["allocator_slack_bytes"]],
];

// Parts in MiB against the card; marks at the estimate and at the bound.
function memoryBar(parts, card, estimate, upper) {
  const scale = Math.max(card, upper) * 1.02, share = (mib) => `${(100 * mib / scale).toFixed(2)}%`;
  const shown = parts.filter(([, mib]) => mib > 0);
  const text = `${gib(estimate)} of ${gib(card)}, at most ${gib(upper)}: ${shown.map(([name, mib]) => `${name} ${gib(mib)}`).join(", ")}`;
  return el("div", { class: "memory", role: "img", "aria-label": text },
    el("div", { class: "card", style: { width: share(card) } }),
    el("div", { class: "parts" }, ...shown.map(([name, mib, kind]) => el("i", { class: `part-${kind}`, style: { width: share(mib) }, title: `${name}: ${gib(mib)}` }))),
    upper > card && el("div", { class: "edge", style: { left: share(card) }, title: `the card ends: ${gib(card)}` }),
    el("div", { class: "upper", style: { left: share(upper) }, title: `at most ${gib(upper)}` }));
}
const legend = (parts, edge) => el("ul", { class: "legend" }, ...parts.map(([name, , kind]) => el("li", {}, el("i", { class: `part-${kind}` }), name)),
  el("li", {}, el("i", { class: "mark" }), "at most"), edge && el("li", {}, el("i", { class: "edge" }), "end of the card"));

const verdict = (good, text) => el("span", { class: good ? "verdict good" : "verdict bad" }, text);
const figure = (label, value, ...more) => el("div", { class: "figure" }, el("dt", {}, label), el("dd", {}, el("b", {}, value), ...more));
const meter = (label, estimate, upper) => el("div", { class: "figure meter" }, el("dt", {}, label),
  el("dd", {}, el("b", {}, `${Math.round(estimate)} %`), atMost(`${Math.round(upper)} %`),
    el("span", { class: "track", "aria-hidden": "true" }, el("i", { style: { width: `${estimate}%` } }), el("i", { class: "mark", style: { left: `${Math.min(99, upper)}%` } }))));

function ranOn(gpu, memory) {
  const parts = kParts.map(([name, keys], i) => [name, keys.reduce((sum, key) => sum + memory[key], 0) / 2 ** 20, i]);
  parts.push(["CUDA context", gpu.context_mib, 5]);
  const correction = gpu.memory_mib - parts.reduce((sum, [, mib]) => sum + mib, 0);
  parts.push(["correction by measured runs", correction, 6]);
  if (correction < 0) parts[4][1] = Math.max(0, parts[4][1] + correction); // it mostly takes back what the allocator was thought to lose
  const shares = [["compute", gpu.compute_share], ["bandwidth", gpu.bandwidth_share], ["launches", gpu.launch_share]].sort((a, b) => b[1] - a[1]);
  return [parts, el("article", { class: "gpu" },
    el("h3", {}, gpu.gpu_type, el("small", {}, gpu.display_name), verdict(gpu.fits, gpu.fits ? "fits" : "does not fit")),
    memoryBar(parts, gpu.gpu_memory_mib, gpu.memory_mib, gpu.memory_upper_mib),
    el("dl", {},
      figure("Memory", gib(gpu.memory_mib), atMost(gib(gpu.memory_upper_mib)), el("small", {}, `of ${gib(gpu.gpu_memory_mib)}`)),
      figure("One step", time(gpu.step_time_us), atMost(time(gpu.step_time_upper_us)), el("small", {}, `${number(gpu.samples_per_s)} samples/s`)),
      meter("Utilisation", gpu.gpu_util_pct, gpu.gpu_util_upper_pct),
      meter("Memory bandwidth", gpu.mem_bw_util_pct, gpu.mem_bw_util_upper_pct)),
    el("p", { class: "note" }, `Bound by ${shares[0][0]} for ${Math.round(100 * shares[0][1])} % of the time.`,
      gpu.outside_training_data ? " Unlike the nets that were measured: rely on the bounds." : ""))];
}

function servedOn(gpu, { load, solve }) {
  const type = typeOf(gpu.gpu_type), room = gpu.verdict !== "no-room";
  const parts = [["weights", gpu.weights_mib, 0], ["a chunk of prompts", gpu.activations_mib, 2], ["engine", gpu.engine_mib, 3], ["cache", gpu.cache_mib, 4]];
  const many = !solve && gpu.most_requests_per_s > 0 ? `${Math.ceil(load.requests_per_s / gpu.most_requests_per_s)} such GPUs serve it` : "";
  const words = { served: "serves it", "no-room": "does not fit", overloaded: many || "too slow", late: many || "too late" };
  return [parts, el("article", { class: "gpu" },
    el("h3", {}, gpu.gpu_type, el("small", {}, type.display_name), verdict(gpu.verdict === "served", words[gpu.verdict])),
    memoryBar(parts, type.mem_mib, gpu.memory_mib, gpu.memory_mib),
    el("dl", {},
      ...(gpu.solved?.value > 0 ? [figure(...solvedOf[solve](gpu))] : []),
      figure("Memory", gib(gpu.memory_mib), el("small", {}, `of ${gib(type.mem_mib)}`)),
      ...(room ? [
        figure("First token", time(gpu.first_token_ms * 1e3), atMost(time(gpu.first_token_ms_upper * 1e3))),
        figure("Each further", time(gpu.token_ms * 1e3), atMost(time(gpu.token_ms_upper * 1e3))),
        figure("Most requests/s", number(gpu.most_requests_per_s), el("small", {}, "promises kept")),
        figure("At once", number(gpu.running), el("small", {}, `cache for ${number(gpu.cache_tokens)} tokens`)),
        figure("May be slowed", gpu.verdict === "served" ? factor(gpu.largest_slowdown) : "–", el("small", {}, "by neighbours"))] : [])),
    gpu.engine_arguments && el("p", { class: "note" }, "Tell the engine ", el("code", {}, gpu.engine_arguments)))];
}

let said = ""; // of the shown job, in a sentence
async function alone() {
  const job = state.jobs[state.shown], line = inspectArguments(job, state.gpus);
  const { text, json } = await asJson(line, [job]);
  const drawn = json.gpus.map((gpu) => (serves(job) ? servedOn(gpu, json) : ranOn(gpu, json.memory)));
  const notes = (json.notes ?? []).map((note) => el("p", { class: "note" }, typeof note === "string" ? note : note.text ?? ""));
  const over = json.gpus.some((gpu) => (gpu.memory_upper_mib ?? gpu.memory_mib) > typeOf(gpu.gpu_type).mem_mib);
  const good = json.gpus.filter((gpu) => gpu.fits ?? gpu.verdict === "served").length;
  said = `${baseName(job.model)} ${serves(job) ? "is served by" : "fits"} ${good} of ${json.gpus.length} GPUs.`;
  return [legend(drawn[0][0].filter(([, mib]) => mib > 0), over), el("div", { class: "gpus" }, ...drawn.map(([, card]) => card)), ...notes, same("alone", line, {}, text)];
}

// ---- Side by side.

const kModes = [["time-slice", "time slicing"], ["mps", "MPS"], ["mig", "MIG"]];
const named = (explanation, of) => explanation.replace(/\bjob (\d+)/g, (all, id) => of[id - 1] ?? all);
// What of it tells why, on a cluster of one card.
const reason = (explanation) => explanation.replace(/^\w+: (does not fit now\. )?/, "").replace(/ Nearest: card device 0( \(\w+\)\.)?/, "").replace(/\(\w+: /, "(");
const slowdown = (x, upper) => [el("b", {}, factor(x)), " ", atMost(factor(upper))];

// Horus' decision for all jobs on one card. Where it keeps them apart, another policy shows what sharing would cost.
async function besideRow(gpu, mode) {
  const jobs = state.jobs, of = names(jobs), texts = {
    "cluster.yaml": clusterFile([{ name: "card", type: gpu, count: 1, sharing: mode, parts: jobs.length }]), "jobs.yaml": jobsFile(jobs),
  };
  const { text, json: { decisions } } = await asJson(placeArguments(), jobs, texts);
  const left = decisions.find((one) => one.verdict !== "place");
  const shared = left && mode !== "mig" ? (await asJson(placeArguments("first-fit"), jobs, texts)).json.decisions : decisions;
  const slowed = new Map();
  for (const one of shared) for (const effect of one.effects) slowed.set(effect.job_id, effect);
  const cells = jobs.map((job, i) => {
    const effect = slowed.get(i + 1);
    return !effect ? "no place" : mode === "mig" ? "an instance" : slowdown(effect.slowdown_after, effect.slowdown_after_upper);
  });
  const trial = decisions.some((one) => one.trial) ? "A trial: it pays by expectation, not by the bounds." : "";
  return {
    gpu, mode, texts, text, cells, label: mode === "mig" ? `MIG ${instance(gpu, jobs.length)}` : kModes.find(([id]) => id === mode)[1],
    said: left ? [verdict(false, "keeps apart"), " ", el("span", {}, `${of[left.job_id - 1]}: ${reason(left.explanation)}`)]
      : [verdict(true, "puts together"), " ", el("span", {}, trial)],
  };
}

// `horus inspect --beside`, for two jobs that run alike: what each loses, caps on SMs, and what their users and engines get.
function besideArguments([a, b]) {
  const trains = (job) => job.use === "training" && !serves(job), precision = (job) => (serves(job) ? "" : job.precision);
  if (state.jobs.length !== 2 || precision(a) !== precision(b) || (trains(a) && trains(b) && a.optimizer !== b.optimizer)) return null;
  const line = inspectArguments({ ...a, load: { ...a.load, solve: "" } }, state.gpus);
  if (!trains(a) && trains(b) && b.optimizer !== "sgd") line.push("--optimizer", b.optimizer);
  line.push("--beside", b.model);
  if (serves(b)) return [...line, "--beside-service", serviceMap(b)];
  line.push("--beside-mode", trains(b) ? "training" : "inference", "--beside-batch", String(b.batch));
  for (const dim of dimsOf(b)) line.push("--beside-dim", dim);
  return line;
}

// How two jobs run in each mode of a GPU, as inspect says it; nothing of what does not fit, or is not asked.
async function pairs() {
  const line = besideArguments(state.jobs);
  if (!line) return { options: () => [], files: "" };
  const { text, json } = await asJson(line, state.jobs), on = (gpu) => json.gpus.find((one) => one.gpu_type === gpu && one.fits);
  return { options: (gpu, mode) => (on(gpu)?.options ?? []).filter((one) => one.mode.startsWith(mode)), files: same("pair", line, {}, text, "The two in each mode, on your machine") };
}
const isCapped = (option) => option.caps_pct.some((cap) => cap < 100);
const times = (option, i) => (option?.first_token_ms?.[i] ? el("small", { class: "times" },
  `first ${time(option.first_token_ms[i] * 1e3)}${option.token_ms[i] ? `, each ${time(option.token_ms[i] * 1e3)}` : ""}`) : "");
const pairCells = (option) => option.slowdown.map((x, i) => [...slowdown(x, option.slowdown_upper[i]), times(option, i)]);

function besideTable(rows) {
  const jobs = state.jobs, of = names(jobs);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Slowdowns side by side" }, el("table", {},
    el("thead", {}, el("tr", {}, ...["GPU", "Shared by"].map((text) => el("th", { scope: "col" }, text)),
      ...jobs.map((job, i) => el("th", { scope: "col" }, el("span", { class: "job-name" }, el("b", { class: `chip job-${letter(i)}` }, letter(i)), el("span", {}, of[i])))), el("th", { scope: "col" }, "Horus"))),
    el("tbody", {}, ...rows.map(({ gpu, label, cells, said }, i) => el("tr", { class: rows[i - 1]?.gpu === gpu ? "again" : "" },
      el("th", { scope: "row" }, gpu), el("td", {}, label),
      ...cells.map((cell, i) => el("td", { "data-job": of[i] }, cell)), el("td", { class: "why" }, said))))));
}

async function beside(draw, stale) {
  if (state.jobs.length < 2) return draw(el("p", { class: "note" }, "Add a second job to see who can share a GPU with whom, in which mode, and at what slowdown."));
  const rows = [], { options, files: pair } = await pairs();
  for (const gpu of state.gpus) {
    for (const [mode] of kModes) {
      if (mode === "mig" && !instance(gpu, state.jobs.length)) continue;
      const row = await besideRow(gpu, mode), more = options(gpu, mode);
      const whole = more.find((option) => !isCapped(option));
      if (mode === "mig" && whole && !row.cells.includes("no place")) row.cells = pairCells(whole);
      else row.cells = row.cells.map((cell, i) => (Array.isArray(cell) ? [...cell, times(whole, i)] : cell));
      rows.push(row);
      for (const option of more.filter(isCapped)) {
        const capped = option.caps_pct.findIndex((cap) => cap < 100);
        rows.push({ gpu, label: `MPS, ${letter(capped)} capped at ${option.caps_pct[capped]} %`, cells: pairCells(option), said: "" });
      }
      if (stale()) return undefined;
      draw(besideTable(rows));
    }
  }
  const decided = rows.filter((row) => row.mode), keys = decided.map(({ gpu, mode }) => `${gpu}, ${mode}`);
  const shown = decided[Math.max(0, keys.indexOf(state.besideAt))];
  const files = same("beside", placeArguments(), shown.texts, shown.text);
  files.firstChild.after(field("On", choice(`${shown.gpu}, ${shown.mode}`, keys.map((key) => [key, key]), (key) => { state.besideAt = key; refresh(); }, { id: "beside-at" })));
  files.open = by("beside").querySelector("details")?.open ?? false;
  return draw(besideTable(rows), el("p", { class: "note" }, "How many times as long as alone on the whole GPU. Where Horus keeps jobs apart, the figures say what sharing would cost (--policy first-fit).",
    rows.some((row) => !row.mode) ? " Caps are shares of the SMs, the largest that keep the other within 1.2×; they are reported, not promised." : "",
    rows.some((row) => row.cells.some((cell) => cell[3])) ? " First and each: mean times to the first token and per further one." : ""), files, pair);
}

// ---- The cluster.

function drawButtons() {
  const of = names(state.jobs);
  const button = (properties, ...text) => el("button", { type: "button", ...properties }, ...text);
  by("place-buttons").replaceChildren(
    ...state.jobs.map((job, i) => button({
      class: `job-${letter(i)}`, id: `place-${letter(i)}`, "aria-label": `Place ${of[i]}`,
      onclick: () => { state.queue.push({ ...structuredClone(job), letter: letter(i) }); drawCluster(); },
    }, el("b", {}, letter(i)), el("span", {}, `Place ${of[i]}`))),
    button({ class: "plain", disabled: state.queue.length === 0, onclick: () => { state.queue.pop(); drawCluster(); } }, "Undo"),
    button({ class: "plain", disabled: state.queue.length === 0, onclick: () => { state.queue = []; drawCluster(); } }, "Clear"));
}

const kSharing = [["time-slice", "time slicing"], ["mps", "MPS"], ["mig", "MIG halves"], ["exclusive", "exclusive"]];

// The devices of a node, each with its memory and whose bounds fill it.
function devices(node) {
  const halves = node.sharing === "mig";
  const part = halves && typeOf(node.type).mig.find((one) => one.name === instance(node.type, 2));
  return Array.from({ length: node.count * (halves ? 2 : 1) }, (_, gpu) => ({
    gpu, name: halves ? part.name : node.type, mib: halves ? part.mem_mib : typeOf(node.type).mem_mib, jobs: [],
  }));
}

function nodeBox(node, at, held, of) {
  const edit = (values) => { Object.assign(node, values); if (node.sharing === "mig" && !instance(node.type, 2)) node.sharing = "time-slice"; drawCluster(); };
  return el("article", { class: "node", "aria-label": `Node ${node.name}` },
    el("h3", {}, node.name, el("small", {}, `${node.count} × ${node.type}, ${kSharing.find(([id]) => id === node.sharing)[1]}`)),
    el("div", { class: "devices" }, ...held.map((device) => el("div", {
      class: "device", role: "img",
      "aria-label": `${device.name} ${device.gpu}: ${device.jobs.map((job) => `${of[job.row]} ${gib(job.mib)}, ${factor(job.slowdown)}`).join("; ") || "free"}`,
    }, el("div", { class: "fill" }, ...device.jobs.map((job) => el("i", {
      class: `job-${state.queue[job.row].letter}`, style: { height: `${Math.min(100, 100 * job.mib / device.mib).toFixed(1)}%` }, title: `${of[job.row]}: at most ${gib(job.mib)}`,
    }, el("b", {}, state.queue[job.row].letter), el("span", {}, factor(job.slowdown))))), el("small", {}, device.name, el("br"), gib(device.mib))))),
    el("details", { class: "edit" }, el("summary", {}, "Change"), el("div", { class: "grid" },
      field("Type", choice(node.type, types.map((one) => [one.name, one.name]), (type) => edit({ type }))),
      field("GPUs", choice(String(node.count), ["1", "2", "4", "8"].map((one) => [one, one]), (count) => edit({ count: Number(count) }))),
      field("Shared by", choice(node.sharing, kSharing.filter(([id]) => id !== "mig" || instance(node.type, 2)), (sharing) => edit({ sharing }))),
      state.nodes.length > 1 && el("button", { type: "button", class: "plain", onclick: () => { state.nodes.splice(at, 1); drawCluster(); } }, "Remove node"))));
}

let clusterTurn = 0, placedTurn = 0;
async function drawCluster() {
  const turn = ++clusterTurn, queue = [...state.queue];
  drawButtons();
  const texts = { "cluster.yaml": clusterFile(state.nodes), "jobs.yaml": jobsFile(queue) }, of = names(queue);
  const held = state.nodes.map(devices);
  let decisions = [], json;
  try {
    if (queue.length > 0) ({ json: { decisions }, text: json } = await asJson(placeArguments(), queue, texts));
  } catch (error) {
    if (turn === clusterTurn) {
      by("decisions").replaceChildren(el("li", {}, problem(error)));
      placedTurn = turn;
    }
    return;
  }
  if (turn !== clusterTurn) return;
  const slowed = new Map(); // job and device -> the last word on it
  for (const one of decisions) for (const effect of one.effects) slowed.set(`${effect.job_id} ${effect.node} ${effect.gpu}`, effect.slowdown_after);
  for (const one of decisions) {
    for (const slot of one.slots) {
      held[state.nodes.findIndex((node) => node.name === slot.node)][slot.gpu].jobs.push({
        row: one.job_id - 1, mib: one.gpu_memory_limit_mib ?? one.demand?.memory_upper_mib ?? 0, slowdown: slowed.get(`${one.job_id} ${slot.node} ${slot.gpu}`) ?? 1,
      });
    }
  }
  const open = [...by("cluster").querySelectorAll("details")].map((one) => one.open);
  by("cluster").replaceChildren(...state.nodes.map((node, i) => nodeBox(node, i, held[i], of)),
    state.nodes.length < kMostNodes ? el("button", {
      type: "button", class: "plain", onclick: () => {
        let i = state.nodes.length + 1;
        while (state.nodes.some((node) => node.name === `node-${i}`)) ++i;
        state.nodes.push({ name: `node-${i}`, type: state.gpus[0], count: 2, sharing: "time-slice" });
        drawCluster();
      },
    }, "+ node") : "");
  by("cluster").querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? false; });
  by("decisions").replaceChildren(...decisions.map((one) => el("li", { class: one.verdict === "place" ? "" : "refused" },
    el("b", { class: `chip job-${queue[one.job_id - 1].letter}` }, queue[one.job_id - 1].letter), " ", el("b", {}, one.job), " ", named(one.explanation, of),
    one.service && el("small", { class: "times" }, ` First token ${time(one.service.first_token_us)}, each further ${time(one.service.token_us)}, as this plan leaves it.`),
    one.engine_arguments && el("small", { class: "times" }, " Tell the engine ", el("code", {}, one.engine_arguments)))).reverse());
  const wasOpen = by("cluster-files").querySelector("details")?.open ?? false;
  if (queue.length > 0) {
    by("cluster-files").replaceChildren(same("cluster", placeArguments(), texts, json));
    by("cluster-files").firstChild.open = wasOpen;
  } else {
    by("cluster-files").replaceChildren();
  }
  placedTurn = turn;
}

// ---- All of it, anew when something changed.

let turn = 0, shownTurn = 0, timer;
function refresh() {
  clearTimeout(timer);
  timer = setTimeout(answerAll, 120);
}

async function answerAll() {
  timer = 0;
  const mine = ++turn, stale = () => mine !== turn, began = performance.now();
  drawTabs();
  drawButtons();
  status("Working …");
  const draw = (id) => (...parts) => { if (!stale()) by(id).replaceChildren(...parts); };
  const wasOpen = by("alone").querySelector("details")?.open ?? false;
  try {
    const parts = await alone();
    if (stale()) return;
    draw("alone")(...parts);
    by("alone").querySelector("details.same").open = wasOpen;
    status(`${said} Answered in ${number(Math.max(0.01, (performance.now() - began) / 1e3), 2)} s.`);
  } catch (error) {
    draw("alone")(problem(error));
    if (!stale()) status(error.message);
  }
  try {
    await beside(draw("beside"), stale);
  } catch (error) {
    draw("beside")(problem(error));
  }
  if (!stale()) shownTurn = turn;
}

addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  drop(state.jobs[state.shown], event.dataTransfer.files);
});
by("ask").addEventListener("submit", (event) => event.preventDefault());

types = JSON.parse((await ask(["gpus", "--json"])).out).gpu_types;
models = JSON.parse((await ask(["models", "--json"])).out).models;
drawTabs();
drawJob();
drawGpus();
drawCluster();
refresh();
// For the console, and for tests: settled() when all that is shown answers what was chosen last.
window.horus = { ask, state, settled: () => turn > 0 && shownTurn === turn && !timer && placedTurn === clusterTurn, line: () => inspectArguments(state.jobs[state.shown], state.gpus) };
