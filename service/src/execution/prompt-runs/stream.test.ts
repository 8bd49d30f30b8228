import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { createDraft } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import {
  executionOf,
  followRun,
  gatedPieces,
  readWholeStream,
  streamedRunOf,
  streamRun,
} from "../../../test/run-streams.ts";
import { createProviderKey, newestRun, providersAt, run, runToCompletion } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import type { Member } from "../../core/context.ts";
import { BLOCK, GrowingText } from "../../core/growing-text.ts";
import { newUuid, toUuid } from "../../core/ids.ts";
import { readEach } from "../../core/read-each.ts";
import { EventStreamResponse, type StreamedEvent } from "../../platform/http/route.ts";
import { executePrompt } from "./execute.ts";
import { LiveEvents } from "./live-events.ts";
import { LiveRun, MAX_UNREAD } from "./live-runs.ts";

const MARKER = "the-authors-secret-prompt";
const formats = ["openai", "anthropic", "google", "openai-compatible"] as const;

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
const keys = new Map<string, string>();
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({
    providers: providersAt(provider),
    streamTimeouts: { pingMs: 40 },
  });
  owner = await market.createUser();
  productId = await createDraft(owner, {
    content: `${MARKER} {{topic}}`,
    compatibility: ["openai", "anthropic", "google"],
  });
  for (const format of formats)
    keys.set(
      format,
      await createProviderKey(owner, {
        provider: format,
        ...(format === "openai-compatible" && { baseUrl: provider.url }),
      }),
    );
});
after(async () => {
  await market.close();
  await provider.close();
});

const requestOf = (format: string, more: object = {}) => ({
  ...{ productId, apiKeyId: keys.get(format)!, options: { model: "some-model" } },
  ...more,
});
const opens = (format: string, more: object = {}, headers: Record<string, string> = {}) =>
  streamRun(market.origin, owner, requestOf(format, more), headers);
const read = async (id: string, by = owner) => (await by.get(`/v1/ai/executions/${id}`)).body.data;

for (const format of formats)
  suite(`a stream of ${format}`, () => {
    test("completed run: events for the start, each piece and the result, which the history stores", async () => {
      const gated = gatedPieces();
      const usage = { input: 100, output: 20 };
      provider.next({ stream: { pieces: ["Hel", "lo ", "you"], usage, gate: gated.gate } });
      gated.allow(1);
      const listener = await opens(format);
      const { "content-type": type, "cache-control": caching } = listener.headers;
      assert.deepEqual([listener.status, type, caching], [200, "text/event-stream", "no-store"]);
      await listener.waitForEvents(2);
      assert.equal(streamedRunOf(listener).text, "Hel", "received before the rest is sent");
      gated.allowAll();
      const { text, end } = await readWholeStream(listener);
      assert.equal(text, "Hello you");
      assert.equal(listener.events[0]!.type, "execution.started");
      const { id, mode, status, output, variables, usage: storedUsage } = await read(end.executionId);
      assert.deepEqual(
        { id, mode, status, output, variables, usage: storedUsage },
        {
          ...{ id: executionOf(listener), mode: "stream", status: "completed", output: "Hello you" },
          ...{ variables: { topic: "rain" }, usage: end.usage },
        },
      );
      assert.deepEqual(
        [
          end.output,
          end.usage.totalTokens,
          end.usage.estimated,
          end.metadata.mode,
          end.metadata.finishReason,
        ],
        ["Hello you", 120, false, "stream", "stop"],
      );
    });

    test("event ids: count the UTF-16 units sent so far", async () => {
      provider.next({ stream: { pieces: ["Grüße ", "👩‍🚀", "漢字"], chunk: 3 } });
      const listener = await opens(format);
      await readWholeStream(listener);
      let length = 0;
      for (const { id, type, data } of listener.events) {
        if (type === "output.delta") length += JSON.parse(data).text.length;
        if (type !== "execution.completed") assert.equal(id, String(length));
      }
      assert.equal(listener.events.at(-1)!.id, "end");
    });
  });

