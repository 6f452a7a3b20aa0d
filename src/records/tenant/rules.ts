// Rules of older tenants, which run before the actions of a login.

import type { Frozen } from '../base/record.ts';
import type { DocumentRecord } from './documents.ts';

interface Rule {
  id: string;
  name: string;
  /** The source of `function (user, context, callback)`. */
  script: string;
}

export interface Rules {
  /** The rules that run at a login, in order. */
  enabled: readonly Rule[];
  /** The variables, which rules read as `configuration`, by name; they are secrets. */
  configuration: Readonly<Record<string, string>>;
}

/** The kinds of the documents. */
export const RULE = 'rules';
export const RULE_VARIABLE = 'rules-config';

export const ruleVariableId = (key: string) => `${RULE_VARIABLE}/${key}`;

export const ruleVariableKey = (id: string) => id.slice(RULE_VARIABLE.length + 1);

/** @param rules documents of rules. @param variables documents of their variables. */
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

/** The only stage in which rules run; the hosted service never ran those of the others in a login. */
const STAGE = 'login_success';

/** Rules without an order come last. */
const orderOf = ({ body: { order } }: Frozen<DocumentRecord>) =>
  typeof order === 'number' ? order : Number.MAX_SAFE_INTEGER;
