import "./styles/fonts.css";
import "./styles/tokens.css";
import "./styles/mantine.css";
import "./styles/base.css";
import "./styles/forms.css";
import "./lib/insecure-origin.ts";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api.ts";
import { wait } from "./lib/wait.ts";
import { router } from "./router.tsx";
import { cssVariablesResolver, theme } from "./theme.ts";

/** The nonce of the Content-Security-Policy, for the style elements that Mantine makes. */
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;

const SKELETON_AFTER_MS = 150;

/**
 * The service's HTML of a public page stays in view until the page is complete. Pages of members have none: what the service sent with
 * them is shown at once, and a skeleton stands for what takes longer. No top-level await: a page that shares a file with the entry would
 * wait for the entry, which waits for the page.
 */
async function start(root: HTMLElement): Promise<void> {
  const loaded = router.load();
  const hasContent = root.querySelector("#content")?.hasChildNodes();
  await (hasContent ? loaded : Promise.race([loaded, wait(SKELETON_AFTER_MS)]));
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={cssVariablesResolver}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce ?? ""}
      >
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}

const root = document.getElementById("root");
if (!root) throw new Error("The page has no #root");
void start(root);