suite("request for a stream", () => {
  test("Accept: text/event-stream: streams unless JSON is accepted too", async () => {
    for (const [accept, type] of [
      ["text/event-stream", "text/event-stream"],
      ["application/json, text/event-stream", "application/json; charset=utf-8"],
      ["*/*", "application/json; charset=utf-8"],
    ] as const) {
      const reply = await run(owner, { productId }, { accept });
      assert.deepEqual([reply.status, reply.headers.get("content-type")], [200, type]);
    }
  });

  test("invalid request: is refused as without a stream", async () => {
    const stranger = await market.createUser();
    assertError(await run(stranger, { productId, stream: true }), 404, "PRODUCT_NOT_FOUND");
    const wrong = await run(owner, { productId, stream: true, variables: { nope: "x" } });
    assertError(wrong, 422, "VALIDATION_ERROR", "variables.nope");
    const text = await run(owner, { productId, stream: "yes" });
    assertError(text, 400, "INVALID_REQUEST", "stream");
  });

  test("sandbox: streams, its magic models too", async () => {
    const { text, end } = await readWholeStream(await streamRun(market.origin, owner, { productId }));
    assert.equal(end.output, text);
    for (const model of ["sandbox-cut", "sandbox-badsse"]) {
      const received = await readWholeStream(
        await streamRun(market.origin, owner, { productId, options: { model } }),
      );
      assert.equal(received.end.code, "PROVIDER_BAD_RESPONSE");
      assert.match(received.text, /^\[sandbox\] A practice/);
    }
    assertError(
      await run(owner, { productId, stream: true, options: { model: "sandbox-429" } }),
      429,
      "PROVIDER_RATE_LIMITED",
    );
  });

  test("empty answer: completes", async () => {
    provider.next({ stream: { pieces: [], stop: "length" } });
    const { types, end } = await readWholeStream(await opens("openai"));
    assert.deepEqual(types, ["execution.started", "execution.completed"]);
    assert.deepEqual([end.output, end.metadata.finishReason], ["", "length"]);
  });

  test("silent stream: gets pings", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { gate: gated.gate } });
    gated.allow(1);
    const listener = await opens("openai");
    await listener.until(() => listener.pings >= 2);
    gated.allowAll();
    await readWholeStream(listener);
  });
});

suite("reconnect to a stream", () => {
  test("running: continues after Last-Event-ID", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two ", "three"], gate: gated.gate } });
    gated.allow(2);
    const first = await opens("openai", {}, { "idempotency-key": newUuid(new Date()) });
    await first.until(() => streamedRunOf(first).text === "One two ");
    first.close();
    const back = await followRun(market.origin, owner, executionOf(first), "4");
    await back.until(() => streamedRunOf(back).text === "two ");
    gated.allowAll();
    const { types, text } = await readWholeStream(back);
    assert.deepEqual([types[0], text], ["output.delta", "two three"]);
  });

  test("ended: the same events", async () => {
    provider.next({ stream: { pieces: ["One ", "two"] } });
    const first = await opens("openai");
    const { end } = await readWholeStream(first);
    const id = end.executionId;
    const again = await readWholeStream(await followRun(market.origin, owner, id));
    assert.deepEqual([again.types[0], again.text, again.end], ["execution.started", "One two", end]);
    const rest = await readWholeStream(await followRun(market.origin, owner, id, "4"));
    assert.deepEqual([rest.types, rest.text], [["output.delta", "execution.completed"], "two"]);
    for (const last of ["7", "500", "end"]) {
      const { types } = await readWholeStream(await followRun(market.origin, owner, id, last));
      assert.deepEqual(types, ["execution.completed"]);
    }
  });

  test("broken off: the error event", async () => {
    provider.next({ stream: { breaks: "cut", after: 1 } });
    const first = await opens("openai");
    const { end } = await readWholeStream(first);
    const again = await readWholeStream(await followRun(market.origin, owner, executionOf(first)));
    assert.deepEqual([again.text, again.end.code, again.end.message], ["An ", end.code, end.message]);
    assert.deepEqual([again.end.details.source, again.end.details.attempts], ["provider", 1]);
  });

  test("not stored: the end event without output", async () => {
    const options = { model: "some-model", store: false };
    const { end, text } = await readWholeStream(await opens("openai", { options }));
    assert.equal(text, "An answer.");
    const again = await readWholeStream(await followRun(market.origin, owner, end.executionId));
    assert.deepEqual(again.types, ["execution.started", "execution.completed"]);
    assert.equal(again.end.output, null);
    provider.next({ stream: { breaks: "cut", after: 1 } });
    const cut = await opens("openai", { options });
    await readWholeStream(cut);
    const { output, variables, usage } = await read(executionOf(cut));
    assert.deepEqual([output, variables, usage.estimated], [null, null, true]);
  });

  test("sync run: its events can be streamed", async () => {
    const { data } = (await run(owner, requestOf("openai"))).body;
    const again = await readWholeStream(await followRun(market.origin, owner, data.executionId));
    assert.deepEqual([again.text, again.end], ["An answer.", data]);
  });

  test("invalid id or another user's run: is refused", async () => {
    const { data } = (await run(owner, requestOf("openai"))).body;
    const path = `/v1/ai/executions/${data.executionId}/events`;
    for (const id of ["nonsense", "-1", "1.5", "evt_1"])
      assertError(await owner.get(path, { "last-event-id": id }), 400, "INVALID_REQUEST", "Last-Event-ID");
    const stranger = await market.createUser();
    assertError(await stranger.get(path), 404, "EXECUTION_NOT_FOUND");
    assertError(await owner.get("/v1/ai/executions/exec_nope/events"), 404, "EXECUTION_NOT_FOUND");
  });

  test("other process: streams while the run continues, and after it", async () => {
    const { origin } = await market.startNode();
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two ", "three"], gate: gated.gate } });
    gated.allow(1);
    const first = await opens("openai");
    await first.waitForEvents(2);
    const elsewhere = await followRun(origin, owner, executionOf(first));
    await elsewhere.until(() => streamedRunOf(elsewhere).text === "One ");
    gated.allowAll();
    const { end } = await readWholeStream(first);
    assert.deepEqual(await readWholeStream(elsewhere), {
      types: elsewhere.events.map(({ type }) => type),
      text: "One two three",
      end,
    });
  });
});

