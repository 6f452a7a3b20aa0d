// Messages that these pages show after a change.

export const USERS_NOTICES: readonly string[] = [
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
