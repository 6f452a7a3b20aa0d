// Parses the YAML of a tenant file, with limits on size and nesting. All faults are reported at once, with their
// lines.
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

interface YamlText {
  /** The content as plain data. */
  value: unknown;
  /** What the parser skipped. */
  warnings: YamlFault[];
  /** Returns the line of a value, counted from 1, or that of the innermost existing value around it. */
  lineOf(path: readonly string[]): number | undefined;
}

export interface YamlFault {
  line: number | undefined;
  message: string;
}

// docs/understand/decisions/operating.md#a-tenant-file-has-limits
/** Limit on values with aliases expanded: ten lines of ten aliases each make ten billion ("billion laughs"). */
const MAX_VALUES = 1_000_000;

/** Limit on aliases: the parser's time grows with the square of their number. */
const MAX_ALIASES = 5_000;

/** How many faults are reported. Later ones usually follow from earlier ones. */
const MAX_FAULTS = 20;

/** Limit on nesting; no section needs half of it. */
const MAX_DEPTH = 100;

/** @returns its content, or its faults. */
export function readYaml(text: string): YamlText | { faults: YamlFault[] } {
  const lines = new LineCounter();
  const lineAt = (offset: number | undefined) =>
    offset === undefined ? undefined : lines.linePos(offset).line || undefined;
  let document: Document.Parsed;
  try {
    // Pretty errors would quote the text, which contains secrets.
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { faults: [reworded({ line: undefined, message })] };
  }
  const faultOf = ({ pos, message }: { pos: [number, number]; message: string }) => ({
    line: lineAt(pos[0]),
    message,
  });
  const faults = document.errors.map(faultOf);
  if (faults.length > 0) return { faults: faults.slice(0, MAX_FAULTS).map(reworded) };
  const nodeFault = faultOfNodes(document.contents);
  if (nodeFault !== undefined)
    return { faults: [{ line: lineAt(nodeFault.node.range?.[0]), message: nodeFault.message }] };
  return {
    value: document.toJS({ maxAliasCount: -1 }),
    warnings: document.warnings.map(faultOf),
    lineOf: (path) => lineAt(innermost(document.contents, path)?.range?.[0]),
  };
}

/** Rewords parser messages that are written for programmers, and removes quoted text. */
function reworded({ line, message }: YamlFault): YamlFault {
  if (message.includes('call stack')) return { line, message: 'it is nested too deeply' };
  if (message.includes('multiple documents')) return { line, message: 'there is more than one document' };
  // Some messages end with the value, which may be a secret.
  const quote = message.endsWith('"') ? message.indexOf(': "') : -1;
  return { line, message: quote < 0 ? message : message.slice(0, quote) };
}

interface NodeFault {
  node: Node;
  message: string;
}

/** The number of values and levels of a node with its aliases expanded. */
interface Extent {
  values: number;
  levels: number;
}

const ONE: Extent = { values: 1, levels: 1 };

/** Finds an alias that is unknown or contains itself, or a limit that is exceeded. */
function faultOfNodes(contents: ParsedNode | null): NodeFault | undefined {
  const anchors = new Map<string, Node>();
  /** Undefined while a node is being measured: an alias to it is then a cycle. */
  const measured = new Map<Node, Extent | undefined>();
  let aliases = 0;
  let wrong: NodeFault | undefined;
  const fail = (node: Node, message: string): Extent => {
    wrong ??= { node, message };
    return ONE;
  };

  const follow = (alias: Alias): Extent => {
    const target = anchors.get(alias.source);
    if (target === undefined) return fail(alias, `*${alias.source} stands for no anchor before it`);
    if (++aliases > MAX_ALIASES) return fail(alias, `it has more than ${MAX_ALIASES} aliases`);
    return measured.get(target) ?? fail(alias, `*${alias.source} is a part of what it stands for`);
  };
  const measure = (node: unknown, depth: number): Extent => {
    if (wrong !== undefined) return ONE;
    if (isAlias(node)) return follow(node);
    if (!isNode(node)) return ONE;
    // Registered before its children, which may refer to it (YAML 1.2 §7.1).
    if (isScalar(node) || isCollection(node)) if (node.anchor !== undefined) anchors.set(node.anchor, node);
    measured.set(node, undefined);
    if (depth > MAX_DEPTH) return fail(node, `it is nested more than ${MAX_DEPTH} levels deep`);
    const extent = { ...ONE };
    for (const part of partsOf(node)) {
      const { values, levels } = measure(part, depth + 1);
      extent.values += values;
      extent.levels = Math.max(extent.levels, levels + 1);
    }
    measured.set(node, extent);
    if (extent.values > MAX_VALUES)
      return fail(node, `its aliases make more than ${MAX_VALUES} values of it`);
    if (extent.levels > MAX_DEPTH)
      return fail(node, `its aliases nest it more than ${MAX_DEPTH} levels deep`);
    return extent;
  };
  measure(contents, 1);
  return wrong;
}

function partsOf(node: Node): unknown[] {
  if (!isCollection(node)) return [];
  return node.items.flatMap((item: unknown) => (isPair(item) ? [item.key, item.value] : [item]));
}

/** Returns the node at a path, or the innermost existing one. */
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
