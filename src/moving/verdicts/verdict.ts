// What becomes here of each member of a tenant of the hosted service. The rule is: a member that a section's schema declares is in
// force; what the schemas do not declare, or what is different here in spite of it, has a verdict in the tables beside this
// file (`…-verdicts.ts`). A member without either is a defect, which test/move/verdicts.test.ts finds in the deploy tool's schemas.
import { z } from 'zod';
import { STRATEGIES } from '../../records/connections/connections.ts';
import { tenantFileSchema } from '../../records/tenant/tenant.ts';

/** The verdicts, from the one to look at first. */
export const VERDICTS = ['not in force', 'needs a value', 'in force, differently', 'in force'] as const;
export type Verdict = (typeof VERDICTS)[number];

export type Item = Readonly<Record<string, unknown>>;

/** Returns whether a statement is about a value. @param item the object of the section that has the member. */
type When = (value: unknown, item: Item) => boolean;

export interface Rule {
  verdict: Exclude<Verdict, 'needs a value'>;
  /** What is different, or what users will notice: one sentence, which a person reads beside the member's place. */
  says: string;
  /** The page of the documents with the reason, below `docs/`. */
  decision?: string;
  when: When;
}

/** Rules by the path of a member; `*` is any step, and lists have no step of their own: `clients.addons.*`. */
export type Rules = Readonly<Record<string, Rule>>;

