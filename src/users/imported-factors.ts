// Second factors that are imported with users, from a file or from the script of a custom database.
import { z } from 'zod';
import { normalizeEmail } from '../records/base/email.ts';
import type { Frozen } from '../records/base/record.ts';
import { type AuthenticatorRecord, factorsTurn } from '../records/users/authenticators.ts';
import { type FactorKind, SECOND_FACTORS } from '../records/users/second-factors.ts';
import type { Write } from '../store/contract.ts';
import { takeTurn } from '../store/write-in-turn.ts';
import { type Identity, isLinked } from './changes.ts';
import { isFactor } from './left-factors.ts';
import type { UsersDependencies } from './user.ts';

/** The schema of an imported phone number (E.164). */
export const importedPhone = z.string().regex(/^\+[0-9]{1,15}$/);

/** The schema of an imported e-mail address. */
export const importedEmail = z
  .string()
  .max(320)
  .refine((value) => normalizeEmail(value) !== undefined, {
    params: { code: 'FORMAT', fault: 'format' },
    message: "Object didn't pass validation for format email",
  });

const factor = z.union([
  z.strictObject({ totp: z.strictObject({ secret: z.string().regex(/^[A-Z2-7]{16,256}$/) }) }),
  z.strictObject({ phone: z.strictObject({ value: importedPhone }) }),
  z.strictObject({ email: z.strictObject({ value: importedEmail }) }),
]);

// docs/understand/decisions/connections.md#second-factors-from-a-custom-database-are-imported-with-the-user
/** An imported second factor. */
export type ImportedFactor = z.output<typeof factor>;

/** The schema of `mfa_factors`: the second factors of one user. */
export const importedFactors = z.array(factor).max(10);

/** Returns the writes that give a user second factors. They are active at once, as the other system has confirmed them. */
export function factorWrites(
  { clock, random }: Pick<UsersDependencies, 'clock' | 'random'>,
  userId: string,
  factors: readonly ImportedFactor[],
): Write[] {
  if (factors.length === 0) return [];
  const created_at = new Date(clock()).toISOString();
  const inserts = factors.map((one): Write => {
    const { kind, ...fields } = membersOf(one);
    const id = `${SECOND_FACTORS[kind].prefix}|dev_${random(12).toString('hex')}`;
    const record: AuthenticatorRecord = { id, user_id: userId, kind, active: true, created_at, ...fields };
    return { collection: 'authenticators', insert: record };
  });
  return [takeTurn(factorsTurn(userId), random), ...inserts];
}

/** Returns the writes that give an existing user the imported second factors; none if the user has second factors already. */
export async function factorWritesIfNone(
  deps: UsersDependencies,
  identity: Identity,
  factors: readonly ImportedFactor[],
): Promise<Write[]> {
  // A linked identity belongs to another user, who has second factors of their own.
  if (factors.length === 0 || isLinked(identity)) return [];
  const present = await deps.store.collection('authenticators').findBy('user', identity.user_id);
  return present.some(isFactor) ? [] : factorWrites(deps, identity.user_id, factors);
}

/** Returns the members of the record of a second factor. */
function membersOf(factor: ImportedFactor): { kind: FactorKind } & Partial<AuthenticatorRecord> {
  if ('totp' in factor) return { kind: 'otp', secret: factor.totp.secret };
  if ('phone' in factor) return { kind: 'sms', phone_number: factor.phone.value };
  return { kind: 'email', email: factor.email.value };
}

/**
 * Returns a second factor in the form that {@link factorWrites} takes.
 * @returns undefined for a factor that cannot be exported, such as a device, whose key works only with this server.
 */
export function exportedFactor({
  kind,
  secret,
  phone_number,
  email,
}: Frozen<AuthenticatorRecord>): ImportedFactor | undefined {
  if (kind === 'otp' && secret !== undefined) return { totp: { secret } };
  if (kind === 'sms' && phone_number !== undefined) return { phone: { value: phone_number } };
  return kind === 'email' && email !== undefined ? { email: { value: email } } : undefined;
}
