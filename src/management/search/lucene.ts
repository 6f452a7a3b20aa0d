// The search language of users and logs: the part of Lucene's query syntax that the hosted service documents.
import { apiError } from '../errors.ts';

/** What a term's value must be. */
export type Match =
  | { kind: 'text'; text: string }
  /** Parts around `*`: `a*b` is ['a', 'b'], `*` alone ['', '']. */
  | { kind: 'pattern'; parts: readonly string[] }
  | { kind: 'range'; from?: string; to?: string; isFromIncluded: boolean; isToIncluded: boolean }
  | { kind: 'exists' };

export type Expression =
  | { all: readonly Expression[] }
  | { any: readonly Expression[] }
  | { not: Expression }
  /** Without a field it is looked for in those that are searched by default. */
  | { field: string | undefined; match: Match };

type Token =
  | { kind: '(' | ')' | 'AND' | 'OR' | 'NOT' | '+' }
  | { kind: 'field'; name: string }
  | { kind: 'value'; match: Match };

/** A query may be so long, and its parentheses so deep: it is parsed by a recursion that others feed. */
const LONGEST = 4000;
const DEEPEST = 20;
const MOST_TERMS = 100;

/**
 * Parses a query.
 * @throws AuthError 400 for one that cannot be read.
 */
export function parseQuery(text: string): Expression {
  if (text.length > LONGEST) throw syntaxError();
  const tokens = tokensOf(text);
  if (tokens.filter(({ kind }) => kind === 'value').length > MOST_TERMS) throw syntaxError();
  const parser = { tokens, at: 0 };
  const expression = parseAny(parser, undefined, 0);
  if (parser.at < tokens.length) throw syntaxError();
  return expression;
}

function syntaxError() {
  return apiError(400, 'Invalid search query.', 'invalid_query_string');
}

interface Parser {
  tokens: readonly Token[];
  at: number;
}

/** `a OR b`, and `a b`, which means the same but for a `b` that must be (`+b`) or must not be (`-b`, `NOT b`). */
function parseAny(parser: Parser, field: string | undefined, depth: number): Expression {
  if (depth > DEEPEST) throw syntaxError();
  const clauses = [parseClause(parser, field, depth)];
  let isWritten = false;
  for (
    let next = parser.tokens[parser.at];
    next !== undefined && next.kind !== ')';
    next = parser.tokens[parser.at]
  ) {
    if (next.kind === 'OR') {
      isWritten = true;
      parser.at++;
    }
    clauses.push(parseClause(parser, field, depth));
  }
  // Where OR is written, it is meant.
  return isWritten ? joined('any', clauses) : together(clauses);
}

interface Clause {
  expression: Expression;
  isRequired: boolean;
}

function parseClause(parser: Parser, field: string | undefined, depth: number): Clause {
  const isRequired = parser.tokens[parser.at]?.kind === '+';
  return { expression: parseAll(parser, field, depth), isRequired };
}

/** Clauses beside one another: all that must be or must not be, and one of the others unless some must be. */
function together(clauses: readonly Clause[]): Expression {
  const isFixed = ({ isRequired, expression }: Clause) => isRequired || 'not' in expression;
  const fixed = clauses.filter(isFixed);
  const others = clauses.filter((one) => !isFixed(one));
  if (fixed.length === 0) return joined('any', others);
  const isFree = others.length === 0 || fixed.some(({ isRequired }) => isRequired);
  const any = isFree ? [] : [{ expression: joined('any', others) }];
  return joined('all', [...any, ...fixed]);
}

function joined(kind: 'all' | 'any', parts: readonly Pick<Clause, 'expression'>[]): Expression {
  const expressions = parts.map(({ expression }) => expression);
  const [only] = expressions;
  if (expressions.length === 1 && only !== undefined) return only;
  return kind === 'all' ? { all: expressions } : { any: expressions };
}

function parseAll(parser: Parser, field: string | undefined, depth: number): Expression {
  const all = [parseOne(parser, field, depth)];
  while (parser.tokens[parser.at]?.kind === 'AND') {
    parser.at++;
    all.push(parseOne(parser, field, depth));
  }
  const [only] = all;
  return all.length === 1 && only !== undefined ? only : { all };
}

