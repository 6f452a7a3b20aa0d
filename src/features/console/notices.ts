// Messages about what a form has done. The query parameter `said` of a page names one of these keys.

// Messages that these pages show after a change.

const USERS_NOTICES: readonly string[] = [
  'userMade',
  'userDeleted',
  'passwordSet',
  'blocked',
  'unblocked',
  'lockoutsLifted',
  'mailSent',
  'unlinked',
  'methodRemoved',
  'browsersForgotten',
  'sessionEnded',
  'accessEnded',
  'tokenEnded',
  'withdrawn',
  'deviceRemoved',
  'roleGiven',
  'roleTaken',
  'permissionGiven',
  'permissionTaken',
].map((name) => `console.users.said.${name}`);

// Messages that these pages show after an action was changed.

const ACTIONS_NOTICES: readonly string[] = ['made', 'saved', 'secretSaved', 'deployed', 'rolledBack'].map(
  (name) => `console.actions.said.${name}`,
);

// Messages that these pages show after a change.
const SECURITY_NOTICES: readonly string[] = [
  'console.security.said.rotated',
  'console.security.said.revoked',
  'console.security.said.unblocked',
];

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
