/** Uses the SDK as a buyer does. The same in each runtime; `sdk` is the module and `webhooks` its entry for deliveries. */
export async function runProgram(sdk, webhooks, { baseUrl, apiKey, productId, delivery }) {
  const stoa = new sdk.Stoa({ baseUrl, apiKey });
  const products = await stoa.products.list({ sort: "title", order: "asc", limit: 1 }).toArray();
  const { orderId } = await stoa.purchases.create({ productId });
  const orders = await stoa.purchases.list().toArray();
  const run = { productId, apiKeyId: "sandbox", variables: { topic: "autumn" } };
  const events = [];
  for await (const event of stoa.ai.stream(run)) events.push(event);
  const text = events.map(({ data }) => data.text ?? "").join("");
  const { output } = await stoa.ai.execute(run);
  const publicData = await new sdk.Stoa({ baseUrl }).webhooks.egress();
  const error = await stoa.products.get("prod_nothing").catch((thrown) => thrown);
  const event = await webhooks.unwrap(delivery.body, delivery.headers, delivery.secret);
  const forged = await webhooks
    .unwrap(`${delivery.body} `, delivery.headers, delivery.secret)
    .catch((thrown) => thrown);
  return {
    titles: products.map(({ title }) => title),
    hasOneOrder: orders.length === 1 && orders[0].orderId === orderId,
    events: [...new Set(events.map(({ type }) => type))],
    output,
    isStreamedOutput: text === output,
    publicData,
    error: [error instanceof sdk.NotFoundError, error.name, error.code],
    event: event.type,
    forged: [forged.name, forged.problem],
  };
}