test("random reconnects at several processes: no event is lost or repeated", async () => {
  const { origin } = await market.startNode();
  const plan = fc.record({
    pieces: fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
      minLength: 1,
      maxLength: 12,
    }),
    // After how many events the stream breaks, and at which process its reader reconnects.
    losses: fc.array(fc.tuple(fc.nat({ max: 3 }), fc.boolean()), { minLength: 1, maxLength: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ pieces, losses }) => {
      const gated = gatedPieces();
      provider.next({ stream: { pieces, gate: gated.gate } });
      gated.allow(1);
      const first = await opens("openai", {}, { "idempotency-key": newUuid(new Date()) });
      await first.waitForEvents(2);
      first.close();
      const text = [streamedRunOf(first).text];
      let last = first.lastEventId;
      gated.allowAll();
      for (let at = 0; last !== "end"; at++) {
        const [most, isElsewhere] = losses[at % losses.length]!;
        const back = await followRun(isElsewhere ? origin : market.origin, owner, executionOf(first), last);
        await Promise.race([back.waitForEvents(most + 1), back.ended]);
        back.close();
        text.push(streamedRunOf(back).text);
        last = back.lastEventId || last;
      }
      assert.equal(text.join(""), pieces.join(""));
    }),
    { numRuns: runs(10), endOnFailure: true },
  );
});

test("silent run: the stream opens after a while and ends with the error", async () => {
  const { liveRuns: live } = market.service.ctx;
  const { opensAfterMs } = live;
  live.opensAfterMs = 0;
  const gated = gatedPieces();
  provider.next({ stream: { pieces: [], breaks: "cut", gate: gated.gate } });
  const listener = await opens("openai");
  live.opensAfterMs = opensAfterMs;
  // An earlier error would be the response.
  gated.allowAll();
  const { types, end } = await readWholeStream(listener);
  assert.deepEqual([types, end.code], [["execution.started", "execution.failed"], "PROVIDER_BAD_RESPONSE"]);
});

test("process whose memory for answers is full: starts no run until some have ended", async () => {
  const { ctx } = market.service;
  const full = ctx.liveRuns.begin(ctx.newId());
  for (let megabytes = 0; megabytes < 65; megabytes++) full.append("x".repeat(1_048_576));
  assertError(await run(owner, { productId }), 503, "SERVICE_UNAVAILABLE");
  ctx.liveRuns.remove(full.id);
  assert.equal((await run(owner, { productId })).status, 200);
});

