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

/** An error as each format wraps it. */
const errorIn: Record<WireFormat, (error: Record<string, unknown>) => object> = {
  openai: (error) => ({ error }),
  anthropic: (error) => ({ type: "error", error }),
  google: (error) => ({ error }),
};
const message = `You sent ${PROMPT_MARKER}`;

for (const format of formats)
  suite(`${format}, asked for a whole answer`, () => {
    const call = providerCall(format);

    for (const times of [1, 2])
      test(`is asked again after ${times} of 5xx, and its answer counts the attempts`, async (t) => {
        const { server, providers, sleeps } = await openTestProviders(t);
        for (let at = 0; at < times; at++) server.next({ status: 503, body: "<h1>down</h1>" });
        const { output, attempts } = await providers.run(call);
        assert.deepEqual([output, attempts, server.requests.length], ["An answer.", times + 1, times + 1]);
        assert.equal(sleeps.length, times);
      });

    test("is asked again after the time that its 429 tells, where that is 10 s at most, and twice at most", async (t) => {
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

    test("is asked again when no connection came about in time, and never reached by what failed", async (t) => {
      let dialled = 0;
      const server = await openTestProviders(t);
      const fetch: typeof globalThis.fetch = async (...wish) => {
        if (++dialled < 3) throw new TargetTimeout("connect");
        return globalThis.fetch(...wish);
      };
      const providers = createSdkProviders({
        fetch,
        baseUrls: { [format]: server.server.url },
        sleep: async () => {},
      });
      assert.equal((await providers.run(call)).attempts, 3);
      assert.equal(server.server.requests.length, 1);
    });

    const billable: { when: string; reply: Next; setting?: TestProviderOptions; told: [string, string?] }[] =
      [
        {
          when: "no byte came in time",
          reply: "hang",
          setting: { limits: { headersMs: 30 } },
          told: ["PROVIDER_TIMEOUT", "first_byte"],
        },
        {
          when: "its answer stops half-way",
          reply: "stall",
          setting: { limits: { bodyIdleMs: 30 } },
          told: ["PROVIDER_TIMEOUT", "idle"],
        },
        {
          when: "its answer trickles without an end",
          reply: "trickle",
          setting: { deadlines: { totalMs: 100 } },
          told: ["PROVIDER_TIMEOUT", "total"],
        },
        { when: "its answer is cut", reply: "cut", told: ["PROVIDER_BAD_RESPONSE"] },
        { when: "it hangs up without a word", reply: "reset", told: ["PROVIDER_BAD_RESPONSE"] },
        { when: "its answer is no JSON", reply: "bad-json", told: ["PROVIDER_BAD_RESPONSE"] },
        {
          when: "its answer does not say why it ends",
          reply: { answer: { stop: null } },
          told: ["PROVIDER_BAD_RESPONSE"],
        },
        {
          when: "its answer is more than we take",
          reply: { answer: { text: "x".repeat(2_000) } },
          setting: { limits: { maxResponseBytes: 1_000 } },
          told: ["PROVIDER_BAD_RESPONSE"],
        },
        { when: "all of its answer was filtered", reply: "filter", told: ["CONTENT_FILTERED"] },
        {
          when: "it answers a page of HTML",
          reply: { status: 200, body: `<p>${PROMPT_MARKER}</p>` },
          told: ["PROVIDER_BAD_RESPONSE"],
        },
        {
          when: "it answers 200 with an error that nobody knows",
          reply: { status: 200, body: errorIn[format]({ message }) },
          told: ["PROVIDER_BAD_RESPONSE"],
        },
      ];
    for (const { when, reply, setting, told } of billable)
      test(`is asked once when ${when}: it may have billed`, async (t) => {
        const { server, providers } = await openTestProviders(t, setting);
        // The provider's package is loaded with the first call, which must not eat a small deadline.
        await createSdkProviders({ fetch: async () => Response.error(), sleep: async () => {} })
          .run(call)
          .catch(() => {});
        server.next(reply);
        const fault = await providerErrorOf(providers, call);
        assert.deepEqual([fault.code, fault.details["phase"]], [told[0], told[1]], inspect(fault));
        assert.deepEqual([fault.attempts, server.requests.length], [1, 1]);
      });

    test("is read by its status where it says it in no words that we know", async (t) => {
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

    test("is read by its error's code where it answers 200 with an error in it", async (t) => {
      const { server, providers } = await openTestProviders(t);
      const told: [error: Record<string, unknown>, code: string, calls: number][] = [
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
      for (const [error, code, calls] of told) {
        const before = server.requests.length;
        for (let at = 0; at < calls; at++) server.next({ status: 200, body: errorIn[format](error) });
        const fault = await providerErrorOf(providers, call);
        assert.deepEqual([fault.code, server.requests.length - before], [code, calls], JSON.stringify(error));
      }
    });

    test("may send its answer in any chunks: no letter is broken", async (t) => {
      const { server, providers } = await openTestProviders(t);
      const text = "Größe — €, 漢字 und 👩‍🚀";
      for (const chunk of [1, 2, 3, 7]) {
        server.next({ answer: { text }, chunk });
        assert.equal((await providers.run(call)).output, text);
      }
    });

    test("may count as it likes: what can be no count is estimated, and never becomes money", async (t) => {
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
