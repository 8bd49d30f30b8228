import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SDK = fileURLToPath(new URL("../sdk/src/index.ts", import.meta.url));

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
      // Without groups, each set of pages that share a module gets a file: forty for a first visit, many below 1 kB.
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: "libraries",
              test: /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack)\//,
            },
            { name: "shared", test: /\/(web\/src\/(?!pages)|sdk\/src|contract\/src)/, minShareCount: 6 },
          ],
        },
      },
    },
  },
});
