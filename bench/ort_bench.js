// The peer: throughput of an .onnx model in ONNX Runtime on random inputs: node ort_bench.js MODEL [batch [workers [seconds]]].
// Every worker is a thread with a session of its own and one thread in it. Prints the same line as model_bench. The npm
// package onnxruntime-node must be found (bench/peers.sh sets NODE_PATH).
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

async function work({ path, batch, seconds }) {
  const ort = require('onnxruntime-node');
  const session = await ort.InferenceSession.create(path, { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential' });
  const feeds = {};
  session.inputNames.forEach((name, i) => {
    const shape = session.inputMetadata[i].shape.map((d, axis) => (typeof d === 'number' && d > 0 ? d : axis === 0 ? batch : 1));
    if (shape.length) shape[0] = batch;
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1)).map(() => Math.random() - 0.5);
    feeds[name] = new ort.Tensor('float32', values, shape);
  });
  await session.run(feeds);
  const start = process.hrtime.bigint();
  let runs = 0, took;
  do {
    await session.run(feeds);
    runs++;
    took = Number(process.hrtime.bigint() - start) / 1e9;
  } while (took < seconds);
  return took / runs;
}

if (isMainThread) {
  const [path, batch = 1, workers = 1, seconds = 2] = [process.argv[2], ...process.argv.slice(3).map(Number)];
  if (!path) {
    console.error('usage: ort_bench.js MODEL.onnx [batch [workers [seconds]]]');
    process.exit(2);
  }
  Promise.all([...Array(workers)].map(() => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: { path, batch, seconds } });
    worker.once('message', resolve);
    worker.once('error', reject);
  }))).then(took => {
    const rate = took.reduce((sum, t) => sum + batch / t, 0);
    const rss = process.resourceUsage().maxRSS / 1024;
    console.log(`batch ${batch}, ${workers} workers: ${(1e3 * workers / rate).toFixed(3)} ms a sample, ${rate.toFixed(1)} samples/s, ${rss.toFixed(1)} MB`);
    process.exit(0);
  }).catch(error => {
    console.error(`ort_bench: ${error.message}`);
    process.exit(1);
  });
} else {
  work(workerData).then(took => parentPort.postMessage(took));
}