/** Whether a value asks for something: `false`, nothing and what is empty do not. */
export const isAsked = (value: unknown): boolean => {
  if (value === undefined || value === null || value === false || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
};

const isGiven: When = (value) => value !== undefined && value !== null && value !== '';

/** In force though no schema declares it, or nothing that anybody could notice. */
export const inForce: Rule = { verdict: 'in force', says: '', when: () => true };

/** In force, but differently. @param decision the page with the reason, below `docs/understand/decisions/` unless it begins with `/`. */
export const differently = (says: string, decision: string, when: When = isGiven): Rule => ({
  verdict: 'in force, differently',
  says,
  decision: decision.startsWith('/') ? decision.slice(1) : `understand/decisions/${decision}`,
  when,
});

/** Not in force. @param says what users will notice. */
export const absent = (says: string, when: When = isAsked): Rule => ({ verdict: 'not in force', says, when });

/** Rules, ready to be looked up. */
export type RuleBook = readonly { steps: readonly string[]; wildcards: number; rule: Rule }[];

/** @param tables each with paths of its own. */
export const ruleBook = (...tables: readonly Rules[]): RuleBook =>
  tables
    .flatMap((rules) => Object.entries(rules))
    .map(([pattern, rule]) => {
      const steps = pattern.split('.');
      return { steps, wildcards: steps.filter((step) => step === '*').length, rule };
    })
    .sort((a, b) => a.wildcards - b.wildcards);

const matches = (pattern: readonly string[], path: readonly string[]): boolean =>
  pattern.every((step, at) => step === '*' || step === path[at]);

/** Returns the rule for exactly this path; one with the name comes before the schema, and that before one with `*`. */
export function ruleAt(book: RuleBook, path: readonly string[], strategy?: unknown): Rule | undefined {
  const first = book.find(({ steps }) => steps.length === path.length && matches(steps, path));
  if (first?.steps.at(-1) === '*' && declaration(path, strategy) === 'by name') return undefined;
  return first?.rule;
}

/** Whether there are rules for parts of a member. */
const hasInner = (book: RuleBook, path: readonly string[]): boolean =>
  book.some(({ steps }) => steps.length > path.length && matches(steps.slice(0, path.length), path));

/** Returns whether a member has a verdict: its own, that of what it is a part of, or those of its parts. */
export function hasVerdict(book: RuleBook, path: readonly string[]): boolean {
  if (path.some((_step, at) => ruleAt(book, path.slice(0, at + 1)) !== undefined)) return true;
  return hasInner(book, path) || declaration(path) !== undefined;
}

/** A statement about one member of an object. */
export interface Statement extends Pick<Rule, 'verdict' | 'says' | 'decision'> {
  /** With list indexes. */
  path: readonly string[];
}

export const UNKNOWN = 'Gatehouse does not know this member: it is kept for an export, and has no effect';

/**
 * Returns what there is to say about a value and its parts; nothing of what is simply in force.
 * @param at its path in the export, with list indexes. @param item the object of the section.
 */
export function statementsOf(book: RuleBook, value: unknown, at: readonly string[], item: Item): Statement[] {
  const path = at.filter((step) => !/^\d+$/.test(step));
  const { strategy } = item;
  const judge = (
    one: unknown,
    place: readonly string[],
    steps: readonly string[],
    isCovered: boolean,
  ): Statement[] => {
    if (Array.isArray(one))
      return one.flatMap((part, index) =>
        typeof part === 'object' ? judge(part, [...place, String(index)], steps, isCovered) : [],
      );
    if (typeof one !== 'object' || one === null) return [];
    return Object.entries(one).flatMap(([name, part]) => {
      const inner = [...steps, name];
      const innerAt = [...place, name];
      const rule = ruleAt(book, inner, strategy);
      const own = rule !== undefined && rule.verdict !== 'in force' && rule.when(part, item);
      const { verdict, says, decision } = rule ?? {};
      const stated =
        own && verdict !== undefined && says !== undefined
          ? [{ verdict, says, path: innerAt, ...(decision !== undefined && { decision }) }]
          : [];
      const covered = isCovered || rule !== undefined;
      const isOpen = !covered && declaration(inner, strategy) === undefined && !hasInner(book, inner);
      if (isOpen) return isAsked(part) ? [{ verdict: 'not in force', says: UNKNOWN, path: innerAt }] : [];
      // What is not in force as a whole needs no more about its parts.
      if (own && verdict === 'not in force') return stated;
      return [...stated, ...judge(part, innerAt, inner, covered)];
    });
  };
  return judge(value, at, path, ruleAt(book, path) !== undefined);
}

/** How a schema declares a member: by its name, or by taking members of any name. */
type Declaration = 'by name' | 'by any name' | undefined;

/** Returns how the schemas declare a member. @param strategy of the connection, for its options. */
function declaration(path: readonly string[], strategy?: unknown): Declaration {
  const [section, member, ...rest] = path;
  if (section === 'connections' && member === 'options' && rest.length > 0) {
    const records = Object.entries(STRATEGIES).filter(
      ([name]) => strategy === undefined || name === strategy,
    );
    return records.map(([, { options }]) => declaredIn(options, rest)).find((one) => one !== undefined);
  }
  return declaredIn(tenantFileSchema, path);
}

/** A section whose items may be anything declares none of their members; a declared member that may be anything declares its own. */
function declaredIn(schema: unknown, path: readonly string[], isMember = false): Declaration {
  const [step, ...rest] = path;
  const known = unwrapped(schema);
  if (step === undefined) return 'by name';
  if (known instanceof z.ZodArray) return declaredIn(known.element, path, isMember);
  if (known instanceof z.ZodUnion)
    return known.options
      .map((one: unknown) => declaredIn(one, path, isMember))
      .find((one) => one !== undefined);
  if (known instanceof z.ZodIntersection)
    return [known.def.left, known.def.right]
      .map((one) => declaredIn(one, path, isMember))
      .find((one) => one !== undefined);
  if (known instanceof z.ZodObject) {
    if (!Object.hasOwn(known.shape, step)) return undefined;
    // The first step is the section.
    return declaredIn(known.shape[step], rest, isMember || path.length === 1 || !isList(known.shape[step]));
  }
  if (isMember && isAnything(known)) return 'by any name';
  if (known instanceof z.ZodRecord) {
    if (isAnything(known.valueType)) return isMember ? 'by any name' : undefined;
    return declaredIn(known.valueType, rest, isMember) === undefined ? undefined : 'by any name';
  }
  return undefined;
}

const isList = (schema: unknown): boolean => unwrapped(schema) instanceof z.ZodArray;

const isAnything = (schema: unknown): boolean => {
  const known = unwrapped(schema);
  return known instanceof z.ZodUnknown || known instanceof z.ZodAny;
};

/** Returns a schema without what only prepares, completes or checks its value. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe)
    return unwrapped(schema.in instanceof z.ZodTransform ? schema.out : schema.in);
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodCatch
  )
    return unwrapped(schema.unwrap());
  return schema;
}