function parseOne(parser: Parser, field: string | undefined, depth: number): Expression {
  if (depth > DEEPEST) throw syntaxError();
  const token = parser.tokens[parser.at++];
  switch (token?.kind) {
    case 'NOT':
      return { not: parseOne(parser, field, depth + 1) };
    case '+':
      return parseOne(parser, field, depth + 1);
    case 'field':
      // A field of a field would have no meaning.
      if (field !== undefined) throw syntaxError();
      return parseOne(parser, token.name, depth + 1);
    case '(': {
      const inner = parseAny(parser, field, depth + 1);
      if (parser.tokens[parser.at++]?.kind !== ')') throw syntaxError();
      return inner;
    }
    case 'value':
      if (field !== '_exists_') return { field, match: token.match };
      if (token.match.kind !== 'text') throw syntaxError();
      return { field: token.match.text, match: { kind: 'exists' } };
    default:
      throw syntaxError();
  }
}

const SPACE = /\s/;
const OPERATORS: Readonly<Record<string, 'AND' | 'OR' | 'NOT'>> = {
  AND: 'AND',
  '&&': 'AND',
  OR: 'OR',
  '||': 'OR',
  NOT: 'NOT',
};

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at] ?? '';
    if (SPACE.test(char)) at++;
    else if (char === '(' || char === ')' || char === '+') {
      tokens.push({ kind: char });
      at++;
    } else if (char === '-' || char === '!') {
      tokens.push({ kind: 'NOT' });
      at++;
    } else if (char === '"') {
      const { value, end } = quoted(text, at);
      tokens.push({ kind: 'value', match: { kind: 'text', text: value } });
      at = end;
    } else if (char === '[' || char === '{') {
      const { match, end } = range(text, at);
      tokens.push({ kind: 'value', match });
      at = end;
    } else {
      const { token, end } = word(text, at);
      tokens.push(token);
      at = end;
    }
  }
  return tokens;
}

function quoted(text: string, start: number): { value: string; end: number } {
  let value = '';
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return { value, end: at + 1 };
    if (text[at] === '\\') at++;
    value += text[at] ?? '';
  }
  throw syntaxError();
}

/** `[a TO b]`, `{a TO b}`, and mixed. */
function range(text: string, start: number): { match: Match; end: number } {
  const found =
    /^([[{])\s*("(?:[^"\\]|\\.)*"|[^\s\]}"]+)\s+TO\s+("(?:[^"\\]|\\.)*"|[^\s\]}"]+)\s*([\]}])/.exec(
      text.slice(start),
    );
  if (found === null) throw syntaxError();
  const [all, open, from = '', to = '', close] = found;
  return {
    match: {
      kind: 'range',
      ...(from === '*' ? {} : { from: bound(from) }),
      ...(to === '*' ? {} : { to: bound(to) }),
      isFromIncluded: open === '[',
      isToIncluded: close === ']',
    },
    end: start + all.length,
  };
}

function bound(text: string): string {
  return text.startsWith('"') ? quoted(text, 0).value : text.replaceAll(/\\(.)/g, '$1');
}

/** A word up to a space or a parenthesis; one that ends in a colon names a field. */
function word(text: string, start: number): { token: Token; end: number } {
  const parts = [''];
  let raw = '';
  let at = start;
  for (; at < text.length; at++) {
    const char = text[at] ?? '';
    if (SPACE.test(char) || char === '(' || char === ')' || char === '"') break;
    if (char === ':' && parts.length === 1) {
      const name = parts[0] ?? '';
      if (!/^[\w.@-]+$/.test(name)) throw syntaxError();
      return { token: { kind: 'field', name }, end: at + 1 };
    }
    raw += char;
    if (char === '*') parts.push('');
    else {
      if (char === '\\') at++;
      parts[parts.length - 1] += text[at] ?? '';
    }
  }
  const operator = OPERATORS[raw];
  if (operator !== undefined) return { token: { kind: operator }, end: at };
  const match: Match =
    parts.length === 1 ? { kind: 'text', text: parts[0] ?? '' } : { kind: 'pattern', parts };
  return { token: { kind: 'value', match }, end: at };
}
