// Messages about what a form has done. The query parameter `said` of a page names one of these keys.
import { ACTIONS_NOTICES } from './actions/notices.ts';
import { SECURITY_NOTICES } from './security/notices.ts';
import { USERS_NOTICES } from './users/notices.ts';

/** All keys, including those of each area. */
const NOTICES: readonly string[] = [
  'console.said.saved',
  'console.said.created',
  'console.said.deleted',
  ...ACTIONS_NOTICES,
  ...SECURITY_NOTICES,
  ...USERS_NOTICES,
  'console.administrators.invited',
  'console.administrators.ended',
];

/** Reports whether a value of the query is one of these keys. */
export function isNotice(value: unknown): value is string {
  return typeof value === 'string' && NOTICES.includes(value);
}
