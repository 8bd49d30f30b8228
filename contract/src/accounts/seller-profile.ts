import { z } from "zod";
import { hasInvisible, visibleLine } from "../core/visible-text.ts";

/** Names of pages, and of those who speak for the marketplace. */
const RESERVED_HANDLES: ReadonlySet<string> = new Set([
  ...["about", "abuse", "account", "accounts", "admin", "administrator", "admins", "analytics", "anonymous"],
  ...["api", "apis", "app", "apps", "assets", "auth", "avatars", "billing", "blog", "cart", "categories"],
  ...["category", "checkout", "community", "contact", "dashboard", "demo", "dev", "docs", "download"],
  ...["edit", "error", "events", "explore", "favicon", "feed", "guest", "guides", "healthz", "help", "home"],
  ...["images", "index", "info", "invite", "legal", "library", "login", "logout", "mail", "market"],
  ...["marketplace", "mcp", "mod", "moderation", "moderator", "moderators", "mods", "new", "news"],
  ...["notifications", "null", "oauth", "official", "openapi", "operator", "orders", "owner", "pages"],
  ...["password", "payments", "payouts", "postmaster", "press", "pricing", "privacy", "product", "products"],
  ...["profile", "profiles", "public", "purchases", "readyz", "refunds", "register", "robots", "root"],
  ...["run", "runs", "sales", "sandbox", "search", "security", "seller", "sellers", "service", "session"],
  ...["sessions", "settings", "shop", "sign-in", "sign-out", "sign-up", "signin", "signup", "sitemap"],
  ...["staff", "static", "status", "stoa", "store", "studio", "support", "system", "tags", "team", "terms"],
  ...["test", "undefined", "user", "users", "webhook", "webhooks", "webmaster", "welcome", "wishlist", "www"],
]);

/** The same in every case. Without underscore, so that no id of a user is a handle. */
export const Handle = z
  .string()
  .trim()
  .min(3)
  .max(30)
  .regex(
    /^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$/,
    "must have only letters a to z, digits, and single hyphens between them",
  )
  .toLowerCase()
  .refine((handle) => !RESERVED_HANDLES.has(handle), "is reserved: choose another one");

/** A name, no address. URL parsers accept other characters in hosts, and show some of them like a slash. */
const HOST = /^(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*$/;

/** The form that a browser uses: a host of other scripts as `xn--…`, so that it looks like no other host. */
function toLinkUrl(text: string): string | null {
  const url = hasInvisible(text) || /\s/.test(text) ? null : URL.parse(text);
  const isLink =
    url?.protocol === "https:" && url.username === "" && url.password === "" && HOST.test(url.hostname);
  return isLink ? url.href : null;
}

const MAX_URL = 500;
const LinkUrl = z
  .string()
  .trim()
  .max(MAX_URL)
  .refine(
    (text) => (toLinkUrl(text)?.length ?? Number.POSITIVE_INFINITY) <= MAX_URL,
    "must be an https URL with the name of a host, without user, password and spaces",
  )
  .overwrite((text) => toLinkUrl(text) ?? text);

export const MAX_PROFILE_LINKS = 5;

export const ProfileLink = z
  .object({ label: z.string().nullable().describe("null: show the URL"), url: z.string() })
  .meta({ id: "ProfileLink" });
export type ProfileLink = z.infer<typeof ProfileLink>;

const NewProfileLink = z
  .strictObject({
    label: visibleLine(60)
      .nullish()
      .transform((label) => label ?? null),
    url: LinkUrl,
  })
  .meta({ id: "NewProfileLink" });

export const ProfileLinks = z.array(NewProfileLink).max(MAX_PROFILE_LINKS);

export const MAX_AVATAR_BYTES = 5 * 1024 * 1024;

export const Avatar = z
  .object({ url: z.string().describe("WebP, at most 512 wide and high; another picture has another URL") })
  .meta({ id: "Avatar" });

/** How products and purchases name their seller. */
export const authorFields = {
  id: z.string(),
  name: z.string(),
  handle: z.string().nullable().describe("The seller's page is GET /sellers/{handle}; null: use the id"),
  avatar: Avatar.nullable(),
};
