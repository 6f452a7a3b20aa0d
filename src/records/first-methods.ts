// What users of a connection prove first who they are by, in the hosted service's words.

const BY_STRATEGY: Readonly<Record<string, string>> = { auth0: 'pwd', email: 'email', sms: 'sms' };

/** `pwd`, `email`, `sms` or `federated`. @param strategy the connection's. */
export function firstMethodOf(strategy: string): string {
  return BY_STRATEGY[strategy] ?? 'federated';
}

/** What they leave in a login's `amr` (RFC 8176 §2). */
const AMR: Readonly<Record<string, readonly string[]>> = {
  pwd: ['pwd'],
  email: ['otp'],
  sms: ['otp', 'sms'],
  federated: ['pwd'],
};

/** @param method as {@link firstMethodOf} has it. */
export function amrOfFirst(method: string): readonly string[] {
  return AMR[method] ?? [];
}
