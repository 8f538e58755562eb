/** A worker: node worker.js [--server HOST:PORT] [--queue NAME] [--concurrency N] [--lease S] [--grace S] */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { PermanentFailure, RetryAfter, Worker } from "./leaseq.js";

const { values } = parseArgs({
  options: {
    server: { type: "string", default: "127.0.0.1:7480" },
    queue: { type: "string", default: "default" },
    concurrency: { type: "string", default: "10" },
    lease: { type: "string", default: "30" },
    grace: { type: "string", default: "25" },
  },
});

const handlers = {
  async greet({ name }, { attempt }) {
    if (!name) throw new PermanentFailure("nobody to greet");
    if (name === "Godot" && attempt === 1) throw new RetryAfter(200, "not here yet");
    return `Hello, ${name}!`;
  },

  // What waits or fetches takes the signal: then it stops when the lease is lost, the task called
  // off, or the worker stopped.
  async nap({ seconds }, { signal, taskId }) {
    log("napping", { task_id: taskId });
    await sleep(seconds * 1000, undefined, { signal });
    return process.pid;
  },
};

function log(event, fields) {
  console.error(JSON.stringify({ event, ...fields }));
}

const worker = new Worker(values.server, {
  queues: [values.queue],
  handlers,
  concurrency: Number(values.concurrency),
  lease: Number(values.lease) * 1000,
  grace: Number(values.grace) * 1000,
  log,
});
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => worker.stop());
// Not left to end by itself: a handler that did not stop would run on without its lease.
process.exit((await worker.run()) ? 0 : 1);
