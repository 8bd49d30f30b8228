import type { ProductDetail, Seller, SharedRun } from "@stoa/contract";
import { firstRequests, parseSearch } from "@stoa/web/first-requests";
import { memberRequests } from "@stoa/web/member-requests";
import { productPath } from "@stoa/web/slug";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { withReturnTo } from "../../accounts/pages/page-request.ts";
import type { Context } from "../../core/context.ts";
import { html } from "../../platform/http/html.ts";
import { storeReferral } from "../../platform/http/referral-cookie.ts";
import { sendClientPage } from "./client-page.ts";
import { MEMBER_PAGES, OPEN_PAGES } from "./member-pages.ts";
import { checkoutPage, homePage, missingPage, productPage, searchPage, sellerPage } from "./public-pages.ts";
import { sharedRunPage } from "./shared-run-page.ts";

/** The sidebar, of dense pages. */
const SHELL = "src/components/layout/shell.tsx";
const SHELL_PATH = /^\/(account|settings|studio|admin)(\/|$)/;

/** The addresses of the web client. */
export function addClientPages(app: FastifyInstance, ctx: Context): void {
  const origin = () => ctx.links.origin();
  const requestsOf = (request: FastifyRequest) =>
    firstRequests(pathOf(request), request.query as Record<string, unknown>);
  app.get("/", (request, reply) => {
    storeReferral(request, reply);
    return sendClientPage(ctx, request, reply, {
      requests: requestsOf(request),
      modules: ["src/pages/market/home.tsx"],
      describe: (responses) => homePage(origin(), responses),
    });
  });
  app.get("/search", (request, reply) => {
    const { q } = parseSearch(request.query as Record<string, unknown>);
    return sendClientPage(ctx, request, reply, {
      requests: requestsOf(request),
      modules: ["src/pages/market/search.tsx"],
      describe: (responses) => searchPage(origin(), responses, q),
    });
  });
  addProductPage(app, ctx);
  addSellerPage(app, ctx);
  addCheckoutPage(app, ctx);
  for (const [path, { module, title }] of Object.entries(OPEN_PAGES))
    app.get(path, (request, reply) => {
      storeReferral(request, reply);
      return sendClientPage(ctx, request, reply, {
        requests: requestsOf(request),
        memberRequests: memberRequestsOf(request),
        modules: [module],
        describe: () => ({ title, head: NO_INDEX }),
      });
    });

  addSharedRunPage(app, ctx);
  for (const [path, module] of Object.entries(MEMBER_PAGES))
    app.get(path, (request, reply) =>
      sendClientPage(ctx, request, reply, {
        memberRequests: memberRequestsOf(request),
        modules: SHELL_PATH.test(path) ? [module, SHELL] : [module],
        describe: (_responses, isSignedIn) =>
          isSignedIn ? { title: "Stoa" } : { redirect: withReturnTo("/auth/sign-in", request.url) },
      }),
    );
}

function addProductPage(app: FastifyInstance, ctx: Context): void {
  app.get("/p/:slug", async (request, reply) => {
    const requests = firstRequests(pathOf(request), {});
    return sendClientPage(ctx, request, reply, {
      requests,
      modules: ["src/pages/market/product.tsx"],
      describe: (responses) => {
        const found = responses[requests[0] ?? ""];
        if (found?.status !== 200) return missingPage;
        const product: ProductDetail = found.body.data;
        const path = `/p/${productPath(product)}`;
        // The title, and with it the address, may have changed.
        if (decodeURIComponent(pathOf(request)) !== path)
          return { redirect: encodeURI(path) + queryOf(request), isPermanent: true };
        return productPage(ctx.links.origin(), responses, product);
      },
    });
  });
}

function addSellerPage(app: FastifyInstance, ctx: Context): void {
  app.get("/u/:handle", (request, reply) => {
    const requests = firstRequests(pathOf(request), request.query as Record<string, unknown>);
    return sendClientPage(ctx, request, reply, {
      requests,
      modules: ["src/pages/market/seller.tsx"],
      describe: (responses) => {
        const found = responses[requests[0] ?? ""];
        if (found?.status !== 200) return missingPage;
        const seller: Seller = found.body.data;
        const path = `/u/${seller.handle ?? seller.id}`;
        // Handles have capital letters for readers only, and an id leads to the handle.
        if (decodeURIComponent(pathOf(request)) !== path)
          return { redirect: path + queryOf(request), isPermanent: true };
        return sellerPage(ctx.links.origin(), responses, seller);
      },
    });
  });
}

function addCheckoutPage(app: FastifyInstance, ctx: Context): void {
  app.get("/checkout/:productId", (request, reply) => {
    storeReferral(request, reply);
    const requests = firstRequests(pathOf(request), {});
    return sendClientPage(ctx, request, reply, {
      requests,
      memberRequests: memberRequestsOf(request),
      modules: ["src/pages/buying/checkout.tsx"],
      describe: (responses) => {
        const found = responses[requests[0] ?? ""];
        const product: ProductDetail | undefined = found?.status === 200 ? found.body.data : undefined;
        const isNew = !("order" in (request.query as object)) && product?.access.reason === "none";
        return isNew ? checkoutPage(product) : { title: "Checkout", head: NO_INDEX };
      },
    });
  });
}

const NO_INDEX = html`<meta name="robots" content="noindex">`;

function addSharedRunPage(app: FastifyInstance, ctx: Context): void {
  app.get("/shared/:token", async (request, reply) => {
    const requests = firstRequests(pathOf(request), {});
    return sendClientPage(ctx, request, reply, {
      requests,
      modules: ["src/pages/running/shared-run.tsx"],
      describe: (responses) => {
        const found = responses[requests[0] ?? ""];
        if (found?.status !== 200) return { ...missingPage, isSecret: true };
        const run: SharedRun = found.body.data;
        return sharedRunPage(run);
      },
    });
  });
}

const memberRequestsOf = (request: FastifyRequest): string[] =>
  memberRequests(
    request.routeOptions.url ?? "",
    request.params as Record<string, string>,
    request.query as Record<string, unknown>,
  );

const pathOf = ({ url }: FastifyRequest): string => url.split("?", 1)[0] ?? "";

/** With its question mark. */
const queryOf = (request: FastifyRequest): string => request.url.slice(pathOf(request).length);
