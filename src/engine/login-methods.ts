// `event.authentication.methods`: how a user has proved who they are, in the words of the hosted service.
import { amrOfFirst } from '../records/first-methods.ts';
import { ALL_SECOND_FACTORS } from '../records/second-factors.ts';

/** A custom authentication method that an action has recorded, and when. */
export interface RecordedMethod {
  name: string;
  /** ISO date. */
  timestamp: string;
}

/** A method of a login; of a second factor which one, where the login says so. */
interface ProvedMethod extends RecordedMethod {
  type?: string;
}

/** The type of a second factor that leaves a word in `amr`: where several leave it, of the first. */
const secondTypeOf = (word: string) => ALL_SECOND_FACTORS.find(({ amr }) => amr.includes(word))?.type;

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
  const left = amr.filter((word) => !amrOfFirst(first).includes(word));
  const type = left.map(secondTypeOf).find((one) => one !== undefined);
  return [...methods, { name: 'mfa', timestamp, ...(type !== undefined && { type }) }];
}
