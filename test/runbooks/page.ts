// The steps of a runbook: the fenced blocks ```` ```sh step=<name> ````, each with the output that the page shows below it.
import { readFileSync } from 'node:fs';

export interface Step {
  script: string;
  /** What the page shows; `…` stands for any text, alone in a line for any lines. */
  output: string | undefined;
}

const BLOCK = /^```sh step=(\S+)\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```)?/gm;

/** Returns the steps of a page in docs/do/runbooks by name. */
export function stepsOf(page: string): ReadonlyMap<string, Step> {
  const text = readFileSync(new URL(`../../docs/do/runbooks/${page}.md`, import.meta.url), 'utf8');
  return new Map(
    [...text.matchAll(BLOCK)].map(([, name = '', script = '', output]) => [name, { script, output }]),
  );
}

/** Returns a pattern for what a page shows. */
export function patternOf(output: string): RegExp {
  const lines = output.trimEnd().split('\n');
  const patterns = lines.map((line) =>
    line === '…'
      ? '(?:.*\n)*?'
      : `${line
          .split('…')
          .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
          .join('.*')} *\n`,
  );
  return new RegExp(`^${patterns.join('')}$`);
}
