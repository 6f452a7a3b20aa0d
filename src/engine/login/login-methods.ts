// `event.authentication.methods`: the methods of a login, named as the hosted service does.
import { amrOfFirst } from '../../records/first-methods.ts';
import { ALL_SECOND_FACTORS } from '../../records/second-factors.ts';

/** A custom authentication method that an action has recorded, and when. */
export interface RecordedMethod {
  name: string;
  /** ISO date. */
  timestamp: string;
}

/** A method of a login, with the type of a second factor where the login tells it. */
interface LoginMethod extends RecordedMethod {
  type?: string;
}

/** Returns the type of the second factor that has this value in `amr`; the first one where several have it. */
const secondTypeOf = (word: string) => ALL_SECOND_FACTORS.find(({ amr }) => amr.includes(word))?.type;

/** Whether the login was by a passkey, which counts as both factors. */
const isPasskey = (amr: readonly string[]) => amr.includes('pop') && amr.includes('user');

/**
 * Returns the methods of a login.
 * @param proof the first method of the login's connection; undefined when the connection is deleted.
 */
export function loginMethods(
  { amr, authTime = 0 }: { amr: readonly string[]; authTime: number | undefined },
  proof: string | undefined,
): LoginMethod[] {
  const timestamp = new Date(authTime * 1000).toISOString();
  if (isPasskey(amr)) return ['passkey', 'mfa'].map((name) => ({ name, timestamp }));
  const first = proof ?? (amr.includes('pwd') ? 'pwd' : 'federated');
  const methods: LoginMethod[] = [{ name: first, timestamp }];
  if (!amr.includes('mfa')) return methods;
  const secondMethods = amr.filter((word) => !amrOfFirst(first).includes(word));
  const type = secondMethods.map(secondTypeOf).find((one) => one !== undefined);
  return [...methods, { name: 'mfa', timestamp, ...(type !== undefined && { type }) }];
}
