// SPDX-License-Identifier: Apache-2.0
// Runs the command. page.js puts this behind emscripten's glue, which defines horus(), in one worker: from a blob, so that the page's
// content security policy holds here too. One instance per question, as a process is: nothing of one is left for the next.
"use strict";
let program = null; // the compiled module
const nets = new Map(); // path -> bytes

// Files are {path, text}, {path, bytes} or {path, file}: the last is read where the command reads, so weights that it skips cost nothing.
async function answer(argv, files) {
  const out = [], err = [];
  let code = 0;
  const module = await horus({
    arguments: argv,
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(program, imports).then((instance) => done(instance));
      return {};
    },
    preRun: [(m) => m.FS.init(() => null, (byte) => out.push(byte), (byte) => err.push(byte))],
    onExit: (status) => { code = status; },
  });
  const { FS } = module;
  FS.mkdirTree("/files");
  FS.mkdirTree("/dropped");
  const dropped = files.filter((one) => one.file).map((one) => ({ name: one.path, data: one.file }));
  if (dropped.length > 0) FS.mount(module.WORKERFS, { blobs: dropped }, "/dropped");
  for (const { path, text, bytes, file } of files) {
    const at = `/files/${path}`;
    FS.mkdirTree(at.slice(0, at.lastIndexOf("/")));
    if (file) FS.symlink(`/dropped/${path}`, at);
    else FS.writeFile(at, text ?? bytes ?? nets.get(path));
  }
  FS.chdir("/files");
  const returned = module.callMain(argv);
  const decoded = (bytes) => new TextDecoder().decode(new Uint8Array(bytes));
  return { code: code || returned || 0, out: decoded(out), err: decoded(err) };
}

let last = Promise.resolve(); // one question at a time
onmessage = ({ data }) => {
  if (data.program) {
    program = data.program;
    for (const [path, bytes] of data.nets) nets.set(path, bytes);
    return;
  }
  last = last.then(() => answer(data.argv, data.files))
    .then((reply) => postMessage({ id: data.id, ...reply }),
      (error) => postMessage({ id: data.id, code: 1, out: "", err: `horus: ${error.message ?? error}\n` }));
};
