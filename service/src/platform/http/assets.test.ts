import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { assetPath } from "./assets.ts";

let market: Market;
let nobody: Client;
before(async () => {
  market = await openMarket();
  nobody = market.as(null);
});
after(() => market.close());

suite("an asset", () => {
  for (const [name, type] of [
    ["stoa.css", "text/css; charset=utf-8"],
    ["inter.woff2", "font/woff2"],
    ["form.js", "text/javascript; charset=utf-8"],
    ["stoa.svg", "image/svg+xml"],
  ] as const) {
    test(`${name}: ${type}, immutable under the path that pages use`, async () => {
      const reply = await nobody.get(assetPath(name));
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("content-type"), type);
      assert.equal(reply.headers.get("cache-control"), "public, max-age=31536000, immutable");
      assert.equal(reply.headers.getSetCookie().length, 0);
    });
  }

  test("by its bare name, or another version's: revalidated by ETag", async () => {
    for (const path of ["/assets/stoa.css", "/assets/another-edition/stoa.css"]) {
      const reply = await nobody.get(path);
      assert.deepEqual([reply.status, reply.headers.get("cache-control")], [200, "no-cache"], path);
      const again = await nobody.get(path, { "if-none-match": `W/"other", ${reply.headers.get("etag")}` });
      assert.deepEqual([again.status, again.text], [304, ""]);
      assert.equal((await nobody.get(path, { "if-none-match": '"other"' })).status, 200);
    }
  });

  test("unknown, by any name: 404", async () => {
    for (const name of ["none.css", "..%2fassets.ts", "__proto__", "toString", "stoa.css%00"])
      assertError(await nobody.get(`/assets/${name}`), 404, "NOT_FOUND");
  });

  test("imports others by relative paths, so that all have one version", async () => {
    const { text } = await nobody.get(assetPath("sign-in.js"));
    const imports = [...text.matchAll(/from "([^"]+)"/g)].map(([, path]) => path!);
    assert.ok(imports.length > 0);
    for (const path of imports) assert.match(path, /^\.\/[\w-]+\.js$/);
  });
});

suite("the colors", () => {
  const css = readFileSync(new URL("./assets/stoa.css", import.meta.url), "utf8");
  const colours = new Map(
    [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);/g)].map(([, name, ...pair]) => [
      name!,
      pair,
    ]),
  );

  /** WCAG 2.2, relative luminance and contrast ratio. */
  const luminance = (hex: string) => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const contrast = (one: string, other: string) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light! + 0.05) / (dark! + 0.05);
  };

  const mustContrast = (front: string, back: string, least: number) => {
    for (const scheme of [0, 1]) {
      const ratio = contrast(colours.get(front)![scheme]!, colours.get(back)![scheme]!);
      const where = `${front} on ${back}, ${scheme === 0 ? "light" : "dark"}: ${ratio.toFixed(2)}`;
      assert.ok(ratio >= least, where);
    }
  };

  test("contrast as WCAG defines it", () => {
    assert.equal(contrast("#000000", "#ffffff"), 21);
    assert.equal(contrast("#767676", "#ffffff").toFixed(2), "4.54");
  });

  test("text: 4.5:1 on each background it is used on", () => {
    const grounds = ["ground", "paper"];
    const boxes = ["good-ground", "warning-ground", "bad-ground"];
    for (const ground of [...grounds, ...boxes]) mustContrast("ink", ground, 4.5);
    for (const ground of [...grounds, ...boxes]) mustContrast("accent", ground, 4.5);
    for (const ground of [...grounds, ...boxes]) mustContrast("accent-strong", ground, 4.5);
    for (const ground of grounds) mustContrast("soft", ground, 4.5);
    for (const ground of ["paper", "bad-ground"]) mustContrast("bad", ground, 4.5);
    mustContrast("good", "good-ground", 4.5);
    mustContrast("warning", "warning-ground", 4.5);
    for (const fill of ["accent-fill", "accent-hover"]) mustContrast("on-accent", fill, 4.5);
    for (const ground of ["bad", "bad-strong"]) mustContrast("on-bad", ground, 4.5);
  });

  test("borders and focus: 3:1", () => {
    for (const ground of ["paper", "ground"]) mustContrast("edge", ground, 3);
    for (const ground of ["paper", "ground"]) mustContrast("accent", ground, 3);
  });

  test("all variables: no other color in the stylesheet but white below QR codes", () => {
    const rules = css.replace(/^[\s\S]*?:root \{[\s\S]*?\n\}/, "");
    const literal = [...rules.matchAll(/#[0-9a-f]{3,8}\b|rgb\([^)]*\)/gi)].map(([colour]) => colour);
    assert.deepEqual([...new Set(literal)].sort(), ["#000", "#fff"]);
  });

  test("prefers-reduced-motion: no animation", () => {
    const still = css.replace(/@media \(prefers-reduced-motion: no-preference\) \{[\s\S]*?\n\}/, "");
    assert.doesNotMatch(still, /transition:|animation: \w+ (?!0s)/);
  });
});
