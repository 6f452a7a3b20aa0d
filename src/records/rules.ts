// Rules as they run: those of older tenants, before the actions of a login.
import type { DocumentRecord } from './documents.ts';
import type { Frozen } from './record.ts';

/** A rule that is enabled. */
interface Rule {
  id: string;
  name: string;
  /** `function (user, context, callback)`, as text. */
  script: string;
}

export interface Rules {
  /** Those that run at a login, in order. */
  enabled: readonly Rule[];
  /** What they find as `configuration`, by name: secrets. */
  configuration: Readonly<Record<string, string>>;
}

/** Kinds of the documents. */
export const RULE = 'rules';
export const RULE_VARIABLE = 'rules-config';

/** The id of a variable's document. */
export const ruleVariableId = (key: string) => `${RULE_VARIABLE}/${key}`;

/** The name of a variable, from the id of its document. */
export const ruleVariableKey = (id: string) => id.slice(RULE_VARIABLE.length + 1);

/**
 * The rules of a tenant.
 * @param rules documents of rules. @param variables documents of what they are configured with.
 */
export function rulesOf(
  rules: readonly Frozen<DocumentRecord>[],
  variables: readonly Frozen<DocumentRecord>[],
): Rules {
  const enabled = rules
    .filter(({ body: { enabled = true, stage = 'login_success' } }) => enabled === true && stage === STAGE)
    .sort((a, b) => orderOf(a) - orderOf(b) || (a.created_at + a.id < b.created_at + b.id ? -1 : 1))
    .map(({ id, body }) => ({ id, name: String(body.name), script: String(body.script ?? '') }));
  const configuration = variables.map(({ id, body }) => [ruleVariableKey(id), String(body.value ?? '')]);
  return { enabled, configuration: Object.fromEntries(configuration) };
}

/** The only stage that rules run in; those of the others never did anything for a login. */
const STAGE = 'login_success';

/** Those without an order come last. */
const orderOf = ({ body: { order } }: Frozen<DocumentRecord>) =>
  typeof order === 'number' ? order : Number.MAX_SAFE_INTEGER;
