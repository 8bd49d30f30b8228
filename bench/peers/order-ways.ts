/** The ways to order: the requests of an order in each system. They run in the process of the load generator. */
import type { IncomingHttpHeaders } from "node:http";

/** What is bought and by which buyer, as the system names them. */
export interface Purchase {
  product: string;
  buyer: string;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: Each way reads the fields of its own system, and fails without them.
  body: any;
}

export interface RequestContent {
  headers?: Record<string, string>;
  body?: object;
}

/** Sends one request and throws unless its answer is a success. */
export type Send = (method: "GET" | "POST", path: string, content: RequestContent) => Promise<Reply>;

/** What the requests of an order in Medusa contain: a publishable API key and the id of a region. */
export interface MedusaShop {
  key: string;
  region: string;
}

/** What the requests of an order in Vendure contain: the id of a shipping method and the code of a payment method. */
export interface VendureShop {
  shippingMethod: string;
  paymentMethod: string;
}

/** Stoa's requests contain nothing of the shop. */
export type OrderShop = MedusaShop | VendureShop | null;

/** Places one paid order. Throws if it is not paid. */
type PlaceOrder<Shop> = (send: Send, purchase: Purchase, shop: Shop) => Promise<void>;

const ADDRESS = { street: "1 Main Street", city: "Springfield", zip: "62701" };
const NAME = { first: "Bench", last: "Buyer" };

function mustBe(expected: unknown, actual: unknown, answer: unknown): void {
  if (actual !== expected) throw new Error(`expected ${expected}: ${JSON.stringify(answer)}`);
}

/** The buyer is an API key. */
const buyFromStoa: PlaceOrder<unknown> = async (send, { product, buyer }) => {
  const headers = { authorization: `Bearer ${buyer}` };
  const { status, body } = await send("POST", "/v1/purchases", { headers, body: { productId: product } });
  mustBe(201, status, body);
  mustBe("completed", body.data.status, body);
  mustBe("string", typeof body.data.receipt.url, body);
};

const medusaAddress = {
  first_name: NAME.first,
  last_name: NAME.last,
  address_1: ADDRESS.street,
  city: ADDRESS.city,
  postal_code: ADDRESS.zip,
  country_code: "us",
};

/** The steps of Medusa's storefront guides. */
const buyFromMedusaByGuide: PlaceOrder<MedusaShop> = async (send, { product, buyer }, shop) => {
  const headers = { "x-publishable-api-key": shop.key };
  const region = { region_id: shop.region };
  const { body: created } = await send("POST", "/store/carts?fields=id", { headers, body: region });
  const cart = `/store/carts/${created.cart.id}`;
  const item = { variant_id: product, quantity: 1 };
  await send("POST", `${cart}/line-items?fields=id`, { headers, body: item });
  const contact = { email: buyer, shipping_address: medusaAddress, billing_address: medusaAddress };
  await send("POST", `${cart}?fields=id`, { headers, body: contact });
  const options = `/store/shipping-options?cart_id=${created.cart.id}&fields=id`;
  const { body: shipping } = await send("GET", options, { headers });
  const option = { option_id: shipping.shipping_options[0].id };
  await send("POST", `${cart}/shipping-methods?fields=id`, { headers, body: option });
  await payInMedusa(send, created.cart.id, headers);
};

/** A cart can be created with all that an order needs. */
const buyFromMedusa: PlaceOrder<MedusaShop> = async (send, { product, buyer }, shop) => {
  const headers = { "x-publishable-api-key": shop.key };
  const items = [{ variant_id: product, quantity: 1 }];
  const body = { region_id: shop.region, email: buyer, items };
  const { body: created } = await send("POST", "/store/carts?fields=id", { headers, body });
  await payInMedusa(send, created.cart.id, headers);
};

async function payInMedusa(send: Send, cart: string, headers: Record<string, string>): Promise<void> {
  const collections = "/store/payment-collections";
  const { body: created } = await send("POST", `${collections}?fields=id`, {
    headers,
    body: { cart_id: cart },
  });
  await send("POST", `${collections}/${created.payment_collection.id}/payment-sessions?fields=id`, {
    headers,
    body: { provider_id: "pp_system_default" },
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
      headers,
      body: { query: operation },
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
const buyFromVendureByGuide: PlaceOrder<VendureShop> = async (send, { product, buyer }, shop) => {
  const ask = askVendure(send);
  await ask(`mutation{${shopMutations.addItem(product)}}`);
  await ask(`mutation{${shopMutations.setCustomer(buyer)}}`);
  await ask(`mutation{${shopMutations.setAddress}}`);
  const { eligibleShippingMethods } = await ask("{eligibleShippingMethods{id priceWithTax}}");
  await ask(`mutation{${shopMutations.setShippingMethod(eligibleShippingMethods[0].id)}}`);
  await ask(`mutation{${shopMutations.arrangePayment}}`);
  const paid = await ask(`mutation{${shopMutations.addPayment(shop.paymentMethod)}}`);
  mustBe("PaymentSettled", paid.addPaymentToOrder.state, paid);
};

/** What the default order process requires, as mutations of one document, which run in sequence. */
const buyFromVendure: PlaceOrder<VendureShop> = async (send, { product, buyer }, shop) => {
  const mutations = [
    shopMutations.addItem(product),
    shopMutations.setCustomer(buyer),
    shopMutations.setShippingMethod(shop.shippingMethod),
    shopMutations.arrangePayment,
    shopMutations.addPayment(shop.paymentMethod),
  ];
  const paid = await askVendure(send)(`mutation{${mutations.join(" ")}}`);
  mustBe("PaymentSettled", paid.addPaymentToOrder.state, paid);
};

const orderWays = {
  stoa: buyFromStoa,
  medusaGuide: buyFromMedusaByGuide,
  medusaShort: buyFromMedusa,
  vendureGuide: buyFromVendureByGuide,
  vendureShort: buyFromVendure,
} satisfies Record<string, PlaceOrder<never>>;

export type OrderWayId = keyof typeof orderWays;

/** The caller passes the shop of the way's system. */
export const placeOrderBy = (way: OrderWayId) => orderWays[way] as PlaceOrder<OrderShop>;
