// Messages about what a form has done. The query parameter `said` of a page names one of these keys.
import { ACTIONS_SAID } from './actions/said.ts';
import { SECURITY_SAID } from './security/said.ts';
import { USERS_SAID } from './users/said.ts';

/** All keys, including those of each area. */
const SAID: readonly string[] = [
  'console.said.saved',
  'console.said.created',
  'console.said.deleted',
  ...ACTIONS_SAID,
  ...SECURITY_SAID,
  ...USERS_SAID,
  'console.administrators.invited',
  'console.administrators.ended',
];

/** Reports whether a value of the query is one of these keys. */
export function isSaid(value: unknown): value is string {
  return typeof value === 'string' && SAID.includes(value);
}
