// The tenant file as YAML: all that is wrong with it at once, each with its line, no more values than a tenant
// can be meant to have, and where in the text each value stands.
import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
} from 'yaml';

export interface YamlText {
  /** Its content as plain data. */
  value: unknown;
  /** What the parser could not make sense of, and passed over. */
  warnings: YamlFault[];
  /** The line of a value, from 1 on, or of the innermost one around it; undefined where there is none. */
  lineOf(path: readonly string[]): number | undefined;
}

/** What is wrong in a text, and on which line. */
export interface YamlFault {
  line: number | undefined;
  message: string;
}

/** Aliases multiply: ten lines of ten aliases each are ten billion values. No tenant has a million. */
const MOST_VALUES = 1_000_000;

/** The parser takes the square of their number to follow them. */
const MOST_ALIASES = 5_000;

/** After so many, one fault is the cause of the next. */
const MOST_FAULTS = 20;

/** No section of a tenant file is nested half as deep. */
const DEEPEST = 100;

/** Reads a text. @returns its content, or its faults. */
export function readYaml(text: string): YamlText | { faults: YamlFault[] } {
  const lines = new LineCounter();
  const lineAt = (offset: number | undefined) =>
    offset === undefined ? undefined : lines.linePos(offset).line || undefined;
  let document: Document.Parsed;
  try {
    // Its pretty errors quote the text, which has secrets.
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { faults: [plainer({ line: undefined, message })] };
  }
  const told = ({ pos, message }: { pos: [number, number]; message: string }) => ({
    line: lineAt(pos[0]),
    message,
  });
  const faults = document.errors.map(told);
  if (faults.length > 0) return { faults: faults.slice(0, MOST_FAULTS).map(plainer) };
  const wrong = faultOfNodes(document.contents);
  if (wrong !== undefined)
    return { faults: [{ line: lineAt(wrong.node.range?.[0]), message: wrong.message }] };
  return {
    value: document.toJS({ maxAliasCount: -1 }),
    warnings: document.warnings.map(told),
    lineOf: (path) => lineAt(innermost(document.contents, path)?.range?.[0]),
  };
}

/** The parser recurses, and speaks to who calls it where it should speak to who wrote the text. */
function plainer({ line, message }: YamlFault): YamlFault {
  if (message.includes('call stack')) return { line, message: 'it is nested too deeply' };
  if (message.includes('multiple documents')) return { line, message: 'there is more than one document' };
  // Some end in what stands there, which may be a secret.
  return { line, message: message.replace(/: ".*"$/s, '') };
}

interface WrongNode {
  node: Node;
  message: string;
}

/** What a node comes to, its aliases followed: values, and levels. */
interface Extent {
  values: number;
  levels: number;
}

const ONE: Extent = { values: 1, levels: 1 };

/** An alias that cannot be followed, or that makes too much of the text; too many levels. */
function faultOfNodes(contents: ParsedNode | null): WrongNode | undefined {
  const anchors = new Map<string, Node>();
  /** Undefined while it is being measured. */
  const measured = new Map<Node, Extent | undefined>();
  let aliases = 0;
  let wrong: WrongNode | undefined;
  const fail = (node: Node, message: string): Extent => {
    wrong ??= { node, message };
    return ONE;
  };

  const follow = (alias: Alias): Extent => {
    const target = anchors.get(alias.source);
    if (target === undefined) return fail(alias, `*${alias.source} stands for no anchor before it`);
    if (++aliases > MOST_ALIASES) return fail(alias, `it has more than ${MOST_ALIASES} aliases`);
    return measured.get(target) ?? fail(alias, `*${alias.source} is a part of what it stands for`);
  };
  const measure = (node: unknown, depth: number): Extent => {
    if (wrong !== undefined) return ONE;
    if (isAlias(node)) return follow(node);
    if (!isNode(node)) return ONE;
    // Before its parts, as the standard has it: they may name it.
    if (isScalar(node) || isCollection(node)) if (node.anchor !== undefined) anchors.set(node.anchor, node);
    measured.set(node, undefined);
    if (depth > DEEPEST) return fail(node, `it is nested more than ${DEEPEST} levels deep`);
    const extent = { ...ONE };
    for (const part of partsOf(node)) {
      const { values, levels } = measure(part, depth + 1);
      extent.values += values;
      extent.levels = Math.max(extent.levels, levels + 1);
    }
    measured.set(node, extent);
    if (extent.values > MOST_VALUES)
      return fail(node, `its aliases make more than ${MOST_VALUES} values of it`);
    if (extent.levels > DEEPEST) return fail(node, `its aliases nest it more than ${DEEPEST} levels deep`);
    return extent;
  };
  measure(contents, 1);
  return wrong;
}

function partsOf(node: Node): unknown[] {
  if (!isCollection(node)) return [];
  return node.items.flatMap((item: unknown) => (isPair(item) ? [item.key, item.value] : [item]));
}

/** The node on a path, or the last one that there is on the way; the key of a pair stands for its value. */
function innermost(contents: ParsedNode | null, path: readonly string[]): Node | undefined {
  let found: Node | undefined;
  let at: unknown = contents;
  for (const step of path) {
    if (!isCollection(at)) break;
    if (isMap(at)) {
      const pair = at.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (pair === undefined) break;
      found = pair.key as Node;
      at = pair.value;
    } else {
      const item: unknown = at.items[Number(step)];
      if (!isCollection(item) && !isScalar(item)) break;
      found = item;
      at = item;
    }
  }
  return found;
}
