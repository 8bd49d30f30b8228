import { readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { StaticContent } from "../../platform/http/static-content.ts";

/** A file of Vite's manifest: https://vite.dev/guide/backend-integration */
interface ManifestEntry {
  file: string;
  imports?: string[];
  css?: string[];
  assets?: string[];
}

const TYPES: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".woff2": "font/woff2",
  ".svg": "image/svg+xml",
};
const ENTRY = "src/main.tsx";

/** The files that a page loads at once. */
export interface PageFiles {
  script: string;
  modules: string[];
  styles: string[];
  font: string | undefined;
}

/** One finished build of the web client. */
export class WebBuild {
  readonly digest: string;
  readonly builtAt: number;
  readonly #folder: string;
  readonly #manifest: Record<string, ManifestEntry>;
  readonly #files = new Map<string, Promise<StaticContent | null>>();

  constructor(folder: string, digest: string) {
    this.#folder = join(folder, digest);
    this.digest = digest;
    const manifest = join(this.#folder, "manifest.json");
    this.builtAt = statSync(manifest).mtimeMs;
    this.#manifest = JSON.parse(readFileSync(manifest, "utf8"));
  }

  /** null: the build has no such file. Files are read once; all together have two megabytes. */
  file(name: string): Promise<StaticContent | null> {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    // Any other name would fill the map.
    if (!this.#names.has(name)) return Promise.resolve(null);
    const read = this.#read(name);
    this.#files.set(name, read);
    // The next request tries again.
    read.catch(() => this.#files.delete(name));
    return read;
  }

  get #names(): Set<string> {
    return new Set(
      Object.values(this.#manifest).flatMap(({ file, css = [], assets = [] }) => [file, ...css, ...assets]),
    );
  }

  async #read(name: string): Promise<StaticContent | null> {
    const type = TYPES[extname(name)];
    if (type === undefined) return null;
    const path = join(this.#folder, name);
    const [bytes, br, gzip] = await Promise.all([
      readFile(path),
      readFile(`${path}.br`).catch(() => undefined),
      readFile(`${path}.gz`).catch(() => undefined),
    ]);
    return new StaticContent(bytes, type, { br, gzip });
  }

  /** What a page needs: the entry and the page's own modules, such as `src/pages/market/home.tsx`. */
  filesOf(page: string[]): PageFiles {
    const modules = this.#modulesOf([ENTRY, ...page]);
    const [entry, ...others] = modules.map((name) => this.#entry(name));
    if (!entry) throw new Error("the web client's build has no entry");
    return {
      script: entry.file,
      modules: others.map(({ file }) => file),
      styles: [entry, ...others].flatMap(({ css = [] }) => css),
      font: [entry, ...others]
        .flatMap(({ assets = [] }) => assets)
        .find((name) => name.startsWith("inter-latin.")),
    };
  }

  /** With what they import, each once. */
  #modulesOf(names: string[], found = new Set<string>()): string[] {
    for (const name of names) {
      if (found.has(name) || this.#manifest[name] === undefined) continue;
      found.add(name);
      this.#modulesOf(this.#entry(name).imports ?? [], found);
    }
    return [...found];
  }

  #entry(name: string): ManifestEntry {
    const entry = this.#manifest[name];
    if (!entry) throw new Error(`the web client's build has no ${name}`);
    return entry;
  }
}
