// Parser of the search syntax of users and logs: the subset of Lucene's query syntax that the hosted service
// documents.
import { AuthError } from '../../../http/errors.ts';
import { apiError } from '../management-errors.ts';

/** The condition that a term sets for a value. */
export type Match =
  | { kind: 'text'; text: string }
  /** The parts around `*`: `a*b` is ['a', 'b'], `*` alone ['', '']. */
  | { kind: 'pattern'; parts: readonly string[] }
  | { kind: 'range'; from?: string; to?: string; isFromIncluded: boolean; isToIncluded: boolean }
  | { kind: 'exists' };

export type Expression =
  | { all: readonly Expression[] }
  | { any: readonly Expression[] }
  | { not: Expression }
  /** A term. Without a field, the default fields are searched. */
  | { field: string | undefined; match: Match };

type Token =
  | { kind: '(' | ')' | 'AND' | 'OR' | 'NOT' | '+' }
  | { kind: 'field'; name: string }
  | { kind: 'value'; match: Match };

/** Limits on length, nesting and terms, because the parser is recursive and its input comes from callers. */
const MAX_QUERY_LENGTH = 4000;
const MAX_DEPTH = 20;
const MAX_TERMS = 100;

/** @throws AuthError 400 if the syntax is wrong */
export function parseQuery(text: string): Expression {
  if (text.length > MAX_QUERY_LENGTH) throw syntaxError();
  const tokens = tokensOf(text);
  if (tokens.filter(({ kind }) => kind === 'value').length > MAX_TERMS) throw syntaxError();
  const parser = { tokens, position: 0 };
  const expression = parseAny(parser, undefined, 0);
  if (parser.position < tokens.length) throw syntaxError();
  return expression;
}

/** Returns the fields that a query names; none for a text that is no query. */
export function fieldsOf(text: string): ReadonlySet<string> {
  const fields = new Set<string>();
  const collect = (expression: Expression): void => {
    if ('all' in expression) for (const one of expression.all) collect(one);
    else if ('any' in expression) for (const one of expression.any) collect(one);
    else if ('not' in expression) collect(expression.not);
    else if (expression.field !== undefined) fields.add(expression.field);
  };
  try {
    collect(parseQuery(text));
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
  }
  return fields;
}

function syntaxError() {
  return apiError(400, 'Invalid search query.', 'invalid_query_string');
}

interface Parser {
  tokens: readonly Token[];
  position: number;
}

/**
 * Parses `a OR b`, or clauses side by side. `a b` means `a OR b`, unless a clause is required (`+b`) or prohibited
 * (`-b`, `NOT b`).
 */
function parseAny(parser: Parser, field: string | undefined, depth: number): Expression {
  if (depth > MAX_DEPTH) throw syntaxError();
  const clauses = [parseClause(parser, field, depth)];
  let hasWrittenOr = false;
  for (
    let next = parser.tokens[parser.position];
    next !== undefined && next.kind !== ')';
    next = parser.tokens[parser.position]
  ) {
    if (next.kind === 'OR') {
      hasWrittenOr = true;
      parser.position++;
    }
    clauses.push(parseClause(parser, field, depth));
  }
  // A written OR joins all clauses, even required ones.
  return hasWrittenOr ? joinClauses('any', clauses) : combineClauses(clauses);
}

interface Clause {
  expression: Expression;
  isRequired: boolean;
}

function parseClause(parser: Parser, field: string | undefined, depth: number): Clause {
  const isRequired = parser.tokens[parser.position]?.kind === '+';
  return { expression: parseAll(parser, field, depth), isRequired };
}

/**
 * Combines clauses that stand side by side: every required or prohibited one must hold and, if none is required, one
 * of the others.
 */
function combineClauses(clauses: readonly Clause[]): Expression {
  const isFixed = ({ isRequired, expression }: Clause) => isRequired || 'not' in expression;
  const fixed = clauses.filter(isFixed);
  const others = clauses.filter((one) => !isFixed(one));
  if (fixed.length === 0) return joinClauses('any', others);
  const areOthersOptional = others.length === 0 || fixed.some(({ isRequired }) => isRequired);
  const any = areOthersOptional ? [] : [{ expression: joinClauses('any', others) }];
  return joinClauses('all', [...any, ...fixed]);
}

