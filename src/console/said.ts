// What pages say of what was done: what an address names as `said` is one of these message keys.
import { ACTIONS_SAID } from './actions/said.ts';
import { SECURITY_SAID } from './security/said.ts';
import { USERS_SAID } from './users/said.ts';

/** Each area adds its own. */
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

/** Whether the query of a page names one. */
export function isSaid(value: unknown): value is string {
  return typeof value === 'string' && SAID.includes(value);
}
