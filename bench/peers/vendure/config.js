const { DefaultJobQueuePlugin, DefaultLogger, DefaultSearchPlugin, dummyPaymentHandler, LogLevel } = require("@vendure/core");
const path = require("node:path");

const url = new URL(process.env.DATABASE_URL);

module.exports.config = {
  apiOptions: {
    port: Number(process.env.PORT ?? 0),
    hostname: "127.0.0.1",
    adminApiPath: "admin-api",
    shopApiPath: "shop-api",
    adminApiDebug: false,
    shopApiDebug: false,
  },
  authOptions: {
    tokenMethod: ["bearer", "cookie"],
    superadminCredentials: { identifier: "admin", password: "admin-bench-1" },
    cookieOptions: { secret: "bench" },
  },
  dbConnectionOptions: {
    type: "postgres",
    host: url.hostname,
    port: Number(url.port),
    username: url.username,
    password: url.password,
    database: url.pathname.slice(1),
    synchronize: process.env.SYNCHRONIZE === "yes",
    logging: false,
  },
  paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
  importExportOptions: { importAssetsDir: path.join(__dirname, "assets") },
  customFields: {},
  logger: new DefaultLogger({ level: LogLevel.Warn }),
  plugins: [DefaultJobQueuePlugin.init({ useDatabaseForBuffer: false }), DefaultSearchPlugin.init({ bufferUpdates: false })],
};
