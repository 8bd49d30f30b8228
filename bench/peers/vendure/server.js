const { bootstrap } = require("@vendure/core");
const { config } = require("./config");

bootstrap(config).catch((error) => {
  console.error(error);
  process.exit(1);
});
