// Using a code or link: whether it is right, and who has thereby logged in.
import type { Caller } from '../../protection/callers.ts';
import type { Asker } from '../../users/asker.ts';
import type { Login } from '../../users/login.ts';
import type { Proof, ProofDependencies } from '../strategy.ts';
import type { PasswordlessConnection } from './connection.ts';

interface PasswordlessProof {
  clientId: string;
  connection: PasswordlessConnection;
  /** Normalised; undefined when what was sent is no address. */
  address: string | undefined;
  /** A code, or the secret of a link. */
  secret: string;
  /** Who sends it. */
  caller: Caller;
}

/**
 * Whether a proof is right, without using it up; a wrong one counts.
 * @throws AuthError 403 `invalid_grant`, the same whatever was wrong; 429 when there were too many.
 */
export async function check(deps: ProofDependencies, proof: PasswordlessProof): Promise<void> {
  await proof.connection.strategy.check(deps, proofOf(proof));
}

/**
 * Uses a proof up: of any number of racers exactly one gets through.
 * @returns the login; its user is made at the first one, with the address verified.
 * @throws AuthError as {@link check}, and where the tenant's own code refuses a new user.
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
