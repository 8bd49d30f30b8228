import "@fontsource-variable/inter/opsz.css";
import "./styles/tokens.css";
import "./styles/mantine.css";
import "./styles/base.css";
import "./styles/forms.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api.ts";
import { router } from "./router.tsx";
import { cssVariablesResolver, theme } from "./theme.ts";

/** The nonce of the Content-Security-Policy, for the style elements that Mantine makes. */
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;

const root = document.getElementById("root");
if (!root) throw new Error("The page has no #root");

// The service's HTML of a public page stays in view until the page is complete. Pages of members have none, and show a skeleton.
if (root.querySelector("#content")?.hasChildNodes()) await router.load();
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
