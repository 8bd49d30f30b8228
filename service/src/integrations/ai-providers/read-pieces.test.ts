import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { OnPiece, ProviderAnswer, ProviderCall } from "./ai-provider.ts";
import { readPieces } from "./read-pieces.ts";

const answer: ProviderAnswer = {
  ...{ output: "abc", model: "m", finishReason: "stop", attempts: 1 },
  usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 },
};

/** A reader of a provider whose stream is the given function. */
function openReader(stream: (onPiece: OnPiece, signal: AbortSignal) => Promise<ProviderAnswer>) {
  const caller = new AbortController();
  const call: ProviderCall = {
    ...{ provider: "openai", apiKey: "one", baseUrl: null, model: "m", messages: [], options: {} },
    signal: caller.signal,
  };
  const provider = { stream: ({ signal }: ProviderCall, onPiece: OnPiece) => stream(onPiece, signal) };
  return { caller, reader: readPieces(provider, call) };
}

const pieceOf = (value: string) => ({ done: false, value });

test("several pieces at once: come in their order, then the answer", async () => {
  const { reader } = openReader(async (onPiece) => {
    void onPiece("a");
    await onPiece("b");
    await onPiece("c");
    return answer;
  });
  for (const piece of ["a", "b", "c"]) assert.deepEqual(await reader.next(), pieceOf(piece));
  assert.deepEqual(await reader.next(), { done: true, value: answer });
});

test("unread piece: the stream is not read on until the reader asks for more", async () => {
  let isReadOn = false;
  const { reader } = openReader(async (onPiece) => {
    await onPiece("a");
    isReadOn = true;
    return answer;
  });
  await reader.next();
  await nextTurn();
  assert.equal(isReadOn, false);
  await reader.next();
  assert.equal(isReadOn, true);
});

test("error with unread pieces: comes after them", async () => {
  const broken = new Error("the stream broke");
  const { reader } = openReader(async (onPiece) => {
    void onPiece("a");
    void onPiece("b");
    throw broken;
  });
  for (const piece of ["a", "b"]) assert.deepEqual(await reader.next(), pieceOf(piece));
  await assert.rejects(reader.next(), broken);
});

test("reader that stops early: aborts the call, and the stream waits for no reader", async () => {
  let signalOfCall: AbortSignal | undefined;
  const { caller, reader } = openReader(async (onPiece, signal) => {
    signalOfCall = signal;
    await onPiece("a");
    await onPiece("b");
    return answer;
  });
  await reader.next();
  await reader.return(answer);
  assert.deepEqual([signalOfCall?.aborted, caller.signal.aborted], [true, false]);
});

test("caller that aborts: aborts the call, and the reader gets its error", async () => {
  const { caller, reader } = openReader(async (onPiece, signal) => {
    await onPiece("a");
    signal.throwIfAborted();
    return answer;
  });
  await reader.next();
  caller.abort(new Error("gone"));
  await assert.rejects(reader.next(), { message: "gone" });
});
