import { type Command, InvalidArgumentError } from "commander";
import { action, example } from "../command.ts";

const scripts: Record<string, (words: Map<string, string[]>, valued: readonly string[]) => string> = {
  bash,
  zsh,
  fish,
};

export default function define(command: Command): void {
  command
    .argument("<shell>", Object.keys(scripts).join(", "), (shell) => {
      if (!Object.hasOwn(scripts, shell))
        throw new InvalidArgumentError(`It must be one of ${Object.keys(scripts).join(", ")}.`);
      return shell;
    })
    .action(
      action<object, [string]>(async (cli, _options, shell) => {
        const program = command.parent ?? command;
        cli.output.line(scripts[shell]?.(collectWords(program), collectValued(program)) ?? "");
      }),
    );
  example(
    command,
    "stoa completion bash >> ~/.bashrc",
    "stoa completion zsh > ~/.zfunc/_stoa",
    "stoa completion fish > ~/.config/fish/completions/stoa.fish",
  );
}

/** The subcommands and options after each command path, such as "products list". */
function collectWords(
  command: Command,
  path = "",
  words = new Map<string, string[]>(),
): Map<string, string[]> {
  const subcommands = command.commands.map((each) => each.name());
  const options = command.options.flatMap(({ long }) => long ?? []);
  words.set(path, [...subcommands, ...options, "--help"]);
  for (const each of command.commands) collectWords(each, `${path} ${each.name()}`.trim(), words);
  return words;
}

/** The options whose next word is their value. */
function collectValued(command: Command): string[] {
  const own = command.options.filter(({ required }) => required).flatMap(({ long, short }) => [long, short]);
  const all = [...own, ...command.commands.flatMap(collectValued)];
  return [...new Set(all.filter((name): name is string => typeof name === "string"))];
}

function bash(words: Map<string, string[]>, valued: readonly string[]): string {
  const cases = [...words].map(([path, list]) => `    "${path}") words="${list.join(" ")}" ;;`).join("\n");
  return `_stoa() {
  local path="" word words="" isValue=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [ -n "$isValue" ]; then isValue=""; continue; fi
    case "$word" in
      ${valued.join("|")}) isValue=1 ;;
      -*) ;;
      *) path="\${path:+$path }$word" ;;
    esac
  done
  # Operands are no part of a command's path.
  while :; do
    case "$path" in
${cases.replaceAll(/^ {4}/gm, "      ")}
      *" "*) path="\${path% *}"; continue ;;
      *) path=""; continue ;;
    esac
    break
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _stoa stoa`;
}

function zsh(words: Map<string, string[]>, valued: readonly string[]): string {
  return `#compdef stoa\nautoload -U +X bashcompinit && bashcompinit\n${bash(words, valued)}`;
}

function fish(words: Map<string, string[]>): string {
  const lines = [...words].flatMap(([path, list]) => {
    const parts = path.split(" ").filter((part) => part !== "");
    const after =
      parts.map((part) => `__fish_seen_subcommand_from ${part}`).join("; and ") || "__fish_use_subcommand";
    return list.map((word) =>
      word.startsWith("--")
        ? `complete -c stoa -n '${after}' -l ${word.slice(2)}`
        : `complete -c stoa -f -n '${after}' -a ${word}`,
    );
  });
  return lines.join("\n");
}
