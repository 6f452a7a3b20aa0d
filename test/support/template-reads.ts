// Translates Liquid templates into TypeScript that reads the same members of a model, so that the compiler says which of
// them the model's type lacks. Layouts and partials are translated with the template that uses them.
import { parse } from 'node:path';
import { Liquid } from 'liquidjs';

/** A statement that reads what a template reads, and where the template does, as `pages/error.liquid:5`. */
export interface Read {
  code: string;
  place: string;
}

/** A translated template. */
export interface Translated {
  reads: Read[];
  /** The names that its partials read and no call passed, as `partial name`, with a place; those that a call did pass. */
  unpassed: Map<string, string>;
  passed: Set<string>;
}

/** The declarations that the statements use. */
export const PRELUDE = `
// Own members alone, as liquidjs reads them.
type Keys<T> = T extends string | number | boolean ? never : T extends readonly unknown[] ? number : keyof T;
type Known<T, K> = [NonNullable<T>] extends [never] ? unknown : K extends Keys<NonNullable<T>> ? unknown : never;
type Member<T, K> = T extends unknown ? (K extends keyof T ? T[K] : undefined) : never;
type Item<T> = T extends readonly (infer E)[] ? E : T extends string ? string : T extends object ? [keyof T & string, T[keyof T]] : never;
type Items<T> = Item<NonNullable<T>>;
type Printed = string | number | boolean | null | undefined;
// A name that is not known is one fault: what is read from it further is not compared.
declare function get<T, const K extends string | number>(from: T, name: K & Known<T, K>): K extends Keys<NonNullable<T>> ? Member<NonNullable<T>, K> : any;
declare function ifAny<T, K extends string>(from: T, name: K): Member<NonNullable<T>, K>;
declare function at<T>(from: T, key: Printed): Member<NonNullable<T>, keyof NonNullable<T>> | undefined;
declare function item<T>(from: T): Items<T>;
declare function size<T>(from: T): NonNullable<T> extends { size: infer S } ? S : number;
declare function end<T, K extends string>(from: T, name: K): NonNullable<T> extends readonly (infer E)[] ? E | undefined : Member<NonNullable<T>, K>;
declare function either<T extends readonly unknown[]>(...all: T): T[number];
declare function grouped<T, const K extends string>(from: T, name: K & Known<Items<T>, K>): { name: string; items: Items<T>[] }[];
declare function having<T, const K extends string>(from: T, name: K & Known<Items<T>, K>): Items<T>[];
declare function print(value: Printed | readonly Printed[]): void;
declare const truth: boolean;
declare const unpassed: undefined;
declare const forloop: { index: number; index0: number; first: boolean; last: boolean; parentloop: { index: number } };
`;

// liquidjs declares most of what its parser returns as private, so what is read here is declared anew.
interface Token {
  begin: number;
  input: string;
  content?: unknown;
  operator?: string;
  props?: Token[];
  variable?: Token;
  lhs?: Token;
  rhs?: Token;
  initial?: Value['initial'];
  filters?: Filter[];
}
interface Filter {
  name: unknown;
  args: (Token | [string, Token | undefined])[];
}
interface Value {
  initial: { postfix: Token[] };
  filters: Filter[];
}
interface Node {
  token: Token;
  name?: string;
  value?: Value;
  identifier?: { content: string };
  variable?: string;
  collection?: Token;
  file?: string;
  hash?: { hash: Record<string, Token | undefined> };
  block?: string;
  str?: string;
  templates?: Node[];
  elseTemplates?: Node[];
  branches?: { value?: Value; values?: Token[]; templates: Node[] }[];
}

/** Where a template finds its variables. */
interface Scope {
  file: string;
  /** The partials that are being rendered. */
  within: readonly string[];
  /** Expressions by the names of the variables that were assigned or passed. */
  variables: Map<string, string>;
  /** Returns the expression of any other variable. */
  other(name: string, place: string): string;
  /** Returns the expression of a variable's earlier value, before it is assigned. */
  earlier(name: string): string | undefined;
  /** The blocks that replace those of the layout. */
  blocks: Set<string>;
}

