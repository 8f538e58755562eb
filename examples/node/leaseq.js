/**
 * A leaseq producer and worker, straight on the wire: what docs/other-languages.md tells, in one
 * module. Spans are in milliseconds, and measured with a monotonic clock.
 */
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const definition = loader.loadSync("leaseq/v1/queue.proto", {
  includeDirs: [PROTO],
  keepCase: true,
  defaults: true,
  longs: Number,
  enums: String,
});
const { TaskQueue } = grpc.loadPackageDefinition(definition).leaseq.v1;

const WAIT = 20_000; // of one Lease on an empty queue
const PATIENCE = 10_000; // what a Lease may take beyond its wait
const LAST_WORDS = 3_000; // how long a worker that stops talks to a server that does not answer
const STOPPING_TAKES = 1_000; // what handlers get between being told to stop and being left alone

const MOST_PER_CALL = 1000;
const MOST_BYTES_PER_CALL = 3 * 1024 * 1024;
const MOST_RESULT_BYTES = 1024 * 1024;
const MOST_MESSAGE_BYTES = 8 * 1024;
const MOST_STACK_BYTES = 16 * 1024;

const { status } = grpc;

/** A refusal of an item with one of these stands; with any other code the item is sent again. */
const FINAL = new Set([
  status.FAILED_PRECONDITION,
  status.NOT_FOUND,
  status.INVALID_ARGUMENT,
  status.DATA_LOSS,
]);

/** An Enqueue that ended with one of these may work later. */
const TRANSIENT = new Set([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.ABORTED,
  status.RESOURCE_EXHAUSTED,
]);

/** Thrown by a handler when trying again is useless: the task is given up as failed. */
export class PermanentFailure extends Error {}

/** Thrown by a handler to have its task tried again after `ms`, instead of after its backoff. */
export class RetryAfter extends Error {
  constructor(ms, message = "the handler asked for another attempt") {
    super(message);
    if (!(ms >= 0 && ms <= 365 * 86_400_000)) throw new RangeError("ms must be up to 365 days");
    this.ms = ms;
  }
}

/**
 * Why a handler should stop, as the `reason` of its signal. Its `why` is CANCEL_REQUESTED (it may
 * still finish), SHUTDOWN (its task is given back), or why the lease is lost: LEASE_EXPIRED,
 * LEASE_SUPERSEDED, TASK_CANCELLED, TASK_FINISHED, TASK_NOT_FOUND. What it returns is then dropped.
 */
export class Interrupted extends Error {
  constructor(why) {
    super(`the handler should stop: ${why}`);
    this.why = why;
  }
}

/** A connection to a server at `HOST:PORT`. */
export class Connection {
  #stub;

  constructor(address) {
    this.#stub = new TaskQueue(address, grpc.credentials.createInsecure(), {
      // A connection that died without a word is noticed; a server permits a ping every 5 s.
      "grpc.keepalive_time_ms": 20_000,
      "grpc.keepalive_timeout_ms": 10_000,
      // By default a server that comes back may not be looked for during two minutes.
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2_000,
    });
  }

  /** Return the reply to one call. Every call has a deadline; `signal` cancels it. */
  call(method, request, within, signal) {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + within;
      const hangUp = () => call.cancel();
      const call = this.#stub[method](request, { deadline }, (error, reply) => {
        signal?.removeEventListener("abort", hangUp);
        error ? reject(error) : resolve(reply);
      });
      signal?.addEventListener("abort", hangUp);
    });
  }

  close() {
    this.#stub.close();
  }
}

/**
 * Enqueue `{ queue, type, payload, ... }` (an EnqueueRequest whose payload is an object), and
 * return the EnqueueResponse. Tried again for `within` while the server is away: the key makes
 * that safe, also where only the answer was lost.
 */
export async function enqueue(connection, task, { within = 30_000 } = {}) {
  const request = {
    ...task,
    payload: JSON.stringify(task.payload ?? {}),
    idempotency_key: task.idempotency_key || randomUUID(),
  };
  const until = performance.now() + within;
  for (let failures = 0; ; failures++) {
    try {
      const left = until - performance.now();
      return await connection.call("Enqueue", request, Math.min(left, 5_000));
    } catch (error) {
      const wait = backoff(failures);
      if (!TRANSIENT.has(error.code) || performance.now() + wait >= until) throw error;
      await sleep(wait);
    }
  }
}

