// Finds paths by their segments, compared as sent: without case folding or normalization.

interface Node<T> {
  literals: Map<string, Node<T>>;
  parameter: { name: string; node: Node<T> } | undefined;
  value: T | undefined;
}

export interface PathTree<T> {
  root: Node<T>;
  /**
   * Returns the value at a path, creating it with `make` if there is none.
   * @param path `/` and segments; `:name` matches any one segment.
   * @throws Error when another path has a parameter of another name at this place.
   */
  add(path: string, make: () => T): T;
}

/** Creates an empty tree. */
export function pathTree<T>(): PathTree<T> {
  const root = emptyNode<T>();
  return {
    root,
    add: (path, make) => {
      let node = root;
      for (const segment of segmentsOf(path)) node = childFor(node, segment, path);
      node.value ??= make();
      return node.value;
    },
  };
}

/**
 * Finds a path. Literal segments take precedence over parameters. A parameter matches one non-empty segment other
 * than `.` and `..`, which proxies or clients may resolve (RFC 3986 §5.2.4), and is percent-decoded.
 * @param path as sent, percent-encoded.
 * @returns undefined when there is no such path.
 */
export function findPath<T>(
  { root }: PathTree<T>,
  path: string,
): { value: T; params: Record<string, string> } | undefined {
  if (!path.startsWith('/')) return undefined;
  return find(root, segmentsOf(path), 0, {});
}

function find<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  params: Record<string, string>,
): { value: T; params: Record<string, string> } | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.value === undefined ? undefined : { value: node.value, params };
  const literal = node.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, segments, index + 1, params);
  if (found !== undefined || node.parameter === undefined) return found;
  const value = decodeSegment(segment);
  if (value === undefined) return undefined;
  return find(node.parameter.node, segments, index + 1, { ...params, [node.parameter.name]: value });
}

function decodeSegment(segment: string): string | undefined {
  try {
    const value = decodeURIComponent(segment);
    return value === '' || value === '.' || value === '..' ? undefined : value;
  } catch {
    return undefined;
  }
}

function segmentsOf(path: string): string[] {
  return path.slice(1).split('/');
}

function childFor<T>(node: Node<T>, segment: string, path: string): Node<T> {
  if (segment.startsWith(':')) {
    const name = segment.slice(1);
    node.parameter ??= { name, node: emptyNode() };
    if (node.parameter.name === name) return node.parameter.node;
    throw new Error(`${path}: this segment is called :${node.parameter.name} elsewhere`);
  }
  const child = node.literals.get(segment) ?? emptyNode<T>();
  node.literals.set(segment, child);
  return child;
}

function emptyNode<T>(): Node<T> {
  return { literals: new Map(), parameter: undefined, value: undefined };
}
