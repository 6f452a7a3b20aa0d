// Finds the regular expressions in JavaScript and TypeScript.
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { type Node, parse } from 'acorn';

/** A regular expression as it is written, and where. */
export interface Found {
  /** A literal; for a computed one the code that makes it. */
  text: string;
  places: string[];
  isComputed: boolean;
}

type Tree = Node & {
  regex?: { pattern: string; flags: string };
  callee?: Node & { name?: string };
};

/** Returns the regular expressions of files, each once. @param root the directory that the patterns are in. */
export function regexesIn(root: string, patterns: readonly string[]): Found[] {
  const found = new Map<string, Found>();
  for (const file of globSync([...patterns], { cwd: root }).sort()) {
    if (file.endsWith('.d.ts')) continue;
    for (const { text, line, isComputed } of regexesOf(codeOf(`${root}/${file}`))) {
      const known = found.get(text) ?? { text, places: [], isComputed };
      known.places.push(`${file}:${line}`);
      found.set(text, known);
    }
  }
  return [...found.values()];
}

function codeOf(file: string): string {
  const text = readFileSync(file, 'utf8');
  // Types are replaced by spaces, so that lines stay what they are.
  return file.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
}

function regexesOf(code: string): { text: string; line: number; isComputed: boolean }[] {
  const found: { text: string; line: number; isComputed: boolean }[] = [];
  const add = (node: Node, text: string, isComputed: boolean) =>
    found.push({ text, line: code.slice(0, node.start).split('\n').length, isComputed });
  const walk = (node: Tree): void => {
    if (node.regex !== undefined) add(node, `/${node.regex.pattern}/${node.regex.flags}`, false);
    const isMade = node.type === 'NewExpression' || node.type === 'CallExpression';
    if (isMade && node.callee?.name === 'RegExp') add(node, code.slice(node.start, node.end), true);
    for (const member of Object.values(node).flat()) {
      if (typeof member === 'object' && member !== null && 'type' in member) walk(member as Tree);
    }
  };
  walk(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }) as Tree);
  return found;
}