suite("client of a stream that disconnects or stops reading", () => {
  test("disconnects: the call is aborted within a second, and the output so far is stored with estimated tokens", async (t) => {
    const server = await startProviderServer();
    t.after(() => server.close());
    const apiKeyId = await createProviderKey(owner, { provider: "openai-compatible", baseUrl: server.url });
    server.next({ stream: { pieces: ["One ", "two"], breaks: "stall", after: 1 } });
    const listener = await opens("openai", { apiKeyId });
    await listener.waitForEvents(2);
    const goneAt = performance.now();
    listener.close();
    await server.clientGone;
    assert.ok(performance.now() - goneAt < 1_000);
    const id = executionOf(listener);
    const { status, error, output, usage } = await becomes(
      () => read(id),
      (data) => data.status !== "running",
    );
    assert.deepEqual([status, error.code, output], ["canceled", "client_gone", "One "]);
    assert.deepEqual([usage.completionTokens, usage.estimated], [1, true]);
  });

  /** A stream without a reader. */
  const opensUnread = async () => {
    const caller = { kind: "key", userId: owner.userId, role: "user", plan: "free" } as unknown as Member;
    const request = { ...requestOf("openai"), variables: { topic: "rain" }, stream: true };
    const stream = await executePrompt(
      market.service.ctx,
      caller,
      { ...request, options: { ...request.options, store: true } },
      {
        acceptsEvents: false,
        prefer: { respondAsync: false, waitSeconds: null },
        disconnectSignal: () => new AbortController().signal,
      },
    );
    assert.ok(stream instanceof EventStreamResponse);
    return stream;
  };

  test("stops reading: the provider is read at most 256 KiB ahead, and all of it after the reader continues", async () => {
    const pieces = Array.from({ length: 30 }, () => "x".repeat(100_000));
    provider.next({ stream: { pieces } });
    const stream = await opensUnread();
    const live = market.service.ctx.liveRuns.get(toUuid("exec", stream.name!)!)!;
    await becomes(() => live.isAhead, Boolean);
    // Another run receives all of the same answer meanwhile, so this one had the time, too.
    provider.next({ stream: { pieces } });
    assert.equal((await runToCompletion(owner, requestOf("openai"))).output.length, 3_000_000);
    const { text } = live;
    assert.ok(
      text.length <= MAX_UNREAD + 100_000,
      `${text.length} characters are in memory without a reader`,
    );
    let collected = "";
    const events: string[] = [];
    await readEach(stream.events(new AbortController().signal), ({ type, data }) => {
      events.push(type!);
      if (type === "output.delta") collected += JSON.parse(data!).text;
      return undefined;
    });
    assert.deepEqual([collected, events.at(-1)], [pieces.join(""), "execution.completed"]);
  });

  test("reads nothing for too long: the run is canceled", async () => {
    provider.next({ stream: { breaks: "stall", after: 1 } });
    const stream = await opensUnread();
    stream.onEnd();
    const { error } = await becomes(
      () => newestRun(owner),
      ({ status }) => status === "canceled",
    );
    assert.equal(error.code, "client_gone");
  });

  test("disconnects with an Idempotency-Key: the run completes, and the repeated request gets all events", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two"], gate: gated.gate } });
    gated.allow(1);
    const headers = { "idempotency-key": "patient stream" };
    const first = await opens("openai", {}, headers);
    await first.waitForEvents(2);
    first.close();
    const before = provider.requests.length;
    const joined = await opens("openai", {}, headers);
    assert.equal(joined.headers["idempotent-replayed"], "true");
    await joined.waitForEvents(2);
    gated.allowAll();
    const { text, end } = await readWholeStream(joined);
    assert.deepEqual([text, end.executionId], ["One two", executionOf(first)]);
    const replayed = await readWholeStream(await opens("openai", {}, headers));
    assert.deepEqual([replayed.text, replayed.end], [text, end]);
    assert.equal(provider.requests.length, before, "no second call");
    const other = await opens("openai", { variables: { topic: "other" } }, headers);
    assert.equal(other.status, 422);
  });

  test("repeated request before the first output: joins the run and gets all events", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two"], gate: gated.gate } });
    const before = provider.requests.length;
    const headers = { "idempotency-key": "no word yet" };
    const first = opens("openai", {}, headers);
    await becomes(
      async () => provider.requests.length,
      (count) => count > before,
    );
    const joined = await opens("openai", {}, headers);
    assert.deepEqual([joined.status, joined.headers["idempotent-replayed"]], [200, "true"]);
    await joined.waitForEvents(1);
    const other = await opens("openai", { variables: { topic: "other" } }, headers);
    assert.equal(other.status, 422);
    gated.allowAll();
    const [collected, repeated] = [await readWholeStream(await first), await readWholeStream(joined)];
    assert.deepEqual([repeated.text, repeated.end], ["One two", collected.end]);
    assert.equal(provider.requests.length, before + 1);
  });

  test("repeated request without a stream during the run: 409", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { gate: gated.gate } });
    const before = provider.requests.length;
    const headers = { "idempotency-key": "no stream" };
    const first = run(owner, requestOf("openai"), headers);
    await becomes(
      async () => provider.requests.length,
      (count) => count > before,
    );
    assertError(await run(owner, requestOf("openai"), headers), 409, "IDEMPOTENCY_IN_PROGRESS");
    gated.allowAll();
    assert.equal((await first).status, 200);
  });

  test("requests at once with one Idempotency-Key: one call of the provider", async () => {
    const before = provider.requests.length;
    const gated = gatedPieces();
    provider.next({ stream: { gate: gated.gate } });
    gated.allow(1);
    const headers = { "idempotency-key": "fifty streams" };
    const all = Array.from({ length: runs(50) }, () => opens("openai", {}, headers));
    const [first] = (await Promise.all(all)).filter(({ status }) => status === 200);
    gated.allowAll();
    const { end } = await readWholeStream(first!);
    for (const listener of await Promise.all(all)) {
      if (listener.status === 200)
        assert.equal((await readWholeStream(listener)).end.executionId, end.executionId);
      else assert.equal(listener.status, 409);
    }
    assert.equal(provider.requests.length, before + 1);
  });
});

