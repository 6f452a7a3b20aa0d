// What the pages of the section "Security" say was done.
export const SECURITY_SAID: readonly string[] = [
  'console.security.said.rotated',
  'console.security.said.revoked',
  'console.security.said.unblocked',
];
