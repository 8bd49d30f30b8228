/**
 * A model provider in its own process, with OpenAI's format. The model's name decides: `after-1000` answers after 1,000
 * ms, `words-20-500` streams 20 words, one every 500 ms, `text-800-25` a text whose first word comes after 800 ms and the others
 * every 25 ms, any other answers at once. Prints its base URL.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";

interface Asked {
  model: string;
  stream?: boolean;
}

const WORDS = 2;
const TEXT =
  "A balcony that faces north gets bright but indirect light for most of the day. Ferns, hostas and ivy feel at home there, and so does a pot of mint close to the door. Put the tall ones behind the low ones, water them in the morning, and let the top of the soil dry before you do so again. In autumn, move what is tender against the wall.";
const usage = { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 };
const head = (object: string, model: string) => ({ id: "chatcmpl-1", object, created: 1_700_000_000, model });

const server = createServer((request, response) => {
  if (request.headers.authorization !== `Bearer ${GOOD_KEY}`) response.writeHead(401).end("{}");
  else if (request.method === "GET") sendJson(response, { object: "list", data: [] });
  else answer(request, response).catch(() => response.destroy());
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { model, stream } = (await json(request)) as Asked;
  const [, delayMs] = /^after-(\d+)$/.exec(model) ?? [];
  if (delayMs) await sleep(Number(delayMs));
  if (stream) return sendWords(response, model);
  const message = { role: "assistant", content: "An answer." };
  sendJson(response, {
    ...head("chat.completion", model),
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage,
  });
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function sendWords(response: ServerResponse, model: string): Promise<void> {
  const [, firstMs, textEveryMs] = /^text-(\d+)-(\d+)$/.exec(model) ?? [];
  const [, count = WORDS, wordEveryMs = 0] = /^words-(\d+)-(\d+)$/.exec(model) ?? [];
  const words = firstMs ? TEXT.split(" ").map((word) => `${word} `) : Array(Number(count)).fill("word ");
  const everyMs = Number(textEveryMs ?? wordEveryMs);
  const sendChunk = (delta: object, finish_reason: string | null, more = {}) => {
    const choices = [{ index: 0, delta, finish_reason }];
    response.write(
      `data: ${JSON.stringify({ ...head("chat.completion.chunk", model), choices, ...more })}\n\n`,
    );
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (firstMs) await sleep(Number(firstMs));
  for (const [at, content] of words.entries()) {
    // A timer of 0 ms takes more than one, which would count as overhead of what is measured.
    if (at > 0 && everyMs > 0) await sleep(everyMs);
    if (response.destroyed) break;
    sendChunk({ role: "assistant", content }, null);
  }
  sendChunk({}, "stop", { usage });
  response.end("data: [DONE]\n\n");
}

// Longer than the pause between measurements: closing an idle connection that a gateway reuses would cause errors.
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`),
);