suite("pieces of a growing text", () => {
  const unit = fc.string({ unit: "grapheme", maxLength: 40 });

  test("random texts: no surrogate pair is split, and the pieces join to the text", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(unit, { maxLength: 12 }),
        fc.nat(),
        fc.constantFrom(0, BLOCK - 5, BLOCK - 1),
        async (parts, received, pad) => {
          const begin = "x".repeat(pad);
          const text = begin + parts.join("");
          const offset = text.length === 0 ? 0 : received % (text.length + 1);
          const live = new LiveRun(newUuid(new Date()));
          const collected: StreamedEvent[] = [];
          const { signal } = new AbortController();
          const reading = new LiveEvents(live, { offset, signal }).readEach(
            (event) => void collected.push(event),
          );
          // Halves of surrogate pairs are input, too, and some are at the end of a block.
          live.append(begin);
          for (const letter of parts.join("")) {
            for (const half of letter.split("")) live.append(half);
            await Promise.resolve();
          }
          live.end({ type: "execution.completed", data: {} });
          await reading;
          const deltas = collected.filter(({ type }) => type === "output.delta");
          const pieces = deltas.map(({ data }) => JSON.parse(data!).text as string);
          assert.equal(pieces.join(""), text.slice(offset));
          for (const piece of pieces.slice(0, -1)) assert.doesNotMatch(piece, /[\ud800-\udbff]$/);
          assert.equal(collected.at(-1)!.id, "end");
        },
      ),
    );
  });

  test("long text: no piece exceeds an event, and none is split at the end of a block", () => {
    const rocket = "\u{1f680}";
    const text = `${"x".repeat(BLOCK - 1)}${rocket}${"y".repeat(40_000)}`;
    const growing = new GrowingText(text.slice(0, BLOCK));
    assert.equal(growing.after(0, false).length, BLOCK - 1);
    assert.equal(growing.after(BLOCK - 1, true), rocket[0], "the end of the text may be half a character");
    growing.add(text.slice(BLOCK));
    let offset = 0;
    const pieces = [];
    for (let piece = growing.after(offset, true); piece !== ""; piece = growing.after(offset, true)) {
      pieces.push(piece);
      offset += piece.length;
    }
    assert.equal(pieces.join(""), text);
    assert.equal(String(growing), text);
    assert.ok(pieces.every((piece) => piece.length <= BLOCK + 1));
    assert.ok(pieces[0]!.endsWith(rocket));
    assert.equal(growing.after(1_000_000, true), "");
    assert.equal(growing.after(Number.POSITIVE_INFINITY, true), "");
  });
});
