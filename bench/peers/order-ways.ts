/** The requests of an order in each system. They run in the process of the load generator. */
import type { IncomingHttpHeaders } from "node:http";

/** What is bought and by which buyer, as the system names them. */
export interface Purchase {
  product: string;
  buyer: string;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: Each path reads the fields of its own system, and fails without them.
  body: any;
}

/** Sends one request and throws unless its answer is a success. */
export type Send = (
  method: "GET" | "POST",
  path: string,
  request: { headers?: Record<string, string>; body?: object },
) => Promise<Reply>;

/** Ids of the shop that the requests contain. */
export type ShopIds = Record<string, string>;

/** Places one paid order. Throws if it is not paid. */
type OrderPath = (send: Send, purchase: Purchase, shop: ShopIds) => Promise<void>;

const ADDRESS = { street: "1 Main Street", city: "Springfield", zip: "62701" };
const NAME = { first: "Bench", last: "Buyer" };

function mustBe(expected: unknown, actual: unknown, answer: unknown): void {
  if (actual !== expected) throw new Error(`expected ${expected}: ${JSON.stringify(answer)}`);
}

/** The buyer is an API key. */
const buyFromStoa: OrderPath = async (send, { product, buyer }) => {
  const headers = { authorization: `Bearer ${buyer}` };
  const { status, body } = await send("POST", "/v1/purchases", { headers, body: { productId: product } });
  mustBe(201, status, body);
  mustBe("completed", body.data.status, body);
  mustBe("string", typeof body.data.receipt.url, body);
};

const medusaAddress = {
  ...{ first_name: NAME.first, last_name: NAME.last, address_1: ADDRESS.street },
  ...{ city: ADDRESS.city, postal_code: ADDRESS.zip, country_code: "us" },
};

/** The steps of Medusa's storefront guides. */
const buyFromMedusaByGuide: OrderPath = async (send, { product, buyer }, shop) => {
  const headers = { "x-publishable-api-key": shop["key"]! };
  const { body: created } = await send("POST", "/store/carts?fields=id", {
    ...{ headers, body: { region_id: shop["region"] } },
  });
  const cart = `/store/carts/${created.cart.id}`;
  const item = { variant_id: product, quantity: 1 };
  await send("POST", `${cart}/line-items?fields=id`, { headers, body: item });
  const contact = { email: buyer, shipping_address: medusaAddress, billing_address: medusaAddress };
  await send("POST", `${cart}?fields=id`, { headers, body: contact });
  const { body: shipping } = await send(
    ...(["GET", `/store/shipping-options?cart_id=${created.cart.id}&fields=id`, { headers }] as const),
  );
  const option = { option_id: shipping.shipping_options[0].id };
  await send("POST", `${cart}/shipping-methods?fields=id`, { headers, body: option });
  await payInMedusa(send, created.cart.id, headers);
};

/** A cart can be created with all that an order needs. */
const buyFromMedusa: OrderPath = async (send, { product, buyer }, shop) => {
  const headers = { "x-publishable-api-key": shop["key"]! };
  const items = [{ variant_id: product, quantity: 1 }];
  const body = { region_id: shop["region"], email: buyer, items };
  const { body: created } = await send("POST", "/store/carts?fields=id", { headers, body });
  await payInMedusa(send, created.cart.id, headers);
};

async function payInMedusa(send: Send, cart: string, headers: Record<string, string>): Promise<void> {
  const collections = "/store/payment-collections";
  const { body: created } = await send("POST", `${collections}?fields=id`, {
    ...{ headers, body: { cart_id: cart } },
  });
  await send("POST", `${collections}/${created.payment_collection.id}/payment-sessions?fields=id`, {
    ...{ headers, body: { provider_id: "pp_system_default" } },
  });
  const completed = await send("POST", `/store/carts/${cart}/complete?fields=id,status`, { headers });
  mustBe("order", completed.body.type, completed.body);
}

const ERROR = "... on ErrorResult{errorCode message}";
const vendureAddress = `{fullName:"${NAME.first} ${NAME.last}",streetLine1:"${ADDRESS.street}",city:"${ADDRESS.city}",postalCode:"${ADDRESS.zip}",countryCode:"US"}`;
const shopMutations = {
  addItem: (variant: string) =>
    `addItemToOrder(productVariantId:"${variant}",quantity:1){... on Order{id} ${ERROR}}`,
  setCustomer: (email: string) =>
    `setCustomerForOrder(input:{firstName:"${NAME.first}",lastName:"${NAME.last}",emailAddress:"${email}"}){... on Order{id} ${ERROR}}`,
  setAddress: `setOrderShippingAddress(input:${vendureAddress}){... on Order{id} ${ERROR}}`,
  setShippingMethod: (id: string) =>
    `setOrderShippingMethod(shippingMethodId:["${id}"]){... on Order{id} ${ERROR}}`,
  arrangePayment: `transitionOrderToState(state:"ArrangingPayment"){... on Order{id} ${ERROR}}`,
  addPayment: (method: string) =>
    `addPaymentToOrder(input:{method:"${method}",metadata:{}}){... on Order{id code state} ${ERROR}}`,
};

/** Asks as one guest: the answer to the first request has the session's token. GraphQL reports errors with status 200. */
function askVendure(send: Send) {
  let headers: Record<string, string> = {};
  return async (operation: string) => {
    const { headers: answered, body } = await send("POST", "/shop-api", {
      ...{ headers, body: { query: operation } },
    });
    const token = answered["vendure-auth-token"];
    if (typeof token === "string") headers = { authorization: `Bearer ${token}` };
    const results = Object.values(body.data ?? {}) as { errorCode?: string }[];
    const failed = body.errors ?? results.find((result) => !result || result.errorCode);
    if (failed) throw new Error(`${operation}: ${JSON.stringify(body)}`);
    return body.data;
  };
}

/** The steps of Vendure's guide to the checkout flow. */
const buyFromVendureByGuide: OrderPath = async (send, { product, buyer }, shop) => {
  const ask = askVendure(send);
  await ask(`mutation{${shopMutations.addItem(product)}}`);
  await ask(`mutation{${shopMutations.setCustomer(buyer)}}`);
  await ask(`mutation{${shopMutations.setAddress}}`);
  const { eligibleShippingMethods } = await ask("{eligibleShippingMethods{id priceWithTax}}");
  await ask(`mutation{${shopMutations.setShippingMethod(eligibleShippingMethods[0].id)}}`);
  await ask(`mutation{${shopMutations.arrangePayment}}`);
  const paid = await ask(`mutation{${shopMutations.addPayment(shop["paymentMethod"]!)}}`);
  mustBe("PaymentSettled", paid.addPaymentToOrder.state, paid);
};

/** What the default order process requires, as mutations of one document, which run in sequence. */
const buyFromVendure: OrderPath = async (send, { product, buyer }, shop) => {
  const mutations = [
    ...[shopMutations.addItem(product), shopMutations.setCustomer(buyer)],
    ...[shopMutations.setShippingMethod(shop["shippingMethod"]!), shopMutations.arrangePayment],
    shopMutations.addPayment(shop["paymentMethod"]!),
  ];
  const paid = await askVendure(send)(`mutation{${mutations.join(" ")}}`);
  mustBe("PaymentSettled", paid.addPaymentToOrder.state, paid);
};

export const orderPaths = {
  stoa: buyFromStoa,
  medusaGuide: buyFromMedusaByGuide,
  medusaShort: buyFromMedusa,
  vendureGuide: buyFromVendureByGuide,
  vendureShort: buyFromVendure,
} satisfies Record<string, OrderPath>;

export type OrderPathName = keyof typeof orderPaths;