/** A task that a worker holds, from its lease until the queue has taken its outcome. */
class Held {
  #controller = new AbortController();
  lost = false;
  expiry; // the timer that ends the lease on this side

  constructor({ task, lease_token, lease_number, attempt }) {
    this.task = task;
    this.ref = { task_id: task.id, lease_token };
    this.context = {
      taskId: task.id,
      queue: task.queue,
      type: task.type,
      attempt,
      leaseNumber: lease_number,
      signal: this.#controller.signal,
    };
    /** Is fulfilled, with a settlement, when the handler is waited for no longer. */
    this.abandoned = new Promise((resolve) => (this.abandon = resolve));
  }

  interrupt(why) {
    this.#controller.abort(new Interrupted(why));
  }
}

/**
 * Runs handlers, `{ type: async (payload, { signal, taskId, attempt, leaseNumber, ... }) => result }`.
 * They share one thread: what computes for long belongs into a `worker_threads` pool, lest it keeps
 * heartbeats from being sent.
 */
export class Worker {
  #connection;
  #workerId; // new for each start, so that a worker never answers for the one before it
  #queues;
  #handlers;
  #concurrency;
  #lease;
  #grace;
  #log;

  #running = new Set();
  #outcomes = new Map(); // Held → what came of it, until the queue has taken it
  #reporting = false;
  #changes = new EventEmitter(); // "change": a slot became free, or the worker is to stop
  #draining = new AbortController();
  #leaving = new AbortController();

  constructor(address, options) {
    const { queues, handlers, concurrency = 10, lease = 30_000, grace = 25_000 } = options;
    if (!(concurrency >= 1 && concurrency <= MOST_PER_CALL)) {
      throw new RangeError("concurrency must be from 1 to 1000");
    }
    this.#connection = new Connection(address);
    const host = hostname().replace(/[^\w.-]/g, "-").slice(0, 50);
    this.#workerId = `${host}:${process.pid}:${randomUUID().slice(0, 8)}`;
    this.#queues = queues;
    this.#handlers = new Map(Object.entries(handlers));
    this.#concurrency = concurrency;
    this.#lease = lease;
    this.#grace = grace;
    this.#log = options.log ?? (() => {});
  }

