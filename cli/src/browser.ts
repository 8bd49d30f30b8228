import { spawn } from "node:child_process";
import { environment } from "./environment.ts";

const openers: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens a page in the user's browser. Where there is none, nothing happens: the caller prints the address too. */
export function openInBrowser(url: URL): void {
  // The service chose the address: one of another scheme could start a program.
  if (!/^https?:$/.test(url.protocol)) return;
  const browser = environment("BROWSER");
  const [command = "xdg-open", ...args] = browser ? browser.split(" ") : (openers[process.platform] ?? []);
  // No shell: the address is an argument, whatever it contains.
  const child = spawn(command, [...args, url.href], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}
