import { type Adapter, type AdapterPayload, errors } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { fromSeconds, toSeconds, unusedMethods } from "./adapter-defaults.ts";
import {
  consumeFlow,
  deleteFlow,
  type FlowKind,
  type FlowRow,
  findFlow,
  findFlowByUid,
  upsertFlow,
} from "./flow-queries.ts";

/** Sessions and interactions by the digest of their cookie, and pushed authorization requests. */
export const flowAdapter = (ctx: Context, kind: FlowKind): Adapter => ({
  ...unusedMethods,
  async upsert(value, payload) {
    const { exp, uid } = payload;
    await upsertFlow(ctx.db, {
      digest: digestOf(value),
      kind,
      uid: uid ?? null,
      payload: JSON.stringify(withoutSecrets(payload)),
      expiresAt: fromSeconds(exp!),
    });
  },
  async find(value) {
    const flow = await findFlow(ctx.db, kind, digestOf(value));
    if (!flow) return undefined;
    // The interaction's path ends in its own value, which is not stored.
    const returnTo = kind === "Interaction" && { returnTo: `${ctx.links.origin()}/oauth/authorize/${value}` };
    return { ...toPayload(flow), jti: value, ...returnTo };
  },
  async findByUid(uid) {
    const flow = await findFlowByUid(ctx.db, kind, uid);
    return flow && toPayload(flow);
  },
  async consume(value) {
    if (!(await consumeFlow(ctx.db, digestOf(value), ctx.now())))
      throw new errors.InvalidRequestUri("used already");
  },
  async destroy(value) {
    await deleteFlow(ctx.db, digestOf(value));
  },
});

/** The cookie values are in `jti`; an interaction has them in `returnTo` and `session`, too. */
function withoutSecrets({ jti: _, exp: __, returnTo: ___, session, ...stored }: AdapterPayload) {
  if (!session) return stored;
  const { cookie: ____, ...named } = session;
  return { ...stored, session: named };
}

const toPayload = ({ payload, expiresAt, consumedAt }: FlowRow): AdapterPayload => ({
  ...payload,
  exp: toSeconds(expiresAt),
  ...(consumedAt && { consumed: toSeconds(consumedAt) }),
});
