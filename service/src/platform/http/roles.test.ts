import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  type Access,
  type Endpoint,
  endpoints,
  type Permission,
  permissions,
  type Role,
  rolePermissions,
  roles,
  statusOf,
} from "@stoa/contract";
import { decodeJwt } from "jose";
import { startEvaluation, storeTestSet } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { isFullSize, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { createOAuthClient, postTokenRequest, requestTokens } from "../../../test/oauth.ts";
import { bookEarnings, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { picture, send, sendImage, uploadFile } from "../../../test/uploads.ts";
import { createWorkflow } from "../../../test/workflows.ts";
import type { Caller } from "../../core/context.ts";
import type { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { mustBeAllowed } from "./authenticate.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** A caller of every endpoint: its credentials, and the expected identity. */
interface TestCaller {
  who: "nobody" | "guest" | "session" | "key";
  role: Role;
  secondFactor: boolean;
  permissions: readonly Permission[];
  headers(): Promise<Record<string, string>>;
}

const nobody: TestCaller = {
  who: "nobody",
  role: "user",
  secondFactor: false,
  permissions: [],
  headers: async () => ({}),
};

const guest: TestCaller = {
  ...nobody,
  who: "guest",
  headers: async () => {
    const { name, value } = market.service.ctx.guests.cookie();
    return { cookie: `${name}=${value}` };
  },
};

const signedIn = (role: Role, secondFactor: boolean): TestCaller => ({
  ...nobody,
  who: "session",
  role,
  secondFactor,
  headers: async () => {
    const { userId } = await market.createUser({ role });
    const { key } = await market.createSession(userId, { secondFactor });
    return { authorization: `Bearer ${key}` };
  },
});

const withKey = (granted: readonly Permission[], role: Role = "user"): TestCaller => ({
  ...nobody,
  who: "key",
  role,
  permissions: granted,
  headers: async () => {
    const { key } = await market.createUser({ role, permissions: [...granted] });
    return { authorization: `Bearer ${key}` };
  },
});

/** A token of our OAuth server, for a client that acts as its owner. */
const withToken = (scope: string, role: Role = "user"): TestCaller => ({
  ...withKey(scope.split(" ") as Permission[], role),
  headers: async () => {
    const client = await createOAuthClient(market, await market.createUser({ role }));
    const { body } = await postTokenRequest(market, client, { grant_type: "client_credentials", scope });
    return { authorization: `Bearer ${body.access_token}` };
  },
});

const testCallers: Record<string, TestCaller> = {
  nobody,
  "a guest of the storefront": guest,
  "a user": signedIn("user", false),
  "a seller": signedIn("seller", false),
  "a seller with two factors": signedIn("seller", true),
  "an administrator without two factors": signedIn("admin", false),
  "an administrator with two factors": signedIn("admin", true),
  "a key without permissions": withKey([]),
  "a key with every permission": withKey(permissions),
  "an administrator's key with every permission": withKey(permissions, "admin"),
  ...Object.fromEntries(
    permissions.map((permission) => [`a key with ${permission} alone`, withKey([permission])]),
  ),
  ...Object.fromEntries(permissions.map((scope) => [`an OAuth token of ${scope} alone`, withToken(scope)])),
  "an administrator's OAuth token of every scope": withToken(permissions.join(" "), "admin"),
};

/** The specification's matrix as an independent copy: what the caller is missing, or null. */
function missingFor(
  access: Access,
  testCaller: TestCaller,
): "credential" | { required: string | undefined } | null {
  if (access.who === "public") return null;
  if (testCaller.who === "nobody") return "credential";
  if (testCaller.who === "guest") return access.who === "visitor" ? null : { required: "account" };
  if (access.who === "admin") {
    const mayLookIn = testCaller.who === "session" && testCaller.role === "admin";
    if (!mayLookIn) return { required: "view:admin_panel" };
    return testCaller.secondFactor ? null : { required: "two-factor" };
  }
  if (testCaller.who === "key" && access.who === "session") return { required: "session" };
  const wanted = access.who === "session" ? null : access.permission;
  if (testCaller.who === "key" && wanted !== null && !testCaller.permissions.includes(wanted))
    return { required: wanted };
  const role = "rolePermission" in access ? access.rolePermission : undefined;
  const held: readonly string[] = rolePermissions[testCaller.role];
  return role === undefined || held.includes(role) ? null : { required: role };
}

/** Unknown ids and no body, so that no endpoint has an effect. */
const callEndpoint = ({ method, base, path }: Endpoint, headers: Record<string, string>) =>
  market.as(null).request(method, base + path.replace(/:\w+/g, "nothing"), { headers });

function assertVerdict(endpoint: Endpoint, testCaller: TestCaller, reply: Reply) {
  const lack = missingFor(endpoint.access, testCaller);
  if (lack === "credential") return assertError(reply, 401, "INVALID_API_KEY");
  if (lack === null) {
    assert.ok(reply.status !== 403 && reply.body?.error?.code !== "INVALID_API_KEY", reply.text);
    assert.notEqual(reply.body?.error?.code, "NOT_FOUND", "it is routed");
    return;
  }
  const details = assertError(reply, 403, "UNAUTHORIZED");
  assert.equal(details?.required, lack.required);
}

/** The caller that authentication makes of these credentials. */
function callerOf({ who, role, secondFactor, permissions: granted }: TestCaller): Caller {
  const known = { userId: "u", plan: "free", quota: null, role } as const;
  if (who === "guest") return { kind: "guest", guestId: "g" };
  if (who === "key") return { ...known, kind: "key", keyId: "k", permissions: new Set(granted) };
  return { ...known, kind: "session", sessionId: "s", secondFactor, authenticatedAt: new Date() };
}

test("role matrix: every caller at every endpoint is allowed or refused as the specification says", () => {
  for (const [name, testCaller] of Object.entries(testCallers)) {
    if (testCaller.who === "nobody") continue;
    for (const endpoint of endpoints)
      assert.deepEqual(
        refusalOf(callerOf(testCaller), endpoint.access),
        missingFor(endpoint.access, testCaller),
        `${name} at ${endpoint.name}`,
      );
  }
});

/** What authorization requires, in the form of `missingFor`; null: allowed. */
function refusalOf(caller: Caller, access: Access): { required: string | undefined } | null {
  try {
    mustBeAllowed(caller, access);
    return null;
  } catch (error) {
    return { required: (error as ApiError).details?.["required"] as string | undefined };
  }
}

suite("role matrix over HTTP: without a credential 401, a refused caller 403, an allowed caller passes", () => {
  const headersOf = new Map<TestCaller, Promise<Record<string, string>>>();
  async function requestAs(endpoint: Endpoint, testCaller: TestCaller): Promise<void> {
    const headers = headersOf.get(testCaller) ?? testCaller.headers();
    headersOf.set(testCaller, headers);
    assertVerdict(endpoint, testCaller, await callEndpoint(endpoint, await headers));
  }

  const guarded = endpoints.filter(({ access }) => access.who !== "public");
  const callers = Object.values(testCallers).filter(({ who }) => who !== "nobody");
  for (const [at, endpoint] of guarded.entries()) {
    const refused = callers.filter((caller) => missingFor(endpoint.access, caller));
    const allowed = callers.filter((caller) => !missingFor(endpoint.access, caller));
    // In full size every caller; else one of each kind, a different one per endpoint.
    const tried = isFullSize
      ? callers
      : [refused, allowed].flatMap((kind) => (kind.length > 0 ? kind[at % kind.length]! : []));
    test(endpoint.name, async () => {
      for (const caller of [nobody, ...tried]) await requestAs(endpoint, caller);
    });
  }
});

test("public endpoints: every caller passes", async () => {
  for (const endpoint of endpoints.filter(({ access }) => access.who === "public"))
    assertVerdict(endpoint, nobody, await callEndpoint(endpoint, {}));
});

suite("deny by default", () => {
  const KINDS = ["public", "visitor", "member", "session", "admin"];
  const held: readonly (string | undefined)[] = [undefined, ...rolePermissions.admin];

  for (const endpoint of endpoints) {
    test(`${endpoint.name}: has a rule`, () => {
      const { access, base } = endpoint;
      assert.ok(KINDS.includes(access.who));
      const isForAll = base === "/api/auth" || endpoint.name === "webhooks.egress";
      assert.equal(access.who === "public", isForAll, "below /v1 everybody is asked");
      if ("permission" in access && access.permission !== null)
        assert.ok(permissions.includes(access.permission));
      if ("rolePermission" in access) assert.ok(held.includes(access.rolePermission));
    });
  }

  test("visitors: read public lists and products, and try products", () => {
    const open = endpoints.filter(({ access }) => access.who === "visitor");
    assert.deepEqual(open.map(({ method, path }) => `${method} ${path}`).sort(), [
      "GET /categories",
      "GET /evaluations/:evaluationId/proof",
      "GET /products",
      "GET /products/:productId",
      "GET /products/:productId/reviews",
      "GET /products/:productId/reviews/:reviewId",
      "GET /products/:productId/score-card",
      "GET /products/:productId/similar",
      "GET /products/:productId/test-set",
      "GET /products/facets",
      "GET /sellers/:handle",
      "GET /shared-runs/:token",
      "POST /products/:productId/try",
    ]);
  });

  test("keys and tokens: no access to accounts, sessions and administration", () => {
    const forPeople =
      /^\/(admin|api-keys|oauth-clients|account\/(sessions|two-factor|grants|password))(\/|$)/;
    for (const { name, path, access } of endpoints.filter(({ path }) => forPeople.test(path)))
      assert.ok(access.who === "session" || access.who === "admin", `${name} (${path})`);
  });

  test("each path below /v1: in the contract, or listed as public with a reason", () => {
    const open = [
      "GET /v1/openapi.json",
      // Signed links: the signature replaces a credential.
      "GET /v1/purchases/:orderId/download",
      "GET /v1/purchases/:orderId/receipt",
      "GET /v1/purchases/:orderId/receipt.pdf",
      "GET /v1/account/subscription/payments/:paymentId/receipt",
      "GET /v1/account/subscription/payments/:paymentId/receipt.pdf",
      "GET /v1/products/:productId/files/:fileId/download/:readerId",
      // Redirects of browsers to an identity provider and back: state and PKCE replace a credential.
      "GET /api/auth/github",
      "GET /api/auth/google",
      "GET /api/auth/callback/github",
      "GET /api/auth/callback/google",
    ];
    const declared = endpoints.map(({ method, base, path }) => `${method} ${base}${path}`);
    const served = routesOf(market.service.app.printRoutes({ commonPrefix: false }));
    const ours = served.filter((route) => /^\w+ \/(v1|api\/auth)\b/.test(route));
    assert.deepEqual(
      ours.filter((route) => !route.startsWith("HEAD ")).sort(),
      [...declared, ...open].sort(),
    );
    for (const head of ours.filter((route) => route.startsWith("HEAD ")))
      assert.ok([...declared, ...open].includes(head.replace("HEAD", "GET")), head);
  });
});

/** Parses the router's tree into `METHOD /path`: four columns per level, each line the end of its parent's path. */
function routesOf(drawing: string): string[] {
  const above: string[] = [];
  return drawing.split("\n").flatMap((line) => {
    const found = /^([│ ]*)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line);
    if (!found) return [];
    const level = found[1]!.length / 4;
    above[level] = (above[level - 1] ?? "") + found[2]!;
    return (found[3]?.split(", ") ?? []).map((method) => `${method} ${above[level]}`);
  });
}

suite("authorization of a caller", () => {
  const known = { userId: "u", plan: "free", quota: null } as const;
  const key = { ...known, kind: "key", keyId: "k" } as const;
  const token = { ...known, kind: "token", grantId: null } as const;
  const session = {
    ...known,
    kind: "session",
    sessionId: "s",
    secondFactor: false,
    authenticatedAt: new Date(),
  } as const;

  const required = (caller: Caller, access: Access) => {
    try {
      mustBeAllowed(caller, access);
      return null;
    } catch (error) {
      return (error as ApiError).details?.["required"];
    }
  };

  test("keys, tokens and sessions: need the role besides the permission", () => {
    const access = { who: "member", permission: "analytics:read", rolePermission: "read:analytics" } as const;
    const granted = new Set<Permission>(["analytics:read"]);
    const verdicts = roles.map((role) => [
      required({ ...key, role, permissions: granted }, access),
      required({ ...token, role, permissions: granted }, access),
      required({ ...session, role }, access),
    ]);
    const refused = "read:analytics";
    assert.deepEqual(verdicts, [
      [refused, refused, refused],
      [null, null, null],
      [null, null, null],
    ]);
    const without = new Set<Permission>();
    assert.equal(required({ ...key, role: "seller", permissions: without }, access), "analytics:read");
  });

  test("a path with a role: sessions need it too", () => {
    const access = { who: "session", rolePermission: "manage:products" } as const;
    assert.deepEqual(
      roles.map((role) => required({ ...session, role }, access)),
      ["manage:products", null, null],
    );
  });

  test("a token: exactly the access of a key with the same permissions, at every endpoint", () => {
    for (const role of roles) {
      for (const permission of permissions) {
        const granted = { role, permissions: new Set([permission]) };
        for (const { name, access } of endpoints)
          assert.equal(
            required({ ...token, ...granted }, access),
            required({ ...key, ...granted }, access),
            name,
          );
      }
    }
  });

  test("an unknown kind of endpoint: every caller is refused", () => {
    const access = { who: "somebody" } as unknown as Access;
    const granted = new Set(permissions);
    for (const caller of [
      { kind: "guest", guestId: "g" } as const,
      { ...key, role: "user", permissions: granted } as const,
      { ...token, role: "user", permissions: granted } as const,
      { ...session, role: "admin", secondFactor: true } as const,
    ])
      assert.notEqual(required(caller, access), null, caller.kind);
  });
});

suite("objects of one seller", () => {
  let owner: Client;
  let buyer: Client;
  /** An object of the other seller for each path parameter. */
  let theirs: Record<string, string[]>;
  let published: string;
  let draft: string;

  before(async () => {
    owner = await market.createUser({ name: "Owner" });
    buyer = await market.createUser({ name: "Buyer" });
    [published, draft] = [await createProduct(owner), await createDraft(owner)];
    const orderId = await buyProduct(buyer, published);
    const run = { productId: published, apiKeyId: "sandbox", variables: { topic: "rain" } };
    const { executionId } = (await buyer.post("/v1/ai/execute", run)).body.data;
    await storeTestSet(owner, published);
    const evaluationId = await startEvaluation(owner, published);
    const key = { provider: "openai", name: "Mine", key: "sk-0123456789abcdef" };
    const [event] = (await buyer.get("/v1/events")).body.data;
    const app = await createOAuthClient(market, buyer);
    await requestTokens(market, buyer.userId, app);
    const settings = await market.createSession(buyer.userId);
    const [grant] = (await settings.get("/v1/account/grants")).body.data;
    const file = await uploadFile(owner, published);
    const image = await sendImage(owner, published, { bytes: await picture() });
    const hook = (await buyer.post("/v1/webhooks", { url: "https://example.com/hooks" })).body.data;
    const recovered = await buyer.post(`/v1/webhooks/${hook.id}/recover`, { since: "2026-06-14T00:00:00Z" });
    theirs = {
      fileId: [file.id],
      imageId: [image.body.data.id],
      productId: [published, draft],
      orderId: [orderId],
      methodId: [(await buyer.post("/v1/payment-methods", { token: "pm_test_ok" })).body.data.id],
      discountCodeId: [await hasDiscountCode(owner)],
      executionId: [executionId],
      evaluationId: [evaluationId],
      stepId: ["ok"],
      workflowId: [await createWorkflow(owner, { steps: [{ id: "a", type: "transform", value: "1" }] })],
      providerKeyId: [(await buyer.post("/v1/ai/keys", key)).body.data.id],
      eventId: [event.id],
      webhookId: [hook.id],
      deliveryId: [(await buyer.post(`/v1/webhooks/${hook.id}/test`)).body.data.id],
      recoveryId: [recovered.body.data.id],
      sessionId: [decodeJwt((await market.createSession(buyer.userId)).key).jti!],
      keyId: [await hasApiKey(buyer)],
      userId: [toId("usr", buyer.userId)],
      handle: [toId("usr", owner.userId)],
      clientId: [app.id],
      grantId: [grant.id],
      refundId: [await hasRefund(buyer, orderId)],
      reviewId: [await hasReview(buyer, published)],
      payoutId: [await hasPayout(owner)],
      version: ["1.0.0"],
      provider: ["github"],
      // The token alone gives access to a shared run, so this is the token of none.
      token: ["x".repeat(32)],
      // Of the installation, and of no account.
      backupId: [toId("bkp", owner.userId)],
      verificationId: [toId("lvf", owner.userId)],
      jobId: [toId("job", owner.userId)],
      emailId: [toId("mail", owner.userId)],
      queue: ["verify-ledger"],
      restoreId: ["x".repeat(43)],
    };
  });

  const pathsOf = ({ base, path }: Endpoint) =>
    [...path.matchAll(/:(\w+)/g)].reduce(
      (paths, [parameter, name]) => {
        const ids = theirs[name!];
        assert.ok(ids, `the test knows nothing of theirs for ${parameter} of ${path}`);
        return paths.flatMap((before) => ids.map((id) => before.replace(parameter, id)));
      },
      [base + path],
    );

  /** Sends a valid body, so that only the owner of the object matters. */
  const reach = (client: Client, endpoint: Endpoint, path: string) =>
    endpoint.request.kind === "upload"
      ? send(client, path, { bytes: "Mine." })
      : client.request(
          endpoint.method,
          path,
          endpoint.request.kind === "json" ? { json: endpoint.request.example } : {},
        );

  const hasApiKey = async ({ userId }: Client): Promise<string> => {
    const input = { name: "Theirs", permissions: {} };
    return (await (await market.createSession(userId)).post("/v1/api-keys", input)).body.data.id;
  };

  const hasPayout = async (who: Client): Promise<string> => {
    installFakeBank(market);
    await bookEarnings(market, who, { amountMinor: 5000n });
    return (await requestPayout(market, who)).body.data.id;
  };

  const hasDiscountCode = async (who: Client): Promise<string> =>
    (await who.post("/v1/discount-codes", { code: "THEIRS", percentOff: 10 })).body.data.id;

  const hasRefund = async (who: Client, orderId: string): Promise<string> =>
    (await who.post(`/v1/purchases/${orderId}/refund`, { reason: "other" })).body.data.id;

  const hasReview = async (who: Client, productId: string): Promise<string> =>
    (await who.post(`/v1/products/${productId}/reviews`, { rating: 5 })).body.data.id;

  const withParameters = endpoints.filter(({ path }) => path.includes(":"));
  /** Public parts of a published product and its seller. */
  const everybodys = [
    "products.get",
    "products.similar",
    "products.report",
    "products.versions.list",
    "products.scoreCard.get",
    "products.testSet.get",
    "reviews.list",
    "reviews.get",
    "reviews.report",
    "sellers.get",
    "wishlist.add",
    "wishlist.remove",
  ];

  /** A user without the product sees it, and can neither review nor try it. */
  const refusedAt: Record<string, number[]> = { "reviews.create": [404, 422], "tryOuts.run": [404, 409] };
  const refusals = ({ name }: Endpoint) => refusedAt[name] ?? [403, 404];

  const strangers: Record<string, () => Promise<Client>> = {
    "another seller's key": () => market.createUser({ role: "seller" }),
    "another seller's session": async () =>
      market.createSession((await market.createUser({ role: "seller" })).userId, { secondFactor: true }),
    "an administrator without two factors": async () =>
      market.createSession((await market.createUser({ role: "admin" })).userId),
    "an administrator's key": () => market.createUser({ role: "admin" }),
  };

  for (const [at, [name, stranger]] of Object.entries(strangers).entries()) {
    test(`${name}: no access at any endpoint`, async () => {
      const client = await stranger();
      for (const endpoint of sampleOf(withParameters, at)) {
        for (const path of pathsOf(endpoint)) {
          const reply = await reach(client, endpoint, path);
          const isOpen = everybodys.includes(endpoint.name) && !path.includes(draft);
          if (isOpen) assert.equal(reply.status, statusOf(endpoint), `${endpoint.name} ${reply.text}`);
          else assert.ok(refusals(endpoint).includes(reply.status), `${endpoint.name} ${path} ${reply.text}`);
        }
      }
      assert.equal((await owner.get(`/v1/products/${published}`)).body.data.title, haiku.title);
    });
  }

  test("an administrator: may change products and decide refunds, nothing else", async () => {
    const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
      secondFactor: true,
    });
    const private_ = withParameters.filter(
      ({ path }) => !/^\/(products|sellers|wishlist|refunds|admin|ai\/workflows)\//.test(path),
    );
    for (const endpoint of sampleOf(private_, 2)) {
      for (const path of pathsOf(endpoint))
        assert.equal((await reach(admin, endpoint, path)).status, 404, endpoint.name);
    }
    const refund = `/v1/refunds/${theirs["refundId"]![0]}`;
    assert.equal((await admin.post(`${refund}/cancel`)).status, 403);
    assert.equal((await admin.post(`${refund}/reject`, { reason: "No" })).status, 200);
    assert.equal((await admin.get(`/v1/products/${draft}`)).status, 200);
    assert.equal((await admin.patch(`/v1/products/${draft}`, { title: "Mended" })).status, 200);
    assert.equal((await owner.get(`/v1/products/${draft}`)).body.data.title, "Mended");
  });
});
