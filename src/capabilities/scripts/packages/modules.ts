// Reads modules for the sandbox: finds what a file requires, and converts an ECMAScript module to CommonJS.
import * as acorn from 'acorn';

/** A file as CommonJS, with the names that it requires. */
interface CommonJs {
  source: string;
  requires: string[];
}

type Node = acorn.Node & Record<string, unknown>;

/** A change of the text: start, end, and the replacement. */
type Edit = [number, number, string];

/**
 * @param isModule whether it is an ECMAScript module, which is converted to CommonJS.
 * @throws SyntaxError when it is no JavaScript.
 */
export function readModule(source: string, isModule: boolean): CommonJs {
  // The tree is walked by the names of members, whatever kind of node has them.
  const program = acorn.parse(source, {
    ecmaVersion: 'latest',
    sourceType: isModule ? 'module' : 'script',
    allowReturnOutsideFunction: true,
    allowHashBang: true,
    allowAwaitOutsideFunction: isModule,
  }) as unknown as Node;
  const requires = new Set<string>();
  const edits: Edit[] = [];
  walk(program, (node) => {
    const required = requiredBy(node);
    if (required !== undefined) requires.add(required);
    if (node.type === 'ImportExpression') edits.push(...dynamicImport(node, requires));
    if (node.type === 'MetaProperty' && (node.meta as Node).name === 'import')
      edits.push([node.start, node.end, '({})']);
  });
  const head = isModule ? moduleEdits(program, { requires, edits }) : '';
  if (source.startsWith('#!')) edits.push([0, 2, '//']);
  return { source: head + edited(source, edits), requires: [...requires] };
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child === 'object' && child !== null && typeof child.type === 'string') walk(child, visit);
  }
}

const textOf = (node: unknown): string | undefined => {
  const { type, value } = (node ?? {}) as Node;
  return type === 'Literal' && typeof value === 'string' ? value : undefined;
};

/** Returns the name that `require('name')` requires. */
function requiredBy(node: Node): string | undefined {
  if (node.type !== 'CallExpression' || (node.callee as Node).name !== 'require') return undefined;
  return textOf((node.arguments as Node[])[0]);
}

/** Replaces `import('name')`, which the sandbox does not have, by `require`. */
function dynamicImport(node: Node, requires: Set<string>): Edit[] {
  const name = textOf(node.source);
  if (name === undefined) return [];
  requires.add(name);
  const text = `Promise.resolve().then(() => { const m = require(${JSON.stringify(name)}); return m.__esModule ? m : { default: m, ...m }; })`;
  return [[node.start, node.end, text]];
}

function edited(source: string, edits: readonly Edit[]): string {
  let text = source;
  for (const [from, to, instead] of [...edits].sort((a, b) => b[0] - a[0]))
    text = text.slice(0, from) + instead + text.slice(to);
  return text;
}

/** Converts the imports and exports of a module: adds edits of its text, and returns the code to put before it. */
function moduleEdits(program: Node, { requires, edits }: { requires: Set<string>; edits: Edit[] }): string {
  const imports: string[] = [];
  const getters: string[] = [];
  const stars: string[] = [];
  const required = (name: string) => {
    requires.add(name);
    imports.push(`const $m${imports.length} = require(${JSON.stringify(name)});`);
    return `$m${imports.length - 1}`;
  };
  const give = (name: string, value: string) =>
    getters.push(
      `Object.defineProperty(exports, ${JSON.stringify(name)}, { enumerable: true, get: () => ${value} });`,
    );
  const remove = ({ start, end }: Node) => edits.push([start, end, '']);
  for (const node of program.body as Node[]) {
    const from = textOf(node.source);
    const declared = node.declaration as Node | null | undefined;
    if (node.type === 'ImportDeclaration' && from !== undefined) {
      const module = required(from);
      for (const one of node.specifiers as Node[]) imports.push(bound(one, module));
      remove(node);
    } else if (node.type === 'ExportAllDeclaration' && from !== undefined) {
      const module = required(from);
      if (node.exported) give(nameOf(node.exported), module);
      else stars.push(allOf(module));
      remove(node);
    } else if (node.type === 'ExportNamedDeclaration' && declared) {
      for (const name of namesOf(declared)) give(name, name);
      edits.push([node.start, declared.start, '']);
    } else if (node.type === 'ExportNamedDeclaration') {
      const module = from === undefined ? undefined : required(from);
      for (const { local, exported } of node.specifiers as Record<string, unknown>[])
        give(nameOf(exported), module === undefined ? nameOf(local) : memberOf(module, nameOf(local)));
      remove(node);
    } else if (node.type === 'ExportDefaultDeclaration' && declared) {
      const { name } = (declared.id ?? {}) as Node;
      const isNamed = /Declaration$/.test(declared.type) && typeof name === 'string';
      give('default', isNamed ? String(name) : '$default');
      edits.push([node.start, declared.start, isNamed ? '' : 'const $default = ']);
      if (!isNamed && /Declaration$/.test(declared.type)) edits.push([node.end, node.end, ';']);
    }
  }
  const mark = "'use strict'; Object.defineProperty(exports, '__esModule', { value: true });";
  return [mark, ...getters, ...imports, ...stars].join(' ');
}

/** The name of an identifier, or the text of a string literal in its place. */
const nameOf = (node: unknown): string => String((node as Node).name ?? (node as Node).value);

/** The default import of a CommonJS module is its whole `module.exports`. */
const memberOf = (module: string, name: string) =>
  name === 'default'
    ? `(${module}.__esModule ? ${module}.default : ${module})`
    : `${module}[${JSON.stringify(name)}]`;

/** Returns the declaration of a name that an import binds. */
function bound(specifier: Node, module: string): string {
  const local = nameOf(specifier.local);
  if (specifier.type === 'ImportNamespaceSpecifier') return `const ${local} = ${module};`;
  const name = specifier.type === 'ImportDefaultSpecifier' ? 'default' : nameOf(specifier.imported);
  return `const ${local} = ${memberOf(module, name)};`;
}

const allOf = (module: string) =>
  `for (const k of Object.keys(${module})) if (k !== 'default' && !Object.hasOwn(exports, k)) Object.defineProperty(exports, k, { enumerable: true, get: () => ${module}[k] });`;

/** Returns the names that a declaration binds. */
function namesOf(declared: Node): string[] {
  if (declared.type !== 'VariableDeclaration') return [nameOf(declared.id)];
  return (declared.declarations as { id: Node }[]).flatMap(({ id }) => boundBy(id));
}

function boundBy(pattern: Node | null): string[] {
  if (pattern === null) return [];
  const children: Record<string, () => string[]> = {
    Identifier: () => [nameOf(pattern)],
    ObjectPattern: () =>
      (pattern.properties as Node[]).flatMap((one) => boundBy((one.value ?? one.argument) as Node)),
    ArrayPattern: () => (pattern.elements as (Node | null)[]).flatMap(boundBy),
    AssignmentPattern: () => boundBy(pattern.left as Node),
    RestElement: () => boundBy(pattern.argument as Node),
  };
  return children[pattern.type]?.() ?? [];
}
