import assert from "node:assert/strict";

/** Our templates are regular enough for patterns. */
const attribute = (tag: string, name: string) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
const tagsIn = (markup: string, name: string) =>
  [...markup.matchAll(new RegExp(`<${name}\\b[^>]*>`, "g"))].map(([tag]) => tag);

export const idsIn = (markup: string) => [...markup.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id!);

/** The names of a form's fields. */
export const fieldsIn = (markup: string) =>
  tagsIn(markup, "input")
    .map((tag) => attribute(tag, "name"))
    .filter((name) => name !== undefined);

export const visibleText = (markup: string) =>
  markup
    .replace(/^.*<body>/s, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");

/** The page's policy would silently block inline scripts and styles. */
export function mustHaveNothingInline(markup: string): void {
  assert.doesNotMatch(markup, /<script(?![^>]* src=)|<style|\son[a-z]+=|\sstyle=|="\s*javascript:/i);
}

/** Each field has a label, each referenced id exists, and ids are unique. */
export function mustBeLabelled(markup: string): void {
  const ids = idsIn(markup);
  const labelled = tagsIn(markup, "label").map((tag) => attribute(tag, "for"));
  for (const tag of tagsIn(markup, "input")) assert.ok(labelled.includes(attribute(tag, "id")), tag);
  for (const id of labelled) assert.ok(ids.includes(id!), `a label for ${id}`);
  for (const tag of tagsIn(markup, "\\w+")) {
    for (const id of attribute(tag, "aria-describedby")?.split(" ") ?? [])
      assert.ok(ids.includes(id), `${tag} is described by #${id}`);
  }
  for (const tag of tagsIn(markup, "img")) assert.ok(attribute(tag, "alt"), tag);
  for (const tag of tagsIn(markup, "svg")) assert.match(tag, /aria-hidden="true"/);
  for (const [, inside] of markup.matchAll(/<(?:a|button)\b[^>]*>(.*?)<\/(?:a|button)>/gs))
    assert.match(inside!.replace(/<[^>]+>/g, ""), /\w/, "a link or button says what it does");
}
