// The first authentication methods of connections, by the hosted service's names.

const METHOD_OF: Readonly<Record<string, string>> = { auth0: 'pwd', email: 'email', sms: 'sms' };

/** Returns `pwd`, `email`, `sms` or `federated`. @param strategy of the connection. */
export function firstMethodOf(strategy: string): string {
  return METHOD_OF[strategy] ?? 'federated';
}

// docs/understand/decisions/tokens.md#each-login-records-how-the-user-authenticated
/** The values that each method adds to `amr` (RFC 8176 §2). */
const AMR: Readonly<Record<string, readonly string[]>> = {
  pwd: ['pwd'],
  email: ['otp'],
  sms: ['otp', 'sms'],
  federated: ['pwd'],
};

/** @param method as {@link firstMethodOf} returns it. */
export function amrOfFirst(method: string): readonly string[] {
  return AMR[method] ?? [];
}
