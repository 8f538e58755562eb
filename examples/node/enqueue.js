/** A producer: node enqueue.js [--server HOST:PORT] [--queue NAME] [--key KEY] TYPE [PAYLOAD] */
import { parseArgs } from "node:util";
import { Connection, enqueue } from "./leaseq.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: "string", default: "127.0.0.1:7480" },
    queue: { type: "string", default: "default" },
    key: { type: "string" },
    within: { type: "string", default: "30" },
  },
});
const [type, payload = "{}"] = positionals;

const connection = new Connection(values.server);
try {
  const task = { queue: values.queue, type, payload: JSON.parse(payload), idempotency_key: values.key };
  const reply = await enqueue(connection, task, { within: Number(values.within) * 1000 });
  console.log(reply.task.id, reply.created ? "is new" : "was there already");
} catch (error) {
  console.error(`not enqueued: ${error.message}`);
  process.exitCode = 1;
} finally {
  connection.close();
}
