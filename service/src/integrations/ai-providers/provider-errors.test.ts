import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { inspect } from "node:util";
import type { Next, WireFormat } from "../../../test/provider-server.ts";
import {
  formats,
  openTestProviders,
  PROMPT_MARKER,
  providerCall,
  providerErrorOf,
  type TestProviderOptions,
} from "../../../test/providers.ts";
import { TargetTimeout } from "../egress/guarded-fetch.ts";
import { createSdkProviders } from "./sdk-providers.ts";

const errorIn: Record<WireFormat, (error: Record<string, unknown>) => object> = {
  openai: (error) => ({ error }),
  anthropic: (error) => ({ type: "error", error }),
  google: (error) => ({ error }),
};
const message = `You sent ${PROMPT_MARKER}`;

for (const format of formats)
  suite(`${format}, run`, () => {
    const call = providerCall(format);

    for (const times of [1, 2])
      test(`${times} responses with 5xx: are retried, and the answer counts the attempts`, async (t) => {
        const { server, providers, sleeps } = await openTestProviders(t);
        for (let at = 0; at < times; at++) server.next({ status: 503, body: "<h1>down</h1>" });
        const { output, attempts } = await providers.run(call);
        assert.deepEqual([output, attempts, server.requests.length], ["An answer.", times + 1, times + 1]);
        assert.equal(sleeps.length, times);
      });

    test("429 with a Retry-After of at most 10 s: is retried after it, at most twice", async (t) => {
      const { server, providers, sleeps } = await openTestProviders(t);
      const limited: Next = { status: 429, headers: { "retry-after": "7" } };
      server.next(limited);
      assert.equal((await providers.run(call)).attempts, 2);
      assert.deepEqual([sleeps, server.requests.length], [[7_000], 2]);
      for (const reply of [limited, limited, limited]) server.next(reply);
      const fault = await providerErrorOf(providers, call);
      assert.deepEqual(
        [fault.code, fault.attempts, fault.retryAfterSeconds],
        ["PROVIDER_RATE_LIMITED", 3, 7],
      );
      assert.equal(server.requests.length, 5);
      server.next({ status: 429, headers: { "retry-after": "11" } });
      assert.equal((await providerErrorOf(providers, call)).attempts, 1);
      assert.equal(server.requests.length, 6);
    });

    test("connect timeouts: are retried, and the failed attempts never reach the provider", async (t) => {
      let connects = 0;
      const server = await openTestProviders(t);
      const fetch: typeof globalThis.fetch = async (...args) => {
        if (++connects < 3) throw new TargetTimeout("connect");
        return globalThis.fetch(...args);
      };
      const providers = createSdkProviders({
        fetch,
        baseUrls: { [format]: server.server.url },
        sleep: async () => {},
      });
      assert.equal((await providers.run(call)).attempts, 3);
      assert.equal(server.server.requests.length, 1);
    });

    const billable: {
      when: string;
      reply: Next;
      setting?: TestProviderOptions;
      expected: [string, string?];
    }[] = [
      {
        when: "no response in time",
        reply: "hang",
        setting: { limits: { headersMs: 30 } },
        expected: ["PROVIDER_TIMEOUT", "first_byte"],
      },
      {
        when: "silence within the answer",
        reply: "stall",
        setting: { limits: { bodyIdleMs: 30 } },
        expected: ["PROVIDER_TIMEOUT", "idle"],
      },
      {
        when: "endless answer",
        reply: "trickle",
        setting: { deadlines: { totalMs: 100 } },
        expected: ["PROVIDER_TIMEOUT", "total"],
      },
      { when: "broken answer", reply: "cut", expected: ["PROVIDER_BAD_RESPONSE"] },
      { when: "lost connection", reply: "reset", expected: ["PROVIDER_BAD_RESPONSE"] },
      { when: "invalid JSON", reply: "bad-json", expected: ["PROVIDER_BAD_RESPONSE"] },
      {
        when: "answer without a finish reason",
        reply: { answer: { stop: null } },
        expected: ["PROVIDER_BAD_RESPONSE"],
      },
      {
        when: "too large answer",
        reply: { answer: { text: "x".repeat(2_000) } },
        setting: { limits: { maxResponseBytes: 1_000 } },
        expected: ["PROVIDER_BAD_RESPONSE"],
      },
      { when: "filtered answer", reply: "filter", expected: ["CONTENT_FILTERED"] },
      {
        when: "200 in HTML",
        reply: { status: 200, body: `<p>${PROMPT_MARKER}</p>` },
        expected: ["PROVIDER_BAD_RESPONSE"],
      },
      {
        when: "200 with an unknown error",
        reply: { status: 200, body: errorIn[format]({ message }) },
        expected: ["PROVIDER_BAD_RESPONSE"],
      },
    ];
    for (const { when, reply, setting, expected } of billable)
      test(`${when}: no retry, because the provider may have billed`, async (t) => {
        const { server, providers } = await openTestProviders(t, setting);
        // The first call loads the provider's package, which takes longer than a short deadline.
        await createSdkProviders({ fetch: async () => Response.error(), sleep: async () => {} })
          .run(call)
          .catch(() => {});
        server.next(reply);
        const fault = await providerErrorOf(providers, call);
        assert.deepEqual([fault.code, fault.details["phase"]], [expected[0], expected[1]], inspect(fault));
        assert.deepEqual([fault.attempts, server.requests.length], [1, 1]);
      });

    test("unknown error text: is classified by its status", async (t) => {
      const { server, providers } = await openTestProviders(t);
      const statuses = {
        401: "PROVIDER_KEY_INVALID",
        402: "PROVIDER_QUOTA_EXHAUSTED",
        403: "PROVIDER_PERMISSION_DENIED",
        413: "CONTEXT_LENGTH_EXCEEDED",
        429: "PROVIDER_RATE_LIMITED",
      };
      for (const body of ["<h1>no</h1>", "", "no", errorIn[format]({ message }), []]) {
        for (const [status, code] of Object.entries(statuses)) {
          server.next({ status: Number(status), body });
          assert.equal(
            (await providerErrorOf(providers, call)).code,
            code,
            `${status} ${JSON.stringify(body)}`,
          );
        }
      }
      assert.equal(server.requests.length, 25);
    });

    test("200 with an error: is classified by its code", async (t) => {
      const { server, providers } = await openTestProviders(t);
      const cases: [error: Record<string, unknown>, code: string, calls: number][] = [
        [
          { message, code: "insufficient_quota", type: "billing_error", status: "insufficient_quota" },
          "PROVIDER_QUOTA_EXHAUSTED",
          1,
        ],
        [
          {
            message,
            code: "context_length_exceeded",
            type: "request_too_large",
            status: "request_too_large",
          },
          "CONTEXT_LENGTH_EXCEEDED",
          1,
        ],
        [{ message, code: 402 }, "PROVIDER_QUOTA_EXHAUSTED", 1],
        [{ message, code: 503 }, "PROVIDER_ERROR", 3],
        [{ message, type: "overloaded_error", status: "UNAVAILABLE" }, "PROVIDER_ERROR", 3],
      ];
      for (const [error, code, calls] of cases) {
        const before = server.requests.length;
        for (let at = 0; at < calls; at++) server.next({ status: 200, body: errorIn[format](error) });
        const fault = await providerErrorOf(providers, call);
        assert.deepEqual([fault.code, server.requests.length - before], [code, calls], JSON.stringify(error));
      }
    });

    test("answer in any chunks: no character is split", async (t) => {
      const { server, providers } = await openTestProviders(t);
      const text = "Größe — €, 漢字 und 👩‍🚀";
      for (const chunk of [1, 2, 3, 7]) {
        server.next({ answer: { text }, chunk });
        assert.equal((await providers.run(call)).output, text);
      }
    });

    test("implausible usage: is estimated", async (t) => {
      const { server, providers } = await openTestProviders(t);
      for (const wrong of [-5, 1.5, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
        server.next({ answer: { usage: { input: wrong, output: wrong } } });
        const { usage, output } = await providers.run(call);
        assert.equal(output, "An answer.");
        assert.equal(usage.estimated, true, `${wrong}: ${inspect(usage)}`);
        assert.ok(usage.promptTokens > 0 && usage.promptTokens < 100 && usage.completionTokens === 3);
      }
    });
  });
