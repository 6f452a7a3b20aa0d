// Messages that these pages show after a change.
export const SECURITY_NOTICES: readonly string[] = [
  'console.security.said.rotated',
  'console.security.said.revoked',
  'console.security.said.unblocked',
];
