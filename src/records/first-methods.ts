// What users of a connection prove first who they are by, in the hosted service's words.

const OWN: Readonly<Record<string, string>> = { auth0: 'pwd', email: 'email', sms: 'sms' };

/** `pwd`, `email`, `sms` or `federated`. @param strategy the connection's. */
export function firstMethodOf(strategy: string): string {
  return OWN[strategy] ?? 'federated';
}
