// The peer: throughput of an .onnx model in ONNX Runtime on random inputs: node ort_bench.js MODEL [batch [workers [seconds
// [ANSWERS|write:FILE|- [threads]]]]]. Every worker is a thread with a session of its own and `threads` intra-op threads (1) in it.
// Prints the same line as model_bench. With ANSWERS, what model_bench wrote for the same inputs, it runs once instead and
// fails when an output is further than 1e-4 of the largest magnitude away; with write:FILE it runs once and writes its
// outputs as model_bench does. The npm package onnxruntime-node must be found (bench/peers.sh sets NODE_PATH).
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { readFileSync, writeFileSync } = require('fs');

function random(count) { // model_bench's numbers
  const values = new Float32Array(count);
  for (let i = 0, seed = 1; i < count; i++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    values[i] = (seed >>> 8) / (1 << 24) - 0.5;
  }
  return values;
}

async function open(path, batch, threads = 1) {
  const ort = require('onnxruntime-node');
  const session = await ort.InferenceSession.create(path, { intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: 'sequential' });
  const feeds = {};
  session.inputNames.forEach((name, i) => {
    const shape = session.inputMetadata[i].shape.map((d, axis) => (typeof d === 'number' && d > 0 ? d : axis === 0 ? batch : 1));
    if (shape.length) shape[0] = batch;
    feeds[name] = new ort.Tensor('float32', random(shape.reduce((a, b) => a * b, 1)), shape);
  });
  return { session, feeds };
}

async function measure({ path, batch, seconds, threads }) {
  const { session, feeds } = await open(path, batch, threads);
  await session.run(feeds);
  parentPort.postMessage('ready');
  await new Promise(resolve => parentPort.once('message', resolve)); // all start together
  const start = process.hrtime.bigint();
  let runs = 0, took, least = Infinity;
  do {
    const before = process.hrtime.bigint();
    await session.run(feeds);
    least = Math.min(least, Number(process.hrtime.bigint() - before) / 1e6);
    runs++;
    took = Number(process.hrtime.bigint() - start) / 1e9;
  } while (took < seconds);
  parentPort.postMessage({ runs, took, least });
}

async function compare(path, batch, answers) {
  const { session, feeds } = await open(path, batch);
  const results = await session.run(feeds);
  if (answers.startsWith('write:')) {
    const outputs = session.outputNames.map(name => results[name].data);
    writeFileSync(answers.slice(6), Buffer.concat(outputs.map(data => Buffer.from(data.buffer, data.byteOffset, data.byteLength))));
    return;
  }
  const bytes = readFileSync(answers), expected = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  let at = 0, worst = 0, largest = 0;
  for (const name of session.outputNames) {
    for (const value of results[name].data) {
      worst = Math.max(worst, Math.abs(value - expected[at]));
      largest = Math.max(largest, Math.abs(expected[at++]));
    }
  }
  console.log(`${at} values, at most ${(worst / largest).toExponential(1)} of the largest away`);
  if (at !== expected.length || !(worst <= 1e-4 * largest)) throw new Error(`the answers differ (${expected.length} values expected)`);
}

async function main() {
  const [path, batch = 1, workers = 1, seconds = 2] = [process.argv[2], ...process.argv.slice(3, 6).map(Number)];
  if (!path) {
    console.error('usage: ort_bench.js MODEL.onnx [batch [workers [seconds [ANSWERS|write:FILE|- [threads]]]]]');
    process.exit(2);
  }
  const threads = Number(process.argv[7] || 1);
  if (process.argv[6] && process.argv[6] !== '-') return compare(path, batch, process.argv[6]);
  const crew = [...Array(workers)].map(() => new Worker(__filename, { workerData: { path, batch, seconds, threads } }));
  const message = thread => new Promise((resolve, reject) => { thread.once('message', resolve); thread.once('error', reject); });
  await Promise.all(crew.map(message));
  const results = crew.map(message), before = process.cpuUsage();
  crew.forEach(thread => thread.postMessage('go'));
  const done = await Promise.all(results), used = process.cpuUsage(before);
  const rate = done.reduce((sum, r) => sum + r.runs * batch / r.took, 0);
  const busy = (used.user + used.system) / 1e6 / done.reduce((sum, r) => sum + r.runs * batch, 0);
  const rss = process.resourceUsage().maxRSS / 1024;
  console.log(`batch ${batch}, ${workers} workers with ${threads} threads, least ${done[0].least.toFixed(3)} ms a run: ${(1e3 * workers / rate).toFixed(3)} ms a sample, ${(1e3 * busy).toFixed(3)} of the processor, ` +
    `${rate.toFixed(1)} samples/s, ${rss.toFixed(1)} MB`);
  process.exit(0);
}

if (isMainThread) {
  main().catch(error => {
    console.error(`ort_bench: ${error.message}`);
    process.exit(1);
  });
} else {
  measure(workerData);
}
