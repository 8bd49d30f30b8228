import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { createProduct, type ProductInput } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: 'Ann "the pen" O\'Hara' });
  buyer = await market.createUser();
});
after(() => market.close());

interface Bought {
  productId: string;
  orderId: string;
  url: string;
}

async function createDownload(input: ProductInput = {}): Promise<Bought> {
  const productId = await createProduct(seller, input);
  const { body } = await buyer.post("/v1/purchases", { productId });
  return { productId, orderId: body.data.orderId, url: body.data.downloadUrl };
}

const fileOf = async (url: string) => {
  const reply = await fetch(url);
  assert.equal(reply.status, 200);
  return { text: await reply.text(), disposition: reply.headers.get("content-disposition") };
};

/** The content of the fenced block after `## Prompt`, parsed as in CommonMark. */
function promptIn(markdown: string): string {
  const lines = markdown.slice(markdown.indexOf("\n## Prompt\n") + "\n## Prompt\n\n".length).split("\n");
  const fence = /^`{3,}$/.exec(lines[0]!)![0];
  const closes = (line: string) => {
    const run = /^ {0,3}(`{3,})[ \t]*$/.exec(line)?.[1];
    return run !== undefined && run.length >= fence.length;
  };
  const end = lines.findIndex((line, at) => at > 0 && closes(line));
  assert.deepEqual(lines.slice(end + 1), [""], "nothing after the fence");
  return lines.slice(1, end).join("\n");
}

test("the Markdown file: contains title, version, variables and prompt", async () => {
  const { productId, orderId, url } = await createDownload({
    title: 'Say "hello": a prompt',
    content: "Say hello to {{name}}, {{ tone = warmly }}.",
    variables: [
      { name: "name", description: "Whom to greet" },
      { name: "tone", required: false, default: "warmly" },
    ],
    version: "1.2.3",
  });
  const { text, disposition } = await fileOf(url);
  assert.equal(disposition, 'attachment; filename="say-hello-a-prompt-1.2.3.md"');
  assert.equal(
    text,
    `---
title: "Say \\"hello\\": a prompt"
version: "1.2.3"
author: "Ann \\"the pen\\" O'Hara"
product: ${productId}
order: ${orderId}
---

## Variables

- \`name\`: Whom to greet
- \`tone\` (optional) Default: \`warmly\`

## Prompt

\`\`\`
Say hello to {{name}}, {{ tone = warmly }}.
\`\`\`
`,
  );
});

test("the JSON file: contains the same for programs", async () => {
  const content = '[{"role":"user","content":"Say {{x}}"}]';
  const { productId, orderId, url } = await createDownload({
    content,
    contentFormat: "messages",
    title: "As data",
  });
  const { text, disposition } = await fileOf(`${url}&format=json`);
  assert.equal(disposition, 'attachment; filename="as-data-1.0.0.json"');
  assert.deepEqual(JSON.parse(text), {
    productId,
    orderId,
    title: "As data",
    type: "PROMPT",
    version: "1.0.0",
    contentFormat: "messages",
    variables: [{ name: "x", required: true }],
    content,
  });
});

test("content with fences: cannot close the fence around it", async () => {
  const declared = { content: "x", variables: [{ name: "x", required: false }] };
  const { url, productId } = await createDownload(declared);
  const piece = fc.constantFrom("`", "```", "````", "~~~", "\n", " ", "text", "# Title", "{{x}}", "---");
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 12 }), async (pieces) => {
      const content = `x${pieces.join("")}`;
      assert.equal((await seller.patch(`/v1/products/${productId}`, { content })).status, 200);
      assert.equal(promptIn((await fileOf(url)).text), content);
    }),
    { numRuns: runs(60, 10), examples: [[["\n", "```", "\n", "rm -rf", "\n", "```"]], [["`".repeat(100)]]] },
  );
});

test("content of the maximum length: can be downloaded", async () => {
  const content = "a`".repeat(100_000);
  const { url } = await createDownload({ content });
  assert.equal(promptIn((await fileOf(url)).text), content);
});

test("a title in any script: a portable file name", async () => {
  for (const [title, name] of [
    ["Crème brûlée!", "creme-brulee-1.0.0.md"],
    ["俳句", "prompt-1.0.0.md"],
    ['../../etc/"passwd"\\', "etc-passwd-1.0.0.md"],
    ["x".repeat(120), `${"x".repeat(60)}-1.0.0.md`],
  ]) {
    const { url } = await createDownload({ title });
    assert.equal((await fileOf(url)).disposition, `attachment; filename="${name}"`);
  }
});

test("the first download: is recorded once as the first use", async () => {
  const { productId, url } = await createDownload();
  const usedAt = async () => {
    const { rows } = await market.query("select used_at from entitlements where product_id = $1", [
      toUuid("prod", productId),
    ]);
    return rows[0].used_at;
  };
  assert.equal(await usedAt(), null);
  const first = market.clock.now;
  await fileOf(url);
  assert.deepEqual(await usedAt(), first);
  market.clock.forward(60_000);
  await fileOf(url);
  assert.deepEqual(await usedAt(), first);
  const { body } = await buyer.get(`/v1/products/${productId}`);
  assert.equal(body.data.access.revealForfeitsInstantRefund, false, "there is nothing left to forfeit");
});

test("a download: the newest version of the bought major line", async () => {
  const { productId, url } = await createDownload({ content: "One" });
  await seller.patch(`/v1/products/${productId}`, { content: "Two" });
  assert.equal(promptIn((await fileOf(url)).text), "Two");
  await seller.patch(`/v1/products/${productId}`, { content: "Three", version: "2.0.0" });
  const { text, disposition } = await fileOf(url);
  assert.equal(promptIn(text), "Two");
  assert.match(disposition!, /-1\.1\.0\.md"$/);
});