function joinClauses(kind: 'all' | 'any', parts: readonly Pick<Clause, 'expression'>[]): Expression {
  const expressions = parts.map(({ expression }) => expression);
  const [only] = expressions;
  if (expressions.length === 1 && only !== undefined) return only;
  return kind === 'all' ? { all: expressions } : { any: expressions };
}

function parseAll(parser: Parser, field: string | undefined, depth: number): Expression {
  const all = [parseOne(parser, field, depth)];
  while (parser.tokens[parser.position]?.kind === 'AND') {
    parser.position++;
    all.push(parseOne(parser, field, depth));
  }
  const [only] = all;
  return all.length === 1 && only !== undefined ? only : { all };
}

function parseOne(parser: Parser, field: string | undefined, depth: number): Expression {
  if (depth > MAX_DEPTH) throw syntaxError();
  const token = parser.tokens[parser.position++];
  switch (token?.kind) {
    case 'NOT':
      return { not: parseOne(parser, field, depth + 1) };
    case '+':
      return parseOne(parser, field, depth + 1);
    case 'field':
      // `a:(b:c)` has no meaning.
      if (field !== undefined) throw syntaxError();
      return parseOne(parser, token.name, depth + 1);
    case '(': {
      const inner = parseAny(parser, field, depth + 1);
      if (parser.tokens[parser.position++]?.kind !== ')') throw syntaxError();
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
  let position = 0;
  while (position < text.length) {
    const char = text[position] ?? '';
    if (SPACE.test(char)) position++;
    else if (char === '(' || char === ')' || char === '+') {
      tokens.push({ kind: char });
      position++;
    } else if (char === '-' || char === '!') {
      tokens.push({ kind: 'NOT' });
      position++;
    } else if (char === '"') {
      const { value, end } = readQuoted(text, position);
      tokens.push({ kind: 'value', match: { kind: 'text', text: value } });
      position = end;
    } else if (char === '[' || char === '{') {
      const { match, end } = readRange(text, position);
      tokens.push({ kind: 'value', match });
      position = end;
    } else {
      const { token, end } = readWord(text, position);
      tokens.push(token);
      position = end;
    }
  }
  return tokens;
}

function readQuoted(text: string, start: number): { value: string; end: number } {
  let value = '';
  for (let position = start + 1; position < text.length; position++) {
    if (text[position] === '"') return { value, end: position + 1 };
    if (text[position] === '\\') position++;
    value += text[position] ?? '';
  }
  throw syntaxError();
}

/** Reads a range: `[a TO b]`, `{a TO b}`, or with mixed brackets. */
function readRange(text: string, start: number): { match: Match; end: number } {
  const result =
    /^([[{])\s*("(?:[^"\\]|\\.)*"|[^\s\]}"]+)\s+TO\s+("(?:[^"\\]|\\.)*"|[^\s\]}"]+)\s*([\]}])/.exec(
      text.slice(start),
    );
  if (result === null) throw syntaxError();
  const [matched, open, from = '', to = '', close] = result;
  return {
    match: {
      kind: 'range',
      ...(from === '*' ? {} : { from: bound(from) }),
      ...(to === '*' ? {} : { to: bound(to) }),
      isFromIncluded: open === '[',
      isToIncluded: close === ']',
    },
    end: start + matched.length,
  };
}

function bound(text: string): string {
  return text.startsWith('"') ? readQuoted(text, 0).value : text.replaceAll(/\\(.)/g, '$1');
}

/** Reads a word up to a space, quote or parenthesis. A word that a colon follows is a field name. */
function readWord(text: string, start: number): { token: Token; end: number } {
  const parts = [''];
  let raw = '';
  let position = start;
  for (; position < text.length; position++) {
    const char = text[position] ?? '';
    if (SPACE.test(char) || char === '(' || char === ')' || char === '"') break;
    if (char === ':' && parts.length === 1) {
      const name = parts[0] ?? '';
      if (!/^[\w.@-]+$/.test(name)) throw syntaxError();
      return { token: { kind: 'field', name }, end: position + 1 };
    }
    raw += char;
    if (char === '*') parts.push('');
    else {
      if (char === '\\') position++;
      parts[parts.length - 1] += text[position] ?? '';
    }
  }
  const operator = OPERATORS[raw];
  if (operator !== undefined) return { token: { kind: operator }, end: position };
  const match: Match =
    parts.length === 1 ? { kind: 'text', text: parts[0] ?? '' } : { kind: 'pattern', parts };
  return { token: { kind: 'value', match }, end: position };
}
