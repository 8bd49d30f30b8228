import { spawn } from "node:child_process";
import { existsSync, readdirSync, utimesSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Logger } from "pino";
import type { StaticContent } from "../../platform/http/static-content.ts";
import { BUILDS, ROOT, sourceDigest } from "./source-digest.ts";
import { WebBuild } from "./web-build.ts";

declare module "../../core/context.ts" {
  interface Context {
    webBuilds: WebBuilds;
  }
}

/** A page that was opened before a deployment still loads its files. */
const SERVED_BUILDS = 2;
/** Another process may finish a build at any time. */
const LIST_AGAIN_MS = 1_000;
const FIRST_RELOAD_SECONDS = 2;
const LAST_RELOAD_SECONDS = 60;
/** A build takes some seconds: what takes ten times as long is reloaded rarely. */
const RELOAD_SHARE = 0.2;

/** Why there is no build to serve, and when a page should look again. */
export interface MissingBuild {
  hasFailed: boolean;
  reloadSeconds: number;
}

/** The web client as it was built: by this process, another one, or ahead of the installation. */
export class WebBuilds {
  readonly #folder: string;
  #builds: WebBuild[] = [];
  #listedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  readonly #waitsSince = performance.now();

  readonly #build: (log: Logger) => Promise<void>;

  constructor(folder: string = BUILDS, build: (log: Logger) => Promise<void> = runBuild) {
    this.#folder = folder;
    this.#build = build;
  }

  /** The newest; null: none is finished. */
  get current(): WebBuild | null {
    this.#list();
    return this.#builds[0] ?? null;
  }

  /** While `current` is null. The reloads become rarer, since a page cannot count its own. */
  get missing(): MissingBuild {
    const waited = (performance.now() - this.#waitsSince) / 1_000;
    const seconds = this.#hasFailed ? LAST_RELOAD_SECONDS : Math.round(waited * RELOAD_SHARE);
    const reloadSeconds = Math.min(LAST_RELOAD_SECONDS, Math.max(FIRST_RELOAD_SECONDS, seconds));
    return { hasFailed: this.#hasFailed, reloadSeconds };
  }

  /** A file of the newest build or of the one before. */
  async file(name: string): Promise<StaticContent | null> {
    return (await this.#find(name)) ?? (this.#list() ? await this.#find(name) : null);
  }

  /** Builds the client if its sources changed. Without the build tool, as in a production installation, it serves what is there. */
  async ensureCurrent(log: Logger): Promise<void> {
    try {
      await this.#ensureCurrent(log);
    } finally {
      this.#list(true);
      this.#hasFailed = this.#builds.length === 0;
    }
    if (this.#hasFailed) log.error("the web client is not built: run `npm run build`");
  }

  async #ensureCurrent(log: Logger): Promise<void> {
    const manifest = join(this.#folder, sourceDigest(), "manifest.json");
    if (existsSync(manifest)) markAsNewest(manifest);
    else if (hasBuildTool()) await this.#build(log);
  }

  async #find(name: string): Promise<StaticContent | null> {
    for (const build of this.#builds) {
      const content = await build.file(name);
      if (content) return content;
    }
    return null;
  }

  /** Returns whether it looked. */
  #list(now = false): boolean {
    if (!now && performance.now() - this.#listedAt < LIST_AGAIN_MS) return false;
    this.#listedAt = performance.now();
    const known = new Map(this.#builds.map((build) => [build.digest, build]));
    const digests = existsSync(this.#folder) ? readdirSync(this.#folder) : [];
    this.#builds = digests
      .filter((digest) => /^[0-9a-f]{16}$/.test(digest))
      .flatMap((digest) => known.get(digest) ?? openBuild(this.#folder, digest))
      .sort((a, b) => b.builtAt - a.builtAt)
      .slice(0, SERVED_BUILDS);
    return true;
  }
}

/** None: its manifest is missing or broken, as after a removal that was interrupted. The other builds are served. */
function openBuild(folder: string, digest: string): WebBuild[] {
  try {
    return [new WebBuild(folder, digest)];
  } catch {
    return [];
  }
}

/** After a return to earlier sources, their build is there, and a later one too. */
function markAsNewest(manifest: string): void {
  const now = new Date();
  utimesSync(manifest, now, now);
}

function hasBuildTool(): boolean {
  try {
    createRequire(join(ROOT, "web/package.json")).resolve("vite");
    return true;
  } catch {
    return false;
  }
}

/** In a process of its own, so that requests are answered meanwhile and its memory is given back. */
function runBuild(log: Logger): Promise<void> {
  const started = performance.now();
  const child = spawn(process.execPath, [join(ROOT, "scripts/build-web.ts")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let problems = "";
  child.stderr.on("data", (text) => {
    problems += text;
  });
  return new Promise((done) => {
    child.once("error", (error) => {
      log.error({ err: error }, "the web client was not built");
      done();
    });
    child.once("close", (code) => {
      if (code === 0) log.info({ ms: Math.round(performance.now() - started) }, "the web client is built");
      else log.error({ code, problems: problems.slice(-2_000) }, "the web client was not built");
      done();
    });
  });
}
