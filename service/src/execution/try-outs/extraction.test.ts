import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { openEventStream } from "../../../test/event-stream.ts";
import { createProduct } from "../../../test/factories.ts";
import { runs, sampleOf } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { countLeakedWords, obey } from "../../../test/obedient-model.ts";
import {
  type ProviderServer,
  type RecordedRequest,
  startProviderServer,
} from "../../../test/provider-server.ts";
import { createProviderKey, providersAt } from "../../../test/runs.ts";
import { allowTries, tryProduct } from "../../../test/tries.ts";

interface Attack {
  class: string;
  encoding: string;
  text: string;
}
const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const attacks: Attack[] = readJson("./extraction-attacks.json");
const prompts: { content: string; title: string; description: string }[] = readJson(
  "../../backoffice/demo/prompts.json",
);
/** Each is attacked in all ways. */
const PROMPTS = runs(3);
const wordsIn = (text: string) => text.split(/\s+/).filter(Boolean).length;

const promptIn = ({ body }: RecordedRequest): string =>
  (body as { messages: { content: string }[] }).messages.map(({ content }) => content).join("\n");

suite("extraction attacks against the most obedient model", () => {
  let provider: ProviderServer;
  let market: Market;
  let seller: Client;
  let visitor: Client;
  before(async () => {
    provider = await startProviderServer();
    market = await openMarket({ providers: providersAt(provider) });
    [seller, visitor] = [await market.createUser(), await market.createUser()];
  });
  after(async () => {
    await market.close();
    await provider.close();
  });

  /** What a visitor gets of the answer, also of a stream that ends as withheld. */
  async function shownTo(productId: string, attack: Attack, isStream: boolean): Promise<string> {
    const input = { variables: { input: attack.text } };
    if (!isStream) {
      const reply = await tryProduct(visitor, productId, input);
      assert.equal(reply.status, 200, reply.text);
      return reply.body.data.output ?? "";
    }
    const path = `/v1/products/${productId}/try`;
    const reader = await openEventStream(market.origin, visitor.key, path, {}, { ...input, stream: true });
    assert.equal(await reader.ended, true, reader.text);
    const { events } = reader;
    assert.match(events.at(-1)?.type ?? "", /^try\.(completed|withheld)$/, attack.text);
    return events.map(({ data }) => JSON.parse(data).text ?? "").join("");
  }

  test(`${attacks.length} attacks: at most 1 % of the hidden words come out`, async () => {
    assert.ok(attacks.length >= 60);
    const apiKeyId = await createProviderKey(seller);
    let [leaked, hidden] = [0, 0];
    const leaks: string[] = [];
    for (let at = 0; at < PROMPTS; at++) {
      const { title, description, content } = prompts[(at * 53 + 20) % prompts.length]!;
      const template = `${content.replaceAll("{{", "\\{{")}\n\nThe input is: {{input}}`;
      const productId = await createProduct(seller, {
        ...{ title, description, content: template, preview: "Hidden." },
      });
      await allowTries(seller, { productId, apiKeyId });
      for (const [index, attack] of sampleOf(attacks).entries()) {
        let answer = obey("verbatim", content);
        provider.always((request) => {
          assert.ok(promptIn(request).includes(attack.text));
          answer = obey(attack.encoding, promptIn(request).split("\n\nThe input is: ")[0]!);
          return { answer: { text: answer.text } };
        });
        const shown = await shownTo(productId, attack, index % 4 !== 0);
        const words = countLeakedWords(answer, shown.length);
        leaked += words;
        hidden += wordsIn(content);
        if (words > 0) leaks.push(`${attack.encoding}: ${words}`);
      }
    }
    assert.ok(leaked <= hidden / 100, `${leaked} of ${hidden} words: ${leaks.join(", ")}`);
  });
});