/** Filters that return a text. */
const TEXT_FILTERS = [
  't',
  'worded',
  'inSeconds',
  'append',
  'replace',
  'strip',
  'upcase',
  'url_encode',
  'join',
  'slice',
  'asset',
];
/** Filters that return what they were given. */
const SAME_FILTERS = ['raw', 'escape'];

/** The templates of a directory, and where they find others. */
interface Directories {
  directory: string;
  partials?: string;
  /** The names that they read everywhere. */
  globals?: readonly string[];
}

/** Returns a function that translates templates. The statements read `model` and `globals`, which the caller declares. */
export function createTranslator({ directory, partials = directory, globals = [] }: Directories) {
  const at = parse(directory).name;
  const liquid = new Liquid({ root: directory, partials, layouts: partials, extname: '.liquid' });
  for (const own of ['asset', 't', 'worded']) liquid.registerFilter(own, String);
  const parsed = (file: string, kind: 'root' | 'partials' | 'layouts'): Node[] =>
    liquid.parseFileSync(file, kind as never) as unknown as Node[];

  return (template: string): Translated => {
    const reads: Read[] = [];
    const unpassed = new Map<string, string>();
    const passed = new Set<string>();
    let count = 0;

    const placeOf = ({ file }: Scope, { input, begin }: Token): string =>
      `${file}.liquid:${input.slice(0, begin).split('\n').length}`;

    /** Adds a statement for an expression. Returns the name of the constant that holds it. */
    const keep = (scope: Scope, token: Token, expression: string): string =>
      keepAt(placeOf(scope, token), expression);

    const keepAt = (place: string, expression: string): string => {
      count += 1;
      reads.push({ code: `const v${count} = ${expression};`, place });
      return `v${count}`;
    };

    const print = (scope: Scope, token: Token, expression: string): void => {
      if (/^v\d+$/.test(expression))
        reads.push({ code: `print(${expression});`, place: placeOf(scope, token) });
    };

    const variable = (scope: Scope, name: string, token: Token): string =>
      name === 'forloop' ? name : (scope.variables.get(name) ?? scope.other(name, placeOf(scope, token)));

    const access = (scope: Scope, token: Token): string => {
      const [first, ...rest] = token.props ?? [];
      if (first === undefined) return 'truth';
      let found = variable(scope, String(first.content), token);
      for (const prop of rest) {
        const name = prop.content;
        if (prop.props !== undefined) found = keep(scope, token, `at(${found}, ${expression(scope, prop)})`);
        else if (name === 'size') found = keep(scope, token, `size(${found})`);
        else if (name === 'first' || name === 'last') found = keep(scope, token, `end(${found}, '${name}')`);
        else found = keep(scope, token, `get(${found}, ${JSON.stringify(name)})`);
      }
      return found;
    };

    /** Returns the expression of a token: a variable, a literal, a range, or a value with filters. */
    const expression = (scope: Scope, token: Token | undefined): string => {
      if (token === undefined) return 'truth';
      if (token.props !== undefined) return access(scope, token);
      if (token.initial !== undefined && token.filters !== undefined)
        return filtered(scope, { initial: token.initial, filters: token.filters }, token);
      if (token.lhs !== undefined) {
        expression(scope, token.lhs);
        expression(scope, token.rhs);
        return '[0]';
      }
      const { content } = token;
      return ['string', 'number', 'boolean'].includes(typeof content) ? JSON.stringify(content) : 'undefined';
    };

    const filtered = (scope: Scope, { initial, filters }: Value, token: Token): string => {
      const all = initial.postfix.filter(({ operator }) => operator === undefined);
      const read = all.map((one) => expression(scope, one));
      let value = read.length === 1 ? (read[0] ?? 'truth') : 'truth';
      for (const { name, args } of filters) {
        const given = args.map((arg) => expression(scope, Array.isArray(arg) ? arg[1] : arg));
        if (typeof name !== 'string' || SAME_FILTERS.includes(name)) continue;
        if (TEXT_FILTERS.includes(name)) {
          print(scope, token, value);
          value = 'String(0)';
        } else if (name === 'first' || name === 'last')
          value = keep(scope, token, `end(${value}, '${name}')`);
        else if (name === 'split') value = keep(scope, token, `String(${value}).split('')`);
        else if (name === 'default') value = keep(scope, token, `either(${[value, ...given].join(', ')})`);
        else if (name === 'group_by') value = keep(scope, token, `grouped(${[value, ...given].join(', ')})`);
        else if (name === 'where') value = keep(scope, token, `having(${[value, ...given].join(', ')})`);
        else if (!isPlain(name))
          throw new Error(`${placeOf(scope, token)}: the filter ${name} is not translated`);
      }
      return value;
    };
    const isPlain = (name: string) => name === '[object Function]';

    const assign = (scope: Scope, name: string, value: string, token: Token): void => {
      const earlier = scope.variables.get(name) ?? scope.earlier(name);
      scope.variables.set(
        name,
        earlier === undefined
          ? keep(scope, token, value)
          : keep(scope, token, `truth ? ${earlier} : ${value}`),
      );
    };

    const walk = (scope: Scope, nodes: readonly Node[] = []): void => {
      for (const node of nodes) walkNode(scope, node);
    };

    const walkNode = (scope: Scope, node: Node): void => {
      const { token, value, templates, elseTemplates, branches = [] } = node;
      switch (node.name) {
        case undefined:
          if (value !== undefined) {
            print(scope, token, filtered(scope, value, token));
          }
          return;
        case 'comment':
          return;
        case 'if':
        case 'unless':
        case 'case':
          if (value !== undefined) filtered(scope, value, token);
          for (const branch of branches) {
            if (branch.value !== undefined) filtered(scope, branch.value, token);
            for (const one of branch.values ?? []) expression(scope, one);
            walk(scope, branch.templates);
          }
          walk(scope, elseTemplates);
          return;
        case 'for': {
          const name = node.variable ?? '';
          const outer = scope.variables.get(name);
          scope.variables.set(name, keep(scope, token, `item(${expression(scope, node.collection)})`));
          walk(scope, templates);
          if (outer === undefined) scope.variables.delete(name);
          else scope.variables.set(name, outer);
          walk(scope, elseTemplates);
          return;
        }
        case 'assign':
          if (value !== undefined)
            assign(scope, node.identifier?.content ?? '', filtered(scope, value, token), token);
          return;
        case 'capture':
          walk(scope, templates);
          assign(scope, node.variable ?? '', 'String(0)', token);
          return;
        case 'block':
          if (scope.blocks.has(node.block ?? '')) return;
          walk(scope, templates);
          return;
        case 'layout': {
          const blocks = (templates ?? [])
            .filter(({ name }) => name === 'block')
            .map(({ block }) => block ?? '');
          walk(scope, templates);
          const layout = String(node.file);
          walk(
            { ...scope, file: `partials/${layout}`, blocks: new Set([...scope.blocks, ...blocks]) },
            parsed(layout, 'layouts'),
          );
          return;
        }
        case 'render': {
          const partial = String(node.file);
          // A partial that renders itself: what it passes to itself is read once more, and no further.
          if (scope.within.filter((one) => one === partial).length > 1) return;
          const given = Object.entries(node.hash?.hash ?? {}).map(
            ([name, one]) => [name, expression(scope, one)] as const,
          );
          for (const [name] of given) passed.add(`${partial} ${name}`);
          const inner: Scope = {
            file: `partials/${partial}`,
            within: [...scope.within, partial],
            variables: new Map(given),
            blocks: new Set(),
            earlier: () => undefined,
            other: (name, place) => {
              if (globals.includes(name)) return `get(globals, '${name}')`;
              unpassed.set(`${partial} ${name}`, place);
              return 'unpassed';
            },
          };
          walk(inner, parsed(partial, 'partials'));
          return;
        }
        default:
          throw new Error(`${placeOf(scope, token)}: the tag ${node.name} is not translated`);
      }
    };

    const members = new Map<string, string>();
    const member = (name: string, place: string): string => {
      const kept = members.get(name) ?? keepAt(place, `get(model, ${JSON.stringify(name)})`);
      members.set(name, kept);
      return kept;
    };
    const scope: Scope = {
      file: `${at}/${template}`,
      within: [],
      variables: new Map(),
      blocks: new Set(),
      earlier: (name) => `ifAny(model, '${name}')`,
      other: (name, place) => (globals.includes(name) ? `get(globals, '${name}')` : member(name, place)),
    };
    walk(scope, parsed(template, 'root'));
    return { reads, unpassed, passed };
  };
}
