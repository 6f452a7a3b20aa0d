// Checks and redeems the code or link of a passwordless login.
import type { Caller } from '../../../capabilities/protection/rate-limit.ts';
import type { Asker } from '../../../users/asker.ts';
import type { Login } from '../../../users/login.ts';
import type { Proof, ProofDependencies } from '../strategy.ts';
import type { PasswordlessConnection } from './connection.ts';

interface PasswordlessProof extends Pick<Proof<string>, 'organization' | 'invitedEmail'> {
  clientId: string;
  connection: PasswordlessConnection;
  /** Normalized; undefined if the request's address is not valid. */
  address: string | undefined;
  /** A code, or the secret of a link. */
  secret: string;
  caller: Caller;
}

/**
 * Checks a proof without using it up. A wrong one is counted.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 after too many wrong ones.
 */
export async function check(deps: ProofDependencies, proof: PasswordlessProof): Promise<void> {
  await proof.connection.strategy.check(deps, proofOf(proof));
}

/**
 * Redeems a proof, exactly once even if it is used several times at once.
 * @returns the login; the first one creates the user, with the address verified.
 * @throws AuthError as {@link check}, or if the tenant's own code refuses a new user.
 */
export async function redeem(
  deps: ProofDependencies,
  proof: PasswordlessProof & { asker: Asker },
): Promise<Login> {
  return proof.connection.strategy.prove(deps, proofOf(proof));
}

function proofOf(proof: PasswordlessProof & { asker?: Asker }): Proof<string> {
  const { connection, address, secret, ...rest } = proof;
  if (address === undefined) throw connection.strategy.wrong();
  return { ...rest, connection: connection.record, identifier: address, credentials: secret };
}
