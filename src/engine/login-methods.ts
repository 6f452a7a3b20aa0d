// `event.authentication.methods`: how a user has proved who they are, in the words of the hosted service.

/** A custom authentication method that was completed, and when. */
export interface RecordedMethod {
  name: string;
  /** ISO date. */
  timestamp: string;
}

/** A method of a login; of a second factor which one, where the login says so. */
interface ProvedMethod extends RecordedMethod {
  type?: string;
}

/** What the first factors of connections leave in `amr`. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  pwd: ['pwd'],
  email: ['otp'],
  sms: ['otp', 'sms'],
  federated: ['pwd'],
};

/** The types of second factors that `amr` tells apart. */
const SECOND: Readonly<Record<string, string>> = { otp: 'otp', sms: 'phone', pop: 'webauthn-roaming' };

/** A passkey, which counts for both. */
const isPasskey = (amr: readonly string[]) => amr.includes('pop') && amr.includes('user');

/** @param proof what users of the login's connection prove first who they are by; undefined where that is gone. */
export function methodsProved(
  { amr, authTime = 0 }: { amr: readonly string[]; authTime: number | undefined },
  proof: string | undefined,
): ProvedMethod[] {
  const timestamp = new Date(authTime * 1000).toISOString();
  if (isPasskey(amr)) return ['passkey', 'mfa'].map((name) => ({ name, timestamp }));
  const first = proof ?? (amr.includes('pwd') ? 'pwd' : 'federated');
  const methods: ProvedMethod[] = [{ name: first, timestamp }];
  if (!amr.includes('mfa')) return methods;
  const left = amr.find((one) => SECOND[one] !== undefined && !FIRST[first]?.includes(one));
  const type = left === undefined ? undefined : SECOND[left];
  return [...methods, { name: 'mfa', timestamp, ...(type !== undefined && { type }) }];
}
