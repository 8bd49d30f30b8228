import type { Command } from "commander";
export default function define(_command: Command): void {}
