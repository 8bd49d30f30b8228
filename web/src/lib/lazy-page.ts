import { ConnectionError } from "@stoa/sdk";
import { lazyRouteComponent } from "@tanstack/react-router";
import { isMissingFile } from "./missing-file.ts";

type Module = Record<string, unknown>;

/**
 * A page that loads when it is opened. After a deployment the files of an older build are gone, and the router loads the address anew,
 * once. Without a connection that would lose what is open, so that the error stands in the page then.
 */
export const lazyPage = ((load: () => Promise<Module>, name?: string) =>
  lazyRouteComponent(
    () =>
      load().catch(async (error: unknown) => {
        if (!isMissingFile(error)) throw error;
        if (!(await isReachable())) throw new ConnectionError("The page was not loaded");
        // In the words that the router knows.
        throw new Error(`Failed to fetch dynamically imported module: ${(error as Error).message}`);
      }),
    name,
  )) as typeof lazyRouteComponent;

const isReachable = (): Promise<boolean> =>
  fetch("/healthz", { cache: "no-store" }).then(
    ({ ok }) => ok,
    () => false,
  );
