export { canonicalJson } from "@stoa/evaluation/canonical-json";
