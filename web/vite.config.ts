import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Rolldown } from "vite";

type ChunkingContext = Rolldown.ChunkingContext;

const ENTRY = fileURLToPath(new URL("src/main.tsx", import.meta.url));
const SDK = fileURLToPath(new URL("../sdk/src/index.ts", import.meta.url));

const LIBRARIES = /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack)\//;

let firstModules: Set<string> | undefined;

/** The file of a module that the entry imports, directly or by others; null: any other file. */
function firstGroupOf(id: string, modules: ChunkingContext): string | null {
  if (LIBRARIES.test(id)) return "libraries";
  firstModules ??= importsOf(ENTRY, modules);
  // Each dynamic import needs it, after the imports were read.
  if (id.includes("vite/preload-helper")) return "first";
  return firstModules.has(id) && id !== ENTRY ? "first" : null;
}

/** Of ours: the index of a library imports all of it, and the entry needs little. */
function importsOf(id: string, modules: ChunkingContext, found = new Set<string>()): Set<string> {
  if (found.has(id) || id.includes("/node_modules/")) return found;
  found.add(id);
  for (const imported of modules.getModuleInfo(id)?.importedIds ?? []) importsOf(imported, modules, found);
  return found;
}

/** The service writes the HTML, so that the entry is a module. scripts/build-web.ts runs this. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "/client/",
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^@stoa\/sdk$/, replacement: SDK },
      { find: /^@stoa\/sdk\/webhooks$/, replacement: SDK.replace("index.ts", "webhooks.ts") },
    ],
  },
  build: {
    assetsDir: "",
    manifest: "manifest.json",
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: "src/main.tsx",
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            // Two files for what each page needs: libraries change rarely. Without groups, each set of pages that share a module gets a
            // file: forty for a first visit, many below 1 kB.
            { name: firstGroupOf, debugName: "first" },
            { name: "shared", test: /\/(web\/src\/(?!pages)|sdk\/src|contract\/src)/, minShareCount: 15 },
          ],
        },
      },
    },
  },
});
