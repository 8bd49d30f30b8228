const { configureStoreSearch, defineMiddlewares } = require("@medusajs/framework/http");

module.exports = {
  default: defineMiddlewares({
    routes: [
      { matcher: "/store/search", middlewares: [configureStoreSearch({ allowed_indexes: { product: true } })] },
    ],
  }),
};
