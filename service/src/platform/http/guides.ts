import { readdir, readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import type { Marked, Token, Tokens } from "marked";
import { deferPackage } from "../../core/defer-package.ts";
import { ApiError } from "../../core/errors.ts";
import { escapeHtml } from "../../core/escape-html.ts";
import { DOCS_POLICY, docsPage } from "./docs-page.ts";
import { type StaticContent, sendStatic } from "./static-content.ts";

const marked = deferPackage<typeof import("marked")>("marked");

/** Folders by the path below /docs; guides are for users, decisions explain the design. */
const FOLDERS = { guides: "Guides", decisions: "Decisions" } as const;
type Folder = keyof typeof FOLDERS;
const DOCS = new URL("../../../../docs/", import.meta.url);

interface Document {
  name: string;
  title: string;
  /** The first paragraph, as HTML. */
  summary: string;
  page: StaticContent;
}

/** GitHub's ids of headings, so that links work in both places. */
const anchorOf = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

const FILE_LINK = /^(?:\.\.\/)?(?:(guides|decisions)\/)?([\w-]+)\.md(#.*)?$/;

/** The path of a link on this server; null: there is none. */
function targetOf(href: string, folder: Folder): string | null {
  if (/^(https?:|#|\/)/.test(href)) return href;
  if (href === "../openapi.gen.json") return "/v1/openapi.json";
  const [, otherFolder, name, anchor = ""] = FILE_LINK.exec(href) ?? [];
  return name ? `/docs/${otherFolder ?? folder}/${name}${anchor}` : null;
}

function rendererFor(folder: Folder): Marked {
  const { Marked: Renderer } = marked();
  return new Renderer({
    gfm: true,
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const html = this.parser.parseInline(tokens);
        const id = anchorOf(html.replace(/<[^>]*>/g, "").replace(/&[a-z#0-9]+;/g, ""));
        return `<h${depth} id="${id}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, folder);
        return target === null ? text : `<a href="${escapeHtml(target)}">${text}</a>`;
      },
      // Wide tables scroll by themselves, not the page.
      table(token: Tokens.Table) {
        const row = (cells: Tokens.TableCell[], tag: "td" | "th") =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`;
        const rows = token.rows.map((cells) => row(cells, "td")).join("\n");
        return `<div class="scroll" tabindex="0"><table class="plain"><thead>${row(token.header, "th")}</thead><tbody>${rows}</tbody></table></div>\n`;
      },
      // Text such as <id> is no HTML.
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
    },
  });
}

const isType =
  <T extends Token>(type: T["type"]) =>
  (token: Token): token is T =>
    token.type === type;

function render(folder: Folder, name: string, markdown: string): Document {
  const renderer = rendererFor(folder);
  const tokens = renderer.lexer(markdown);
  const title = tokens.find(isType<Tokens.Heading>("heading"))?.text ?? name;
  const paragraph = tokens.find(isType<Tokens.Paragraph>("paragraph"));
  const summary = paragraph ? renderer.parser([paragraph]).replace(/<\/?a\b[^>]*>/g, "") : "";
  const back = `<p class="back"><a href="/docs/${folder}">${FOLDERS[folder]}</a></p>`;
  const body = `<main class="prose">${back}${renderer.parser(tokens)}</main>`;
  return { name, title, summary, page: docsPage(escapeHtml(title), body) };
}

async function readDocuments(folder: Folder): Promise<Map<string, Document>> {
  const names = (await readdir(new URL(`${folder}/`, DOCS))).filter((file) => file.endsWith(".md")).sort();
  const documents = names.map(async (file) => {
    const markdown = await readFile(new URL(`${folder}/${file}`, DOCS), "utf8");
    return render(folder, file.slice(0, -".md".length), markdown);
  });
  return new Map((await Promise.all(documents)).map((document) => [document.name, document]));
}

function indexOf(folder: Folder, documents: Map<string, Document>): StaticContent {
  const items = [...documents.values()].map(
    ({ name, title, summary }) =>
      `<li><h2><a href="/docs/${folder}/${name}">${escapeHtml(title)}</a></h2>${summary}</li>`,
  );
  const body = `<main class="prose"><h1>${FOLDERS[folder]}</h1><ul class="index">${items.join("\n")}</ul></main>`;
  return docsPage(FOLDERS[folder], body);
}

export function addGuides(app: FastifyInstance): void {
  for (const folder of Object.keys(FOLDERS) as Folder[]) {
    let reading: Promise<Map<string, Document>> | undefined;
    const documents = () =>
      (reading ??= readDocuments(folder).catch((error) => {
        // The next request tries again.
        reading = undefined;
        throw error;
      }));
    let index: StaticContent | undefined;
    app.get(`/docs/${folder}`, async (request, reply) => {
      index ??= indexOf(folder, await documents());
      return sendStatic(request, reply.header("content-security-policy", DOCS_POLICY), index);
    });
    app.get(`/docs/${folder}/:name`, async (request, reply) => {
      const { name } = request.params as { name: string };
      const document = (await documents()).get(name);
      if (!document) throw new ApiError("NOT_FOUND");
      return sendStatic(request, reply.header("content-security-policy", DOCS_POLICY), document.page);
    });
  }
}
