import type { ProductDetail } from "@stoa/sdk";
import { useEffect, useRef, useState } from "react";
import { AlertIcon } from "../../components/icons.tsx";
import { signInUrl } from "../../session.ts";

type CaptchaSettings = NonNullable<NonNullable<ProductDetail["tryOut"]>["captcha"]>;

interface RenderOptions {
  sitekey: string;
  theme: "light" | "dark";
  callback: (token: string) => void;
  "expired-callback": () => void;
  "error-callback": () => void;
}

/** The part of their scripts' interface that Turnstile and hCaptcha have in common. */
interface WidgetApi {
  render: (element: HTMLElement, options: RenderOptions) => unknown;
  remove: (id: unknown) => void;
}

/** Each defines a global object of its name. The policy of the page allows these origins. */
const SCRIPTS: Record<string, { url: string; global: string }> = {
  turnstile: {
    url: "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit",
    global: "turnstile",
  },
  hcaptcha: { url: "https://js.hcaptcha.com/1/api.js?render=explicit", global: "hcaptcha" },
};

interface CaptchaProps {
  captcha: CaptchaSettings;
  /** null: it has expired. */
  onToken: (token: string | null) => void;
  error: string | undefined;
}

/** The widget of the captcha's provider, for one token. */
export default function Captcha({ captcha: { provider, siteKey }, onToken, error }: CaptchaProps) {
  const box = useRef<HTMLDivElement>(null);
  const [hasFailed, fail] = useState(false);
  const setToken = useRef(onToken);
  setToken.current = onToken;
  useEffect(() => {
    let remove: (() => void) | undefined;
    let isGone = false;
    const show = (api: WidgetApi) => {
      if (isGone || !box.current) return;
      const id = api.render(box.current, {
        sitekey: siteKey,
        theme: isDark() ? "dark" : "light",
        callback: (token) => setToken.current(token),
        "expired-callback": () => setToken.current(null),
        "error-callback": () => fail(true),
      });
      remove = () => api.remove(id);
    };
    loadApi(provider).then(show, () => fail(true));
    return () => {
      isGone = true;
      remove?.();
    };
  }, [provider, siteKey]);
  return (
    <div className="stack">
      {!hasFailed && <div className="try-captcha" ref={box} />}
      {hasFailed ? (
        <p className="strip warning" role="alert">
          <AlertIcon size={20} />
          <span className="grow">
            <b>The captcha did not load, and visitors need one.</b> Allow scripts of its provider, or sign in:
            members need none.
          </span>
          <a className="btn s" href={signInUrl()}>
            Sign in
          </a>
        </p>
      ) : (
        error !== undefined && (
          <p className="ferr" role="alert">
            <AlertIcon /> {error}
          </p>
        )
      )}
    </div>
  );
}

const isDark = (): boolean => getComputedStyle(document.documentElement).colorScheme.startsWith("dark");

const LOAD_MS = 15_000;
const READY_MS = 50;

/** Rejects if the script does not load, such as behind a content blocker. */
async function loadApi(provider: string): Promise<WidgetApi> {
  const script = SCRIPTS[provider];
  if (!script) throw new Error(`This page knows no captcha of ${provider}`);
  const find = () => (window as unknown as Record<string, WidgetApi | undefined>)[script.global];
  if (!find() && !document.querySelector(`script[src="${script.url}"]`)) await loadScript(script.url);
  const until = performance.now() + LOAD_MS;
  for (;;) {
    const api = find();
    if (api) return api;
    if (performance.now() > until) throw new Error("The captcha's script defined nothing");
    await new Promise((resolve) => setTimeout(resolve, READY_MS));
  }
}

const loadScript = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = url;
    element.async = true;
    element.onload = () => resolve();
    element.onerror = () => {
      // Another form may try again.
      element.remove();
      reject(new Error("The captcha's script did not load"));
    };
    document.head.append(element);
  });