  /** Stop: the first time after what runs, within the grace period; the second time at once. */
  stop() {
    (this.#draining.signal.aborted ? this.#leaving : this.#draining).abort();
    this.#changes.emit("change");
  }

  /** Work until stopped. Return whether the queue knows what became of every task. */
  async run() {
    const beats = setInterval(() => this.#beat(), this.#lease / 3);
    const drained = this.#drain();
    await this.#keepLeasing();
    await drained;
    await this.#quiet(LAST_WORDS); // what the last Lease brought is given back
    clearInterval(beats);
    this.#connection.close();
    return [...this.#running].every((held) => held.lost);
  }

  async #keepLeasing() {
    let failures = 0;
    while (!this.#draining.signal.aborted) {
      const free = this.#concurrency - this.#running.size;
      if (free === 0) {
        await once(this.#changes, "change");
        continue;
      }
      const asked = performance.now();
      const leased = await this.#leaseUpTo(free);
      // Nothing, and too soon: the server is away, or stops and does not let anybody wait.
      const useless = leased === 0 && performance.now() - asked < WAIT / 2;
      failures = useless ? failures + 1 : 0;
      if (useless) await pause(backoff(failures), this.#draining.signal);
    }
  }

  async #leaseUpTo(free) {
    const request = {
      worker_id: this.#workerId,
      queues: this.#queues,
      types: [...this.#handlers.keys()],
      lease_duration: duration(this.#lease),
      max_tasks: free,
      wait: duration(WAIT),
      call_id: randomUUID(),
    };
    const asked = performance.now();
    const poll = new AbortController();
    const endWait = () => this.#endWait(request.call_id, poll);
    this.#draining.signal.addEventListener("abort", endWait, { once: true });
    try {
      const { tasks } = await this.#connection.call("Lease", request, WAIT + PATIENCE, poll.signal);
      const late = performance.now() - asked - WAIT > this.#lease / 2;
      for (const leased of tasks) this.#receive(leased, late || this.#draining.signal.aborted);
      return tasks.length;
    } catch (error) {
      if (!poll.signal.aborted) this.#log("nothing could be leased", { error: error.message });
      return 0;
    } finally {
      this.#draining.signal.removeEventListener("abort", endWait);
      poll.abort();
    }
  }

  /** End a Lease by a call: to cancel it would lose the tasks of a reply that is on its way. */
  async #endWait(callId, poll) {
    const until = performance.now() + LAST_WORDS;
    // Repeated, as it may overtake the Lease that it is to end, or reach another server.
    while (!poll.signal.aborted && performance.now() < until) {
      const request = { worker_id: this.#workerId, call_id: callId };
      await this.#connection.call("EndWait", request, 1_000, poll.signal).catch(() => {});
      await pause(100, poll.signal);
    }
    poll.abort();
  }

  #receive(leased, unwanted) {
    const held = new Held(leased);
    this.#renew(held, performance.now(), leased.lease_duration);
    this.#run(held, unwanted ? { release: { ...held.ref, undelivered: true } } : this.#handle(held));
  }

  async #run(held, outcome) {
    this.#running.add(held);
    const settlement = await Promise.race([outcome, held.abandoned]);
    if (!held.lost) await this.#report(held, settlement);
    clearTimeout(held.expiry);
    this.#running.delete(held);
    this.#changes.emit("change");
  }

  /** Run the handler, and return as a settlement what came of it; never throws. */
  async #handle({ task, ref, context }) {
    const { signal } = context;
    try {
      const result = await this.#handlers.get(task.type)(JSON.parse(task.payload), context);
      return { complete: { ...ref, result: asJson(result) } };
    } catch (error) {
      const meant = error instanceof PermanentFailure || error instanceof RetryAfter;
      const obeyed = signal.aborted && (error === signal.reason || error?.name === "AbortError");
      // To stop a worker fails no task; and one that was called off ends as cancelled.
      if (!meant && (obeyed || signal.reason?.why === "SHUTDOWN")) {
        this.#log("task interrupted", { task_id: task.id, why: signal.reason.why });
        return { release: ref };
      }
      this.#log("task failed", { task_id: task.id, error: errorType(error) });
      return failure(ref, error);
    }
  }

  /** Tell the queue what became of a task, until it is taken or refused, or the lease is lost. */
  #report(held, settlement) {
    return new Promise((done) => {
      this.#outcomes.set(held, { settlement, done });
      this.#keepReporting();
    });
  }

  /** One call is under way at a time; what comes meanwhile travels in the next one. */
  async #keepReporting() {
    if (this.#reporting) return;
    this.#reporting = true;
    let failures = 0;
    while (this.#outcomes.size > 0) {
      if (await this.#settle(oneCall(this.#outcomes))) failures = 0;
      else await sleep(backoff(failures++));
    }
    this.#reporting = false;
  }

  /** Return whether every one of these was answered for good. */
  async #settle(batch) {
    const settlements = batch.map(([, { settlement }]) => settlement);
    let results;
    try {
      ({ results } = await this.#connection.call("Settle", { settlements }, this.#soon));
    } catch (error) {
      this.#log("outcomes could not be reported", { error: error.message });
      return false;
    }
    const answered = batch.map(([held, outcome], index) =>
      this.#takeAnswer(held, outcome, results[index].refused),
    );
    return answered.every(Boolean);
  }

  #takeAnswer(held, outcome, refused) {
    if (refused && !FINAL.has(refused.code)) return false;
    if (refused?.code === status.INVALID_ARGUMENT && outcome.settlement.complete) {
      const reason = `the queue refused the result: ${refused.message}`;
      outcome.settlement = failure(held.ref, new PermanentFailure(reason));
      return true; // and the next call says so
    }
    if (refused) this.#log("outcome refused", { task_id: held.task.id, why: refused.reason });
    this.#outcomes.delete(held);
    outcome.done();
    return true;
  }

  /**
   * Renew the leases of all tasks whose handlers run. An outcome is not renewed for: two thirds of a
   * lease at least are left to report it, and if nobody takes it by then, another worker shall try.
   */
  async #beat() {
    const beating = [...this.#running].filter((held) => !held.lost && !this.#outcomes.has(held));
    if (beating.length === 0) return;
    const request = {
      worker_id: this.#workerId,
      leases: beating.map(({ ref }) => ref),
      lease_duration: duration(this.#lease),
    };
    const sent = performance.now();
    let results;
    try {
      ({ results } = await this.#connection.call("Heartbeat", request, this.#soon));
    } catch (error) {
      this.#log("heartbeat failed", { error: error.message });
      return;
    }
    beating.forEach((held, index) => {
      const { lost, cancel_requested, lease_duration } = results[index];
      const over = held.lost || this.#outcomes.has(held) || !this.#running.has(held);
      if (over) return; // its handler ended while this was on its way
      if (lost && FINAL.has(lost.code)) this.#lose(held, lost.reason);
      if (lost) return;
      this.#renew(held, sent, lease_duration);
      if (cancel_requested) held.interrupt("CANCEL_REQUESTED");
    });
  }

  #renew(held, since, remaining) {
    clearTimeout(held.expiry);
    const left = since + milliseconds(remaining) - performance.now();
    held.expiry = setTimeout(() => this.#lose(held, "LEASE_EXPIRED"), left);
  }

  #lose(held, why) {
    this.#log("lease lost", { task_id: held.task.id, why });
    clearTimeout(held.expiry);
    held.lost = true;
    held.interrupt(why);
    this.#outcomes.get(held)?.done();
    this.#outcomes.delete(held);
  }

  async #drain() {
    const { signal: leaving } = this.#leaving;
    if (!this.#draining.signal.aborted) await once(this.#draining.signal, "abort");
    await this.#quiet(this.#grace, leaving);
    for (const held of this.#running) held.interrupt("SHUTDOWN");
    await this.#quiet(STOPPING_TAKES, leaving);
    for (const held of this.#running) held.abandon({ release: held.ref });
    await this.#quiet(LAST_WORDS);
  }

  /** Wait until nothing runs, for `ms` at most, and no longer than `enough` says. */
  async #quiet(ms, enough) {
    const late = AbortSignal.timeout(ms);
    while (this.#running.size > 0 && !late.aborted && !enough?.aborted) {
      await once(this.#changes, "change", { signal: late }).catch(() => {});
    }
  }

  /** A deadline for what has to be through before the next heartbeat is due. */
  get #soon() {
    return Math.max(this.#lease / 3, 1_000);
  }
}

/** The wait after so many failures: doubled each time, with up to half as much again by chance. */
function backoff(failures) {
  const wait = Math.min(50 * 2 ** Math.min(failures, 10), 5_000);
  return wait + (Math.random() * wait) / 2;
}

async function pause(ms, signal) {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

function duration(ms) {
  const whole = Math.round(ms);
  return { seconds: Math.floor(whole / 1000), nanos: (whole % 1000) * 1e6 };
}

function milliseconds({ seconds, nanos }) {
  return seconds * 1000 + nanos / 1e6;
}

function asJson(result) {
  let text;
  try {
    text = JSON.stringify(result) ?? "";
  } catch (error) {
    throw new PermanentFailure(`the result cannot be kept as JSON: ${error.message}`);
  }
  if (Buffer.byteLength(text) > MOST_RESULT_BYTES) {
    throw new PermanentFailure("the result has more than 1 MiB");
  }
  return text;
}

function failure(ref, error) {
  const fail = {
    ...ref,
    error: {
      type: errorType(error),
      message: cut(error?.message ?? error, MOST_MESSAGE_BYTES),
      traceback: cut(error?.stack ?? "", MOST_STACK_BYTES),
    },
  };
  if (error instanceof PermanentFailure) fail.retry = false;
  if (error instanceof RetryAfter) fail.retry_after = duration(error.ms);
  return { fail };
}

function errorType(error) {
  return error instanceof Error ? error.constructor.name : typeof error;
}

/** Return the first bytes of a text; by way of UTF-8, as half of a pair of surrogates cannot travel. */
function cut(value, bytes) {
  return Buffer.from(String(value)).subarray(0, bytes).toString();
}

/** Return as many of these outcomes as one Settle may carry, and at least one. */
function oneCall(outcomes) {
  const batch = [];
  let room = MOST_BYTES_PER_CALL;
  for (const entry of outcomes) {
    const [, { settlement }] = entry;
    room -= 1024 + Buffer.byteLength(settlement.complete?.result ?? "");
    if (settlement.fail) room -= MOST_MESSAGE_BYTES + MOST_STACK_BYTES;
    if (batch.length === MOST_PER_CALL || (batch.length > 0 && room < 0)) break;
    batch.push(entry);
  }
  return batch;
}
